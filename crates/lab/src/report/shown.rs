//! The results of an experiment in a directory, with its runs.

use crate::error::LabError;
use crate::results::{CellFile, Directory, ExperimentResult};
use std::path::Path;

/// A cell with its name in the report: the label of its first row.
pub(super) struct Run {
    pub(super) label: String,
    pub(super) file: CellFile,
    /// Whether it is the first of its replicates, which the charts show.
    pub(super) is_first: bool,
}

/// An experiment's result in one of the directories, with its runs.
pub(super) struct Shown<'a> {
    /// The name of the directory; empty if there is only one.
    pub(super) directory: &'a str,
    pub(super) result: &'a ExperimentResult,
    pub(super) runs: Vec<Run>,
}

impl<'a> Shown<'a> {
    /// Reads the runs of a result in the directory at `path`.
    pub(super) fn read(
        directory: &'a str,
        path: &Path,
        result: &'a ExperimentResult,
    ) -> Result<Shown<'a>, LabError> {
        Ok(Shown { directory, result, runs: runs_of(directory, path, result)? })
    }
}

fn runs_of(name: &str, path: &Path, result: &ExperimentResult) -> Result<Vec<Run>, LabError> {
    let directory = Directory::new(path, &result.experiment);
    let mut runs = Vec::with_capacity(result.cells.len());
    for replicates in result.cells.chunks(result.replicates.max(1) as usize) {
        let Some(first) = replicates.first() else { continue };
        let row = result.rows.iter().find(|row| row.cell.as_ref() == Some(first));
        let label = row.map_or_else(|| first.clone(), |row| row.label.clone());
        let label = if name.is_empty() { label } else { format!("{label}, {name}") };
        for (number, key) in (1..).zip(replicates) {
            let file = CellFile::read(&directory, key)?;
            let is_first = number == 1;
            let label =
                if is_first { label.clone() } else { format!("{label}, replicate {number}") };
            runs.push(Run { label, file, is_first });
        }
    }
    Ok(runs)
}
