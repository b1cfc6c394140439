//! Dependencies that no source names: each one lengthens the build and adds a false edge to the
//! table of `docs/dependencies.md`.

use super::graph::{list, text};
use crate::Outcome;
use crate::files::{self, SourceFile};
use crate::findings::Findings;
use serde_json::Value;

/// Searches the sources of each crate of the workspace for the names of its dependencies. A normal
/// dependency must be named outside of tests.
pub fn check(metadata: &Value, findings: &mut Findings) -> Outcome {
    let files = files::all()?;
    let root = text(&metadata["workspace_root"])?;
    let members: Vec<&Value> = list(&metadata["workspace_members"]).collect();
    for package in list(&metadata["packages"]).filter(|package| members.contains(&&package["id"])) {
        let manifest = text(&package["manifest_path"])?;
        let manifest = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
        let directory = manifest.trim_end_matches("Cargo.toml");
        let sources: Vec<&SourceFile> = files
            .iter()
            .filter(|file| file.path.starts_with(directory) && file.extension() == "rs")
            .collect();
        for dependency in list(&package["dependencies"]) {
            let tests = match dependency["kind"].as_str() {
                None => false,
                Some("dev") => true,
                Some(_) => continue,
            };
            let name = dependency["rename"].as_str().or(dependency["name"].as_str());
            let name = name.unwrap_or_default().replace('-', "_");
            let names_it = |file: &&SourceFile| {
                let within = file.path.strip_prefix(directory).unwrap_or_default();
                names(part(within, &file.text, tests), &name)
            };
            if !sources.iter().any(names_it) {
                findings.add(manifest, format!("no source names the dependency `{name}`"));
            }
        }
    }
    Ok(())
}

/// The part of a file in which a dependency may be named. Without `tests`, test files are empty and
/// other files end before their test module.
fn part<'a>(path: &str, text: &'a str, tests: bool) -> &'a str {
    let is_of_tests =
        !path.starts_with("src/") || path.ends_with("tests.rs") || path.contains("/tests/");
    match tests {
        true => text,
        false if is_of_tests => "",
        false => text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default(),
    }
}

/// Whether a text names a crate outside of comments: in a path, or in a `use` of its own. A
/// variable of the same name does not count.
fn names(text: &str, name: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).any(|line| {
        line.match_indices(name).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + name.len()..]);
            let is_path = after.starts_with("::");
            let is_used = before.trim_end().ends_with("use") && after.starts_with([';', ' ']);
            !before.ends_with(is_word) && (is_path || is_used)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_named_by_a_word_of_the_code() {
        assert!(names("use libc::c_int;", "libc"));
        assert!(names("use libc as c;", "libc"));
        assert!(!names("use my_libc::c_int;\n// libc says so", "libc"));
        assert!(!names("let libc = 1 + libc;", "libc"));
        let source = "use a::b;\n#[cfg(test)]\nmod tests {\n    use c::d;\n}\n";
        assert!(names(part("src/x.rs", source, true), "c"));
        assert!(!names(part("src/x.rs", source, false), "c"));
        assert!(!names(part("src/x/tests.rs", source, false), "a"));
        assert!(!names(part("tests/x.rs", source, false), "a"));
        assert!(names(part("src/x.rs", source, false), "a"));
    }
}
