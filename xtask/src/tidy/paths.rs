//! Checks that paths in documents and comments exist.
//!
//! In README.md, ARCHITECTURE.md, CONTRIBUTING.md and docs/request-path.md every path in backticks
//! is checked. Below a heading that names a crate (`### crates/store`) paths may be relative to the
//! crate or its sources. In all other files (in sources: in comments), names of the form
//! `docs/*.md` are checked.

use super::places::{exists, resolve};
use crate::files::SourceFile;
use crate::findings::Findings;

/// Documents in which all paths are checked.
const GUIDES: [&str; 4] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/request-path.md"];

/// File name endings that make a span a path of the project in these documents.
const FILE_ENDS: [&str; 5] = [".rs", ".md", ".toml", ".sh", ".py"];

/// Checks the paths in one file.
pub fn check(file: &SourceFile, files: &[SourceFile], findings: &mut Findings) {
    if GUIDES.contains(&file.path.as_str()) {
        return check_guide(file, files, findings);
    }
    let source = file.extension() == "rs";
    for (number, line) in (1..).zip(file.text.lines()) {
        if source && !line.trim_start().starts_with("//") {
            continue;
        }
        for document in documents(line) {
            if !exists(files, document) {
                findings
                    .add(format!("{}:{number}", file.path), format!("{document} does not exist"));
            }
        }
    }
}

fn check_guide(guide: &SourceFile, files: &[SourceFile], findings: &mut Findings) {
    let mut section = String::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(guide.text.lines()) {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if line.starts_with('#') && !fenced {
            section = line.split('`').nth(1).unwrap_or_default().to_owned();
        }
        let spans = line.split('`').skip(1).step_by(2);
        for path in spans.filter(|span| !fenced && is_path(span, files)) {
            let places =
                ["", &section, &format!("{section}/src")].map(|directory| resolve(directory, path));
            if !places.iter().flatten().any(|place| exists(files, place)) {
                findings.add(format!("{}:{number}", guide.path), format!("{path} does not exist"));
            }
        }
    }
}

/// Whether a span is a path of the project: no blanks or wild cards, and either a source file's
/// extension or a first component that exists in the root.
fn is_path(span: &str, files: &[SourceFile]) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    if span.is_empty() || span.starts_with('/') || !span.chars().all(plain) {
        return false;
    }
    let first = span.split_once('/').map(|(first, _)| first);
    FILE_ENDS.iter().any(|end| span.ends_with(end) && span.len() > end.len())
        || first.is_some_and(|first| !first.is_empty() && exists(files, first))
}

/// The documents below `docs/` that a line names.
fn documents(line: &str) -> Vec<&str> {
    let part = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    let starts = line
        .match_indices("docs/")
        .filter(|(at, _)| line[..*at].chars().next_back().is_none_or(|before| !part(before)));
    starts
        .filter_map(|(at, _)| {
            let rest = &line[at..];
            let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
            let name = rest[..end].trim_end_matches('.');
            name.ends_with(".md").then_some(name)
        })
        .collect()
}
