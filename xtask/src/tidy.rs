//! Checks that the compiler does not do: paths and links to missing files, overlong files,
//! unfinished work, sources that no module names, paths of one machine, circular dependencies of
//! files.

mod circles;
mod links;
mod modules;
mod paths;
#[cfg(test)]
mod tests;
mod text;
mod uses;

use crate::Outcome;
use crate::files::{self, SourceFile};
use crate::findings::Findings;

/// Checks every file of the project.
pub fn check() -> Outcome<Findings> {
    let files = files::all()?;
    let mut findings = Findings::new("tidy");
    look(&files, &mut findings);
    findings.looked_at(format!("{} files", files.len()));
    Ok(findings)
}

fn look(files: &[SourceFile], findings: &mut Findings) {
    for file in files {
        text::check(file, findings);
        paths::check(file, files, findings);
        links::check(file, files, findings);
    }
    modules::check(files, findings);
    circles::check(files, findings);
}

/// Whether a path is a file of the project, or a directory with files in it.
fn exists(files: &[SourceFile], path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let at = files.partition_point(|file| file.path.as_str() < path);
    if files.get(at).is_some_and(|file| file.path == path) {
        return true;
    }
    let directory = format!("{path}/");
    let at = files.partition_point(|file| file.path < directory);
    files.get(at).is_some_and(|file| file.path.starts_with(&directory))
}

/// `path` relative to `directory`, without `.` and `..`; `None` if it leaves the project.
fn resolve(directory: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
