//! The code map, `docs/code-map.md`: every source file with the first sentence of its comment.
//!
//! `cargo xtask code-map` writes the page, `cargo xtask tidy` compares it with the sources. Nobody
//! edits it: a file describes itself.

mod sentence;

use crate::Outcome;
use crate::files::{self, SourceFile};
use crate::findings::Findings;
use crate::run::root;
use std::collections::BTreeMap;
use std::fs;

/// The page, relative to the root.
const PAGE: &str = "docs/code-map.md";

/// The command that writes it.
const COMMAND: &str = "cargo xtask code-map";

/// Maximum width of a line of the page.
const WIDTH: usize = 120;

/// The directories of a package that have sources, beside the package's own.
const SOURCES: [&str; 4] = ["src", "examples", "benches", "fuzz_targets"];

/// Names of the file that describes the folder in which it is.
const FIRST_FILES: [&str; 3] = ["lib.rs", "mod.rs", "main.rs"];

/// The sources of a folder, by name.
type Folder<'a> = BTreeMap<&'a str, &'a SourceFile>;

/// Writes the page.
pub fn write() -> Outcome {
    let page = page(&files::all()?);
    fs::write(root().join(PAGE), &page).map_err(|error| format!("{PAGE}: {error}"))?;
    println!("code-map: {PAGE}, {} lines", page.lines().count());
    Ok(())
}

/// Checks that every source has a first sentence, and that the page has all of them.
pub fn check(files: &[SourceFile], findings: &mut Findings) {
    for file in files.iter().filter(|file| place(&file.path).is_some()) {
        if sentence::first(&file.text).is_none() {
            findings.add(&file.path, "no sentence says what it is; begin it with `//! ...`");
        }
    }
    let found = files.iter().find(|file| file.path == PAGE);
    if found.is_none_or(|found| found.text != page(files)) {
        findings.add(PAGE, format!("differs from the sources; `{COMMAND}` writes it again"));
    }
}

/// The page, in the order of the paths.
fn page(files: &[SourceFile]) -> String {
    let mut packages: BTreeMap<&str, BTreeMap<&str, Folder<'_>>> = BTreeMap::new();
    for file in files {
        if let Some((package, folder, name)) = place(&file.path) {
            packages.entry(package).or_default().entry(folder).or_default().insert(name, file);
        }
    }
    let mut page = format!(
        "# Code map\n\nEvery source file except tests, with the first sentence of its comment; a folder has that of its \
         module.\n[ARCHITECTURE.md](../ARCHITECTURE.md) is the map of the crates. This page is made from the sources: \
         `{COMMAND}`\nwrites it again, and `cargo xtask tidy` checks it.\n"
    );
    for (package, folders) in packages {
        page.push_str(&format!("\n## `{package}`\n"));
        let root = format!("{package}/src");
        let (first, others): (Vec<_>, Vec<_>) =
            folders.into_iter().partition(|(folder, _)| *folder == root);
        for (folder, sources) in first.into_iter().chain(others) {
            if folder != root {
                page.push_str(&format!("\n### `{folder}`\n"));
            }
            page.push_str(&section(folder, &sources, files));
        }
    }
    page
}

/// A folder: the sentence of the file that describes it, and those of its files.
fn section(folder: &str, sources: &Folder<'_>, files: &[SourceFile]) -> String {
    let within = FIRST_FILES.into_iter().find(|name| sources.contains_key(name));
    let beside = format!("{folder}.rs");
    let described = match within {
        Some(name) => sources.get(name).copied(),
        None => files.iter().find(|file| file.path == beside),
    };
    let of = |file: &SourceFile| sentence::first(&file.text);
    let mut section = match described.and_then(of) {
        Some(sentence) => format!("\n{}\n", wrapped(&sentence, "")),
        None => String::new(),
    };
    let listed: Vec<String> = sources
        .iter()
        .filter(|(name, _)| Some(**name) != within)
        .map(|(name, file)| format!("- `{name}`: {}", of(file).unwrap_or_default()))
        .collect();
    if !listed.is_empty() {
        section.push('\n');
    }
    for line in listed {
        section.push_str(&wrapped(&line, "  "));
        section.push('\n');
    }
    section
}

/// Package, folder and name of a source; none for tests and for files that are no sources.
fn place(path: &str) -> Option<(&str, &str, &str)> {
    let (folder, name) = path.rsplit_once('/')?;
    let stem = name.strip_suffix(".rs")?;
    let is_test = stem == "tests" || stem.ends_with("_tests");
    if is_test || folder.split('/').any(|part| part == "tests") {
        return None;
    }
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    let mut ends = path.match_indices('/').map(|(at, _)| at);
    let package = &path[..ends.nth(depth - 1)?];
    let inside = path[package.len()..].trim_start_matches('/');
    let directory = inside.split('/').next()?;
    (directory == name || SOURCES.contains(&directory)).then_some((package, folder, name))
}

/// A text in lines of at most [`WIDTH`], the second and all others with `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let (mut lines, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        let more = word.chars().count();
        if width > 0 && width + 1 + more > WIDTH {
            lines.push('\n');
            lines.push_str(indent);
            width = indent.len();
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += more;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> Vec<SourceFile> {
        let file =
            |(path, text): &(&str, &str)| SourceFile { path: (*path).into(), text: (*text).into() };
        files.iter().map(file).collect()
    }

    fn found(files: &[SourceFile]) -> Vec<String> {
        let mut findings = Findings::new("tidy");
        check(files, &mut findings);
        findings.all().to_vec()
    }

    #[test]
    fn a_folder_begins_with_the_sentence_of_its_module() {
        let files = project(&[
            ("crates/a/src/lib.rs", "//! The crate. More.\n"),
            ("crates/a/src/part.rs", "//! A part.\n"),
            ("crates/a/src/part/deep.rs", "//! Deep.\n"),
            ("crates/a/src/part/tests.rs", "//! Tests.\n"),
            ("crates/a/src/whole/mod.rs", "//! A whole.\n"),
            ("crates/a/tests/all.rs", "//! Tests.\n"),
        ]);
        let page = page(&files);
        let (_, map) = page.split_once("checks it.\n").unwrap();
        assert_eq!(
            map,
            "\n## `crates/a`\n\nThe crate.\n\n- `part.rs`: A part.\n\n### `crates/a/src/part`\n\nA \
             part.\n\n- `deep.rs`: Deep.\n\n### `crates/a/src/whole`\n\nA whole.\n"
        );
    }

    #[test]
    fn a_page_that_is_not_up_to_date_is_found_with_its_remedy() {
        let mut files = project(&[("crates/a/src/lib.rs", "//! One.\n"), (PAGE, "# Code map\n")]);
        let problem = format!("{PAGE}: differs from the sources; `{COMMAND}` writes it again");
        assert_eq!(found(&files), [problem.as_str()]);
        files[1].text = page(&files);
        assert_eq!(found(&files), [""; 0]);
        files[0].text = "//! Two.\n".into();
        assert_eq!(found(&files), [problem]);
    }

    #[test]
    fn a_source_without_a_sentence_is_found() {
        let mut files = project(&[("xtask/src/main.rs", "fn main() {}\n"), (PAGE, "")]);
        files[1].text = page(&files);
        let problem = "xtask/src/main.rs: no sentence says what it is; begin it with `//! ...`";
        assert_eq!(found(&files), [problem]);
    }

    #[test]
    fn lines_are_wrapped() {
        let wrapped = wrapped(&"word ".repeat(50), "  ");
        assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH), "{wrapped}");
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("  word")), "{wrapped}");
    }
}
