//! Links in Markdown documents to files of the project and to headings in them.

use super::places::{exists, resolve};
use crate::files::SourceFile;
use crate::findings::Findings;

/// Checks the links of one document.
pub fn check(file: &SourceFile, files: &[SourceFile], findings: &mut Findings) {
    if file.extension() != "md" {
        return;
    }
    for (number, line) in prose(&file.text) {
        for target in targets(line) {
            if let Some(problem) = problem(file, target, files) {
                findings.add(format!("{}:{number}", file.path), problem);
            }
        }
    }
}

fn problem(file: &SourceFile, target: &str, files: &[SourceFile]) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = match path {
        "" => file.path.clone(),
        path => resolve(file.directory(), path).unwrap_or_default(),
    };
    if !exists(files, &path) {
        return Some(format!("the link target {target} does not exist"));
    }
    let document = files.iter().find(|file| file.path == path);
    let known = heading.is_empty() || document.is_some_and(|document| has(document, heading));
    (!known).then(|| format!("{path} has no heading #{heading}"))
}

/// Whether a document has a heading with this anchor.
fn has(document: &SourceFile, anchor: &str) -> bool {
    prose(&document.text)
        .filter_map(|(_, line)| line.strip_prefix('#'))
        .any(|heading| anchor_of(heading.trim_start_matches('#')) == anchor)
}

/// GitHub's anchor for a heading.
fn anchor_of(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Lines outside of fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The targets of `[text](target)` in a line, except in code spans.
fn targets(line: &str) -> Vec<&str> {
    line.split('`')
        .step_by(2)
        .flat_map(|prose| prose.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
        .collect()
}
