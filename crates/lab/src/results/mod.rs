//! The results of experiments, as files.
//!
//! A directory of results has one directory for each experiment: `result.json` and `result.csv`
//! with its rows, `table.csv` with those of several measures, and `cells/KEY.json` with everything
//! about each run. They contain no wall-clock time, number of threads or other property of the
//! machine.

mod agreement;
mod cell_file;
mod columns;
mod rows;
mod spread;
pub mod warnings;
mod write;

pub use agreement::Agreement;
pub use cell_file::{CellFile, fingerprint};
pub use columns::{ColumnTable, TableColumn, TableRow, TableValue};
pub use rows::{ExperimentResult, ResultPoint, ResultRow};
pub use spread::Spread;
pub(crate) use spread::mean_and_spread;
pub use write::{read_json, write_atomically, write_json};

use std::path::{Path, PathBuf};

/// The directory of an experiment's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// The directory of the experiment `name` in `out`.
    pub fn new(out: &Path, name: &str) -> Directory {
        Directory { path: out.join(name) }
    }

    /// The file of a cell.
    pub fn cell(&self, key: &str) -> PathBuf {
        self.path.join("cells").join(format!("{key}.json"))
    }

    /// The rows, for programs.
    pub fn json(&self) -> PathBuf {
        self.path.join("result.json")
    }

    /// The table of columns, for spreadsheets.
    pub fn table(&self) -> PathBuf {
        self.path.join("table.csv")
    }

    /// The rows, for spreadsheets.
    pub fn csv(&self) -> PathBuf {
        self.path.join("result.csv")
    }
}
