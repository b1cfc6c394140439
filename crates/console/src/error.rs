//! Errors of commands.

use softflash_base::UserError;
use std::error::Error;
use std::io;
use std::path::PathBuf;

/// Why a command failed: one line that names the object, the place and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Wrong usage.
    #[error("{0}")]
    Usage(String),
    /// A failure without a type of its own.
    #[error("{0}")]
    Failed(String),
    /// An error of a part of the system.
    #[error("{error}")]
    Part {
        /// The error.
        error: Box<dyn Error + Send + Sync>,
        /// Whether it is wrong usage.
        is_usage: bool,
    },
    /// An error of the operating system about a file.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Another error of the operating system.
    #[error("{what}: {source}")]
    Io {
        /// The failed action.
        what: &'static str,
        /// The error.
        source: io::Error,
    },
}

impl<E: UserError> From<E> for CliError {
    fn from(error: E) -> CliError {
        CliError::Part { is_usage: error.is_usage(), error: Box::new(error) }
    }
}

impl CliError {
    /// 2 for wrong usage, 1 for a failure.
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Usage(_) | CliError::Part { is_usage: true, .. } => 2,
            _ => 1,
        }
    }

    /// An error of the file at `path`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> CliError {
        let path = path.into();
        move |source| CliError::File { path, source }
    }

    /// The error of the part of the system that has errors of this type.
    pub fn of_part<E: UserError>(&self) -> Option<&E> {
        match self {
            CliError::Part { error, .. } => error.downcast_ref(),
            _ => None,
        }
    }
}
