//! The files of the project: those that git tracks or would track.

use crate::Outcome;
use crate::run::{output, root};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A file; its path is relative to the root, with forward slashes.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Relative to the root.
    pub path: String,
    /// Its text; empty if it is not UTF-8.
    pub text: String,
}

impl SourceFile {
    /// The file name extension, or nothing.
    pub fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Its directory, empty for the root.
    pub fn directory(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(directory, _)| directory)
    }
}

/// Every file of the project that still exists.
pub fn all() -> Outcome<Vec<SourceFile>> {
    let mut command = Command::new("git");
    command.current_dir(root());
    command.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
    let listed = match output(&mut command) {
        Ok(listed) => listed.split('\0').map(str::to_owned).collect(),
        // Not a git checkout: an unpacked archive.
        Err(_) => walk()?,
    };
    let mut files: Vec<SourceFile> = listed.into_iter().filter_map(load).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    match files.len() {
        0 => Err(format!("no file found below {}", root().display())),
        _ => Ok(files),
    }
}

fn load(path: String) -> Option<SourceFile> {
    let bytes = fs::read(root().join(&path)).ok()?;
    Some(SourceFile { path, text: String::from_utf8(bytes).unwrap_or_default() })
}

/// All files below the root except build outputs.
fn walk() -> Outcome<Vec<String>> {
    let root = root();
    let (mut directories, mut found) = (vec![PathBuf::new()], Vec::new());
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(root.join(&directory)).map_err(|error| error.to_string())?;
        for entry in entries.flatten() {
            let path = directory.join(entry.file_name());
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !name.starts_with("target") && name != ".git" => {
                    directories.push(path);
                }
                Ok(kind) if kind.is_file() => found.push(path.to_string_lossy().into_owned()),
                _ => {}
            }
        }
    }
    Ok(found)
}
