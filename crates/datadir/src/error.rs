//! Errors of data directories.

use crate::moves::MoveError;
use crate::set_table::SetError;
use softflash_base::{UserError, shell_word};
use softflash_device::{FormatError, GrowthError, OpenError};
use softflash_store::StoreError;
use softflash_volume::VolumeError;
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
    /// The directory has a device, and no `softflash.toml`, which describes it.
    #[error("{}: flash.sfd is there, and softflash.toml, which describes it, is missing; restore that file from a backup", path.display())]
    NoManifest {
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
    #[error("{}: already a SoftFlash data directory; name another one, or use --force to delete its contents", path.display())]
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
    /// A data directory with these options cannot be.
    #[error("{0}")]
    Options(String),
    /// The device cannot be opened.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// The store in the directory.
    #[error("{}: {error}", path.display())]
    Store {
        /// The directory.
        path: PathBuf,
        /// The error.
        error: StoreError,
    },
    /// The volumes in the directory.
    #[error("{}: {error}{}", path.display(), remedy(path, error))]
    Volume {
        /// The directory.
        path: PathBuf,
        /// The error.
        error: VolumeError,
    },
    /// The volumes of a domain, which cannot be opened.
    #[error("{}: volumes of {place}: {error}{}", path.display(), diagnosis(path, error))]
    Domain {
        /// The directory.
        path: PathBuf,
        /// The shard or the set of the domain.
        place: String,
        /// The error.
        error: VolumeError,
    },
    /// A change of its sets of units that is refused.
    #[error("{}: {error}", path.display())]
    Set {
        /// The directory.
        path: PathBuf,
        /// The error.
        error: SetError,
    },
    /// Volumes that do not move from one set to another.
    #[error("{}: {error}{}", path.display(), remedy_of_move(path, error))]
    Move {
        /// The directory.
        path: PathBuf,
        /// The error.
        error: Box<MoveError>,
    },
    /// The directory has no units for volumes.
    #[error("{}: it is without volume units, so it can hold no volumes; if `softflash set list {}` names \
             spare units, `softflash set create` gives them to volumes, and `softflash grow --spare M` adds some; \
             otherwise create a directory that can with `softflash format DIR --size SIZE --volume-units M`", path.display(), word(path))]
    NoVolumeUnits {
        /// The directory.
        path: PathBuf,
    },
    /// The operating system gives no executor what it needs.
    #[error("starting an executor: {0}")]
    Executor(io::Error),
    /// The device gets no more units.
    #[error("{}: {error}", path.display())]
    Growth {
        /// The directory.
        path: PathBuf,
        /// The error.
        error: GrowthError,
    },
    /// The size of a larger device.
    #[error("{}: {reason}", path.display())]
    Size {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
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

impl DataDirError {
    /// An error of the store in the directory at `path`.
    pub fn store<E: Into<StoreError>>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> DataDirError {
        let path = path.into();
        move |error| DataDirError::Store { path, error: error.into() }
    }

    /// An error of the volumes in the directory at `path`.
    pub fn volume(path: impl Into<PathBuf>) -> impl FnOnce(VolumeError) -> DataDirError {
        let path = path.into();
        move |error| DataDirError::Volume { path, error }
    }

    /// The device of the directory at `path` gets no more units.
    pub fn growth(path: impl Into<PathBuf>) -> impl Fn(GrowthError) -> DataDirError {
        let path = path.into();
        move |error| DataDirError::Growth { path: path.clone(), error }
    }

    /// A move of volumes of the directory at `path` that has failed.
    pub fn moving(path: impl Into<PathBuf>) -> impl FnOnce(MoveError) -> DataDirError {
        let path = path.into();
        move |error| DataDirError::Move { path, error: Box::new(error) }
    }

    /// A refused change of the sets of the directory at `path`.
    pub fn set(path: impl Into<PathBuf>) -> impl FnOnce(SetError) -> DataDirError {
        let path = path.into();
        move |error| DataDirError::Set { path, error }
    }
}

impl UserError for DataDirError {
    fn is_usage(&self) -> bool {
        match self {
            DataDirError::Options(_) => true,
            DataDirError::Set { error, .. } => {
                matches!(error, SetError::BadName { .. } | SetError::BadShares { .. })
            }
            DataDirError::Format(error) => matches!(
                error,
                FormatError::TooSmall { .. }
                    | FormatError::Superblock { .. }
                    | FormatError::NoUnits
            ),
            DataDirError::Volume { error, .. } => matches!(
                error,
                VolumeError::BadName { .. }
                    | VolumeError::BadSize { .. }
                    | VolumeError::BadSetting { .. }
                    | VolumeError::NoSetting { .. }
            ),
            _ => false,
        }
    }
}

/// The remedy for an error of the volumes in `directory`, where the error does not say it.
fn remedy(directory: &Path, error: &VolumeError) -> String {
    match error {
        VolumeError::NoVolume { .. } => {
            format!("; `softflash volume list {}` lists them", word(directory))
        }
        VolumeError::WouldLose { .. } => "; add --shrink to lose them".to_owned(),
        _ => String::new(),
    }
}

/// The remedy for a move that has failed, where the error does not say it.
fn remedy_of_move(directory: &Path, error: &MoveError) -> String {
    match error {
        MoveError::Volume(error) => remedy(directory, error),
        _ => String::new(),
    }
}

/// What to do about volumes that cannot be opened.
fn diagnosis(directory: &Path, error: &VolumeError) -> String {
    match error {
        VolumeError::Damaged { .. } | VolumeError::Flash(_) => {
            let directory = word(directory);
            format!("; `softflash check {directory}` names the damage and what can be done")
        }
        _ => String::new(),
    }
}

/// The path as a word of a command.
fn word(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}
