//! Examples in the documentation of a crate are run as tests; a crate without any says so, because
//! even to find none takes a build.

use crate::files::SourceFile;
use crate::findings::Findings;

/// The line of a manifest that turns doc tests off.
const OFF: &str = "doctest = false";

/// Checks the manifest of each library.
pub fn check(files: &[SourceFile], findings: &mut Findings) {
    let is_manifest = |path: &str| path.starts_with("crates/") && path.ends_with("/Cargo.toml");
    for manifest in files.iter().filter(|file| is_manifest(&file.path)) {
        let sources = manifest.path.replace("Cargo.toml", "src/");
        let library = format!("{sources}lib.rs");
        if !files.iter().any(|file| file.path == library) {
            continue;
        }
        let inside = |file: &&SourceFile| file.path.starts_with(&sources);
        let example = files.iter().filter(inside).find(|file| has_example(&file.text));
        let is_off = manifest.text.lines().any(|line| line == OFF);
        match (example, is_off) {
            (Some(example), true) => findings.add(
                &example.path,
                format!("an example that no test runs: remove `{OFF}` from {}", manifest.path),
            ),
            (None, false) => findings.add(
                &manifest.path,
                format!("no example is in the documentation: add `{OFF}` to `[lib]`"),
            ),
            _ => {}
        }
    }
}

/// Whether doc comments have a block of code that is Rust.
fn has_example(text: &str) -> bool {
    let mut is_inside = false;
    for line in text.lines().map(str::trim_start) {
        let comment = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        let Some(language) = comment.and_then(|comment| comment.strip_prefix("```")) else {
            continue;
        };
        is_inside = !is_inside;
        if is_inside && matches!(language, "" | "rust" | "no_run" | "should_panic") {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn examples_are_run_and_their_absence_is_declared() {
        let example = "//! ```\n//! assert!(true);\n//! ```\n";
        let drawing = "//! ```text\n//! a box\n//! ```\n";
        let found = |manifest: &str, library: &str| {
            let mut findings = Findings::new("tidy");
            let files =
                [file("crates/a/Cargo.toml", manifest), file("crates/a/src/lib.rs", library)];
            check(&files, &mut findings);
            findings.all().len()
        };
        let off = "[lib]\ndoctest = false\n";
        assert_eq!([found("", example), found(off, drawing)], [0, 0]);
        assert_eq!([found("", drawing), found(off, example)], [1, 1]);
    }
}
