//! The errors of the laboratory.

use crate::import::ImportError;
use crate::toml_text::{TomlError, suggestion};
use softflash_base::UserError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// An error of the laboratory: one line that names the object, the place and the remedy.
#[derive(Debug, Error)]
pub enum LabError {
    /// A TOML file is invalid.
    #[error(transparent)]
    Toml(#[from] TomlError),
    /// No preset or experiment has this name.
    #[error("{place}no {what} is called `{name}`; {suggestion}; a path to a TOML file works too")]
    NoSuchPreset {
        /// The place of the name in a file, as `a.toml: line 3: `; empty for the command line.
        place: String,
        /// The kind of preset: `device`, `layout`, `workload`, `experiment`.
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest known name, or all of them.
        suggestion: String,
    },
    /// An I/O error of a file.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file of results is not one that a run has written.
    #[error("{}: not a result of `softflash lab run`: {problem}; run the experiment again", path.display())]
    NotAResult {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// No engine supports this.
    #[error("{0}")]
    Unsupported(String),
    /// The parameters of a run contradict each other or the device.
    #[error("{0}")]
    Parameter(String),
    /// The simulation reached an invalid state.
    #[error("the simulation failed: {0}")]
    Simulation(String),
    /// Not every request completed.
    #[error("{completed} of {requests} requests ended; the result cannot be trusted")]
    LostRequests {
        /// Requests submitted.
        requests: u64,
        /// Requests completed.
        completed: u64,
    },
    /// The caller stopped the run.
    #[error("stopped before its end")]
    Stopped,
    /// A file of another program is invalid.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A trace is invalid.
    #[error(transparent)]
    Trace(#[from] softflash_trace::TraceError),
}

impl LabError {
    /// Wraps an I/O error of the file at `path`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> LabError {
        let path = path.into();
        move |source| LabError::File { path, source }
    }

    /// The error for an unknown `name` of the kind `what`, with the nearest known name.
    pub fn no_such<'a>(
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'a str> + Clone,
    ) -> LabError {
        let suggestion = suggestion(name, known);
        LabError::NoSuchPreset { place: String::new(), what, name: name.to_owned(), suggestion }
    }
}

impl UserError for LabError {
    fn is_usage(&self) -> bool {
        matches!(
            self,
            LabError::NoSuchPreset { .. } | LabError::Unsupported(_) | LabError::Parameter(_)
        )
    }
}
