//! Errors of data directories.

use softflash_base::shell_word;
use softflash_device::{FormatError, OpenError};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a data directory cannot be created or opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// The path does not exist.
    #[error("{}: no such directory; create one with `softflash format {} --size 8GiB`", path.display(), word(path))]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has no `softflash.toml`.
    #[error("{}: not a SoftFlash data directory (no softflash.toml); create one with `softflash format {} --size 8GiB`", path.display(), word(path))]
    NotADataDir {
        /// The directory.
        path: PathBuf,
    },
    /// The path is not a directory.
    #[error("{}: not a directory; name the directory that holds softflash.toml", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Another process has the directory open.
    #[error("{}: busy: in use by another softflash process{}; stop that one first", path.display(), holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Busy {
        /// The directory.
        path: PathBuf,
        /// The process, if the lock file names it.
        holder: Option<u32>,
    },
    /// The directory cannot be written.
    #[error("{}: cannot be written ({source}); `softflash info`, `check`, `units`, `volume list` and `dump` only read", path.display())]
    Unwritable {
        /// The directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Written by a later version.
    #[error("{}: format version {found} is newer than {supported}, the newest that this program reads; use a newer softflash", path.display())]
    NewerVersion {
        /// The manifest.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version supported.
        supported: u32,
    },
    /// The manifest is invalid.
    #[error("{}: damaged ({reason}); restore it from a backup", path.display())]
    DamagedManifest {
        /// The manifest.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The layout in the manifest does not fit the device.
    #[error("{}: {reason}", path.display())]
    Layout {
        /// The manifest.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The data directory exists already.
    #[error("{}: already a SoftFlash data directory; use --force to delete its contents and create a new one", path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has other files.
    #[error("{}: not empty (it holds `{found}`); name an empty or a new directory", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of these files.
        found: String,
    },
    /// The device cannot be opened.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// The device cannot be created.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// An error of the operating system.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// The path as a word of a command.
fn word(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}
