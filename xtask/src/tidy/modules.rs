//! Finds sources that no module names: they are not compiled, and no warning says so.

use super::places::{exists, parents};
use crate::files::SourceFile;
use crate::findings::Findings;

/// Roots of compilation units.
const ROOTS: [&str; 3] = ["lib.rs", "main.rs", "build.rs"];

/// Checks that there is a `mod` for every source below a `src` directory.
pub fn check(files: &[SourceFile], findings: &mut Findings) {
    let sources = files.iter().filter(|file| file.path.ends_with(".rs"));
    for file in sources.filter(|file| format!("/{}", file.path).contains("/src/")) {
        let Some((directory, name)) = file.path.rsplit_once('/') else { continue };
        if ROOTS.contains(&name) || directory.ends_with("/src/bin") {
            continue;
        }
        let (parent, module) = match name {
            "mod.rs" => directory.rsplit_once('/').unwrap_or(("", directory)),
            name => (directory, name.trim_end_matches(".rs")),
        };
        let named = parents(parent)
            .iter()
            .filter(|path| exists(files, path))
            .flat_map(|path| files.iter().filter(move |file| &file.path == path))
            .any(|file| declares(&file.text, module));
        if !named {
            findings.add(&file.path, format!("no `mod {module};` names this file"));
        }
    }
}

fn declares(text: &str, module: &str) -> bool {
    let declaration = format!("mod {module};");
    text.lines().any(|line| {
        let line = line.trim_start();
        line.strip_suffix(&declaration).is_some_and(|before| {
            before.is_empty() || before.starts_with("pub") || before.starts_with("#[")
        })
    })
}
