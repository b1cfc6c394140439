//! Everything that the laboratory can fail with.

use crate::toml_text::{TomlError, suggestion};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why something in the laboratory fails, in one line that names the thing, the place and the
/// remedy.
#[derive(Debug, Error)]
pub enum LabError {
    /// A TOML file is not what it should be.
    #[error(transparent)]
    Toml(#[from] TomlError),
    /// No preset or experiment has this name.
    #[error("{place}no {what} is called `{name}`; {suggestion}; a path to a TOML file works too")]
    NoSuchPreset {
        /// Where a file asks for it, as `a.toml: line 3: `; empty for a command line.
        place: String,
        /// The kind of preset: `device`, `layout`, `workload`, `experiment`.
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest name, or all.
        suggestion: String,
    },
    /// The operating system, about a file.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of results is not what a run writes.
    #[error("{}: not a result of `softflash lab run`: {problem}; run the experiment again", path.display())]
    NotAResult {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// No engine can do this.
    #[error("{0}")]
    Unsupported(String),
    /// The parameters of a run contradict each other or the device.
    #[error("{0}")]
    Parameter(String),
    /// The simulation came upon something that must not be.
    #[error("the simulation failed: {0}")]
    Simulation(String),
    /// Not every request ended.
    #[error("{completed} of {requests} requests ended; the result cannot be trusted")]
    LostRequests {
        /// Made.
        requests: u64,
        /// Ended.
        completed: u64,
    },
    /// The run was asked to stop.
    #[error("stopped before its end")]
    Stopped,
    /// A trace.
    #[error(transparent)]
    Trace(#[from] softflash_trace::TraceError),
}

impl LabError {
    /// An error of the file at `path`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> LabError {
        let path = path.into();
        move |source| LabError::File { path, source }
    }

    /// No `what` is called `name`, with the nearest of those that are known.
    pub fn no_such<'a>(
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'a str> + Clone,
    ) -> LabError {
        let suggestion = suggestion(name, known);
        LabError::NoSuchPreset { place: String::new(), what, name: name.to_owned(), suggestion }
    }

    /// Whether the caller asked for something that cannot be, rather than that it failed.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            LabError::NoSuchPreset { .. } | LabError::Unsupported(_) | LabError::Parameter(_)
        )
    }
}
