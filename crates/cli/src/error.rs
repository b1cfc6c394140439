//! Errors of commands.

use crate::client::RespError;
use crate::dump_file::DumpError;
use softflash_datadir::DataDirError;
use softflash_device::OpenError;
use softflash_lab::LabError;
use softflash_server::ServerError;
use softflash_store::StoreError;
use softflash_trace::TraceError;
use softflash_trace::adapt::AdaptError;
use softflash_volume::VolumeError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a command failed: one line that names the object, the place and the remedy.
#[derive(Debug, Error)]
pub enum CliError {
    /// Wrong usage.
    #[error("{0}")]
    Usage(String),
    /// A failure without a type of its own.
    #[error("{0}")]
    Failed(String),
    /// The data directory.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The device.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A dump file.
    #[error("{}: {error}", path.display())]
    Dump {
        /// The file.
        path: PathBuf,
        /// The error.
        error: DumpError,
    },
    /// A running server.
    #[error(transparent)]
    Resp(#[from] RespError),
    /// A block trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The laboratory.
    #[error(transparent)]
    Lab(#[from] LabError),
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

impl CliError {
    /// 2 for wrong usage, 1 for a failure.
    pub fn exit_code(&self) -> u8 {
        let usage = match self {
            CliError::Usage(_) => true,
            CliError::Server(error) => error.is_usage(),
            CliError::DataDir(error) => error.is_usage(),
            CliError::Trace(TraceError::Adapt(error)) => matches!(
                error,
                AdaptError::Speed(_) | AdaptError::NoCopies | AdaptError::EmptyDevice
            ),
            CliError::Lab(error) => error.is_usage(),
            _ => false,
        };
        if usage { 2 } else { 1 }
    }

    /// An error of the file at `path`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> CliError {
        let path = path.into();
        move |source| CliError::File { path, source }
    }

    /// An error of the store in the directory at `path`.
    pub fn store<E: Into<StoreError>>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> CliError {
        let path = path.into();
        move |error| DataDirError::store(path)(error.into()).into()
    }

    /// An error of the volumes in the directory at `path`.
    pub fn volume(path: impl Into<PathBuf>) -> impl FnOnce(VolumeError) -> CliError {
        let path = path.into();
        move |error| DataDirError::volume(path)(error).into()
    }
}
