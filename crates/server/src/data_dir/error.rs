//! What can be wrong with a data directory.

use softflash_device::{FormatError, OpenError};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a data directory cannot be made or opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// There is nothing at the path.
    #[error("{}: no such directory; make one with `softflash format {}`", path.display(), path.display())]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds no `softflash.toml`.
    #[error("{}: not a SoftFlash data directory (no softflash.toml); make one with `softflash format {}`", path.display(), path.display())]
    NotADataDir {
        /// The directory.
        path: PathBuf,
    },
    /// The path is no directory.
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
        /// The process, where the lock file says.
        holder: Option<u32>,
    },
    /// Written by a later version.
    #[error("{}: format version {found} is newer than {supported}, the newest this program reads; use a newer softflash", path.display())]
    NewerVersion {
        /// The manifest.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version supported.
        supported: u32,
    },
    /// The manifest is there and makes no sense.
    #[error("{}: damaged ({reason}); restore it from a backup", path.display())]
    DamagedManifest {
        /// The manifest.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// The layout in the manifest does not fit the device.
    #[error("{}: {reason}", path.display())]
    Layout {
        /// The manifest.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// There is something already.
    #[error("{}: already a SoftFlash data directory; to lose its contents and make a new one, use --force", path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// There are other files.
    #[error("{}: not empty (it holds `{found}`); name an empty or a new directory", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the files.
        found: String,
    },
    /// The device in it cannot be opened.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// The device in it cannot be made.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path tried.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}
