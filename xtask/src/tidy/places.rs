//! Paths of the project: which exist, and which files hold the modules around a source.

use crate::files::SourceFile;

/// Whether a path is a file of the project, or a directory with files in it.
pub fn exists(files: &[SourceFile], path: &str) -> bool {
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
pub fn resolve(directory: &str, path: &str) -> Option<String> {
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

/// The files that may declare the modules of a directory.
pub fn parents(directory: &str) -> Vec<String> {
    let within = ["mod.rs", "lib.rs", "main.rs"].map(|name| format!("{directory}/{name}"));
    within.into_iter().chain([format!("{directory}.rs")]).collect()
}

/// The files that may hold the modules around a source, up to the crate root.
pub fn ancestors(path: &str) -> Vec<String> {
    let Some((mut inside, _)) = path.rsplit_once('/') else { return Vec::new() };
    let mut found = Vec::new();
    while let Some((above, _)) = inside.rsplit_once('/') {
        found.extend(parents(inside));
        if inside.ends_with("/src") {
            break;
        }
        inside = above;
    }
    found
}
