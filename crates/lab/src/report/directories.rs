//! Directories of results.

use crate::error::LabError;
use crate::results::{ExperimentResult, read_json};
use std::fs;
use std::path::{Path, PathBuf};

/// The results below a directory, by name.
pub(super) struct Results {
    /// The directory.
    pub(super) path: PathBuf,
    results: Vec<ExperimentResult>,
}

impl Results {
    /// Reads all results below a directory.
    pub(super) fn read(path: &Path) -> Result<Results, LabError> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(path).map_err(LabError::file(path))? {
            let path = entry.map_err(LabError::file(path))?.path().join("result.json");
            if path.is_file() {
                paths.push(path);
            }
        }
        paths.sort();
        if paths.is_empty() {
            return Err(LabError::Parameter(format!(
                "{}: no results in it; run experiments with `softflash lab run NAME --out {}`",
                path.display(),
                path.display()
            )));
        }
        let results = paths.iter().map(|path| read_json(path)).collect::<Result<_, LabError>>()?;
        Ok(Results { path: path.to_owned(), results })
    }

    /// All results.
    pub(super) fn all(&self) -> impl Iterator<Item = &ExperimentResult> {
        self.results.iter()
    }

    /// The result of an experiment.
    pub(super) fn of(&self, experiment: &str) -> Option<&ExperimentResult> {
        self.results.iter().find(|result| result.experiment == experiment)
    }
}

/// The names of directories in the report: their last parts if these differ, else their paths. One
/// alone needs no name.
pub(super) fn names_of(directories: &[PathBuf]) -> Vec<String> {
    if directories.len() == 1 {
        return vec![String::new()];
    }
    let last = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let lasts: Option<Vec<String>> = directories.iter().map(last).collect();
    let whole = || directories.iter().map(|path| path.display().to_string()).collect();
    match lasts {
        Some(names) if are_different(&names) => names,
        _ => whole(),
    }
}

fn are_different(names: &[String]) -> bool {
    names.iter().enumerate().all(|(index, name)| !names.iter().take(index).any(|it| it == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_short_as_they_may_be() {
        let of = |paths: &[&str]| names_of(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["a/b"]), [""]);
        assert_eq!(of(&["a/b", "a/c"]), ["b", "c"]);
        assert_eq!(of(&["a/b", "c/b"]), ["a/b", "c/b"]);
        assert_eq!(of(&["..", "a"]), ["..", "a"]);
    }
}
