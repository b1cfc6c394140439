//! Keeps ARCHITECTURE.md a map: it is short, and says of each crate what always holds there and
//! what it does not know.

use crate::files::SourceFile;
use crate::findings::Findings;

/// The document.
const DOCUMENT: &str = "ARCHITECTURE.md";

/// Its maximum size in bytes. What does not fit belongs to a page of `docs/` or to a comment.
const BYTES_MAX: usize = 14 << 10;

/// What a crate's section has, each at the start of a line and with a text behind it.
const PARTS: [&str; 2] = ["**Invariant:**", "**Boundary:**"];

/// Checks the size of the document, and the section of each crate of the workspace.
pub fn check(files: &[SourceFile], findings: &mut Findings) {
    let document = files.iter().find(|file| file.path == DOCUMENT);
    let text = document.map_or("", |document| document.text.as_str());
    if text.len() > BYTES_MAX {
        let problem = format!(
            "{} bytes; the maximum is {BYTES_MAX}: move details to docs/ or to comments of files",
            text.len()
        );
        findings.add(DOCUMENT, problem);
    }
    for name in files.iter().filter_map(|file| package(&file.path)) {
        let section = section(text, name);
        for part in PARTS.iter().filter(|part| !section.iter().any(|line| has(line, part))) {
            findings.add(DOCUMENT, format!("no line `{part} ...` below a heading `{name}`"));
        }
    }
}

/// The package of the workspace to which a manifest belongs.
fn package(path: &str) -> Option<&str> {
    let directory = path.strip_suffix("/Cargo.toml")?;
    let is_crate = directory.strip_prefix("crates/").is_some_and(|name| !name.contains('/'));
    (is_crate || directory == "xtask").then_some(directory)
}

/// The lines between the heading that names a crate and the next heading.
fn section<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let named = format!("`{name}`");
    let is_heading = |line: &str| line.starts_with('#');
    let lines = text.lines().skip_while(|line| !(is_heading(line) && line.contains(&named)));
    lines.skip(1).take_while(|line| !is_heading(line)).collect()
}

fn has(line: &str, part: &str) -> bool {
    line.strip_prefix(part).is_some_and(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let manifests = ["crates/a/Cargo.toml", "crates/a/b/Cargo.toml", "fuzz/Cargo.toml"];
        let manifests = manifests.iter().map(|path| file(path, ""));
        let files: Vec<SourceFile> = [file(DOCUMENT, text)].into_iter().chain(manifests).collect();
        let mut findings = Findings::new("tidy");
        check(&files, &mut findings);
        findings.all().to_vec()
    }

    #[test]
    fn a_crate_has_an_invariant_and_a_boundary() {
        let whole = "### `crates/a`\n\nIt is.\n\n**Invariant:** it holds.\n**Boundary:** no b.\n";
        assert_eq!(found(whole), [""; 0]);
        let absent =
            |part| format!("{DOCUMENT}: no line `**{part}:** ...` below a heading `crates/a`");
        assert_eq!(found("# Map\n"), [absent("Invariant"), absent("Boundary")]);
        let empty = "### `crates/a`\n\n**Invariant:**\n\n### b\n\n**Boundary:** of another.\n";
        assert_eq!(found(empty), [absent("Invariant"), absent("Boundary")]);
    }

    #[test]
    fn the_map_is_short() {
        let whole = "### `crates/a`\n**Invariant:** it holds.\n**Boundary:** no b.\n";
        let problems = found(&(whole.to_owned() + &"x".repeat(BYTES_MAX)));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("the maximum is 14336"), "{problems:?}");
    }
}
