//! Creates a data directory atomically.
//!
//! The manifest is written last, under a temporary name, and renamed: a directory without it is not
//! a data directory. After a failure all created files are removed. An interrupted process removes
//! [`leftovers`] before it ends.

use super::{DEVICE_NAME, DataDir, DataDirError, LOCK_NAME, MANIFEST_NAME, Manifest, acquire_lock};
use crate::users::USERS_NAME;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name of the manifest until it is complete.
const TEMPORARY_MANIFEST: &str = "softflash.toml.tmp";

/// A data directory being created; its files are removed if this is dropped before
/// [`NewDataDir::finish`].
#[derive(Debug)]
pub struct NewDataDir {
    path: PathBuf,
    lock: Option<File>,
    made_directory: bool,
    finished: bool,
}

impl NewDataDir {
    /// Creates the directory if it does not exist, and locks it. With `force`, the contents of an
    /// existing data directory are deleted.
    ///
    /// # Errors
    /// [`DataDirError::Exists`] without `force`, [`DataDirError::NotEmpty`] where the directory
    /// holds files that are not SoftFlash's, [`DataDirError::Busy`] where a process uses it.
    pub fn begin(path: &Path, force: bool) -> Result<NewDataDir, DataDirError> {
        let io_error = |source| DataDirError::Io { path: path.to_owned(), source };
        let made_directory = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(source) => return Err(io_error(source)),
        };
        if !made_directory {
            check_free_to_take(path, force)?;
        }
        let mut new =
            NewDataDir { path: path.to_owned(), lock: None, made_directory, finished: false };
        new.lock = match acquire_lock(path) {
            Ok(lock) => Some(lock),
            Err(busy) => {
                // The process that holds the lock needs these files.
                new.finished = true;
                return Err(busy);
            }
        };
        // Another process may have finished one between the check and the lock.
        if !force && path.join(MANIFEST_NAME).exists() {
            new.finished = true;
            return Err(DataDirError::Exists { path: path.to_owned() });
        }
        remove_contents(path).map_err(io_error)?;
        Ok(new)
    }

    /// Path of the device to create.
    pub fn device_path(&self) -> PathBuf {
        self.path.join(DEVICE_NAME)
    }

    /// Writes the manifest: from now on this is a data directory, durably.
    ///
    /// # Errors
    /// Errors of the file system; then all created files are removed.
    pub fn finish(mut self, manifest: Manifest) -> Result<DataDir, DataDirError> {
        write_manifest(&self.path, &manifest)
            .map_err(|source| DataDirError::Io { path: self.path.join(MANIFEST_NAME), source })?;
        let Some(lock) = self.lock.take() else {
            return Err(DataDirError::Busy { path: self.path.clone(), holder: None });
        };
        self.finished = true;
        Ok(DataDir { path: self.path.clone(), manifest, _lock: lock })
    }
}

/// Writes the manifest of a directory durably: the old one or the new one is there.
pub(super) fn write_manifest(directory: &Path, manifest: &Manifest) -> io::Result<()> {
    let temporary = directory.join(TEMPORARY_MANIFEST);
    let mut file = File::create(&temporary)?;
    file.write_all(manifest.to_text().map_err(io::Error::other)?.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, directory.join(MANIFEST_NAME))?;
    File::open(directory)?.sync_all()?;
    match directory.parent() {
        Some(parent) if parent.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

impl Drop for NewDataDir {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let removed = remove_contents(&self.path).and_then(|()| match self.made_directory {
            true => {
                fs::remove_file(self.path.join(LOCK_NAME))?;
                fs::remove_dir(&self.path)
            }
            false => remove_if_there(&self.path.join(LOCK_NAME)),
        });
        if let Err(error) = removed {
            tracing::warn!(path = %self.path.display(), %error, "unfinished directory not removed");
        }
    }
}

/// Files that an interrupted format of `path` may leave, in the order of removal; last the
/// directory itself, if it did not exist before.
pub fn leftovers(path: &Path) -> Vec<PathBuf> {
    if path.join(MANIFEST_NAME).exists() {
        return Vec::new();
    }
    let mut paths: Vec<PathBuf> =
        [TEMPORARY_MANIFEST, DEVICE_NAME, LOCK_NAME].map(|name| path.join(name)).into();
    if !path.exists() {
        paths.push(path.to_owned());
    }
    paths
}

/// All files of a data directory, in the order of removal.
pub fn contents(path: &Path) -> Vec<PathBuf> {
    let names = [MANIFEST_NAME, TEMPORARY_MANIFEST, DEVICE_NAME, USERS_NAME, LOCK_NAME];
    let mut paths: Vec<PathBuf> = names.map(|name| path.join(name)).into();
    paths.push(path.to_owned());
    paths
}

/// Refuses a directory that holds more than the remains of an earlier format, unless forced;
/// refuses one with other files even then.
fn check_free_to_take(path: &Path, force: bool) -> Result<(), DataDirError> {
    let io_error = |source| DataDirError::Io { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(io_error)?.is_dir() {
        return Err(DataDirError::NotADirectory { path: path.to_owned() });
    }
    if path.join(MANIFEST_NAME).exists() {
        return match force {
            true => Ok(()),
            false => Err(DataDirError::Exists { path: path.to_owned() }),
        };
    }
    for entry in fs::read_dir(path).map_err(io_error)? {
        let name = entry.map_err(io_error)?.file_name();
        let ours = [LOCK_NAME, TEMPORARY_MANIFEST, "lost+found"].iter().any(|known| name == *known)
            || (force && name == DEVICE_NAME);
        if !ours {
            let found = name.to_string_lossy().into_owned();
            return Err(DataDirError::NotEmpty { path: path.to_owned(), found });
        }
    }
    Ok(())
}

/// Removes manifest and device; the manifest first, because without it the device is not used.
fn remove_contents(path: &Path) -> io::Result<()> {
    for name in [MANIFEST_NAME, TEMPORARY_MANIFEST, DEVICE_NAME, USERS_NAME] {
        remove_if_there(&path.join(name))?;
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
