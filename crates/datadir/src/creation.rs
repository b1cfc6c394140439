//! Creates a data directory completely or not at all.
//!
//! The manifest is written first, under the name of an unfinished one, and renamed last: a
//! directory without a manifest is not a data directory, and one with an unfinished manifest holds
//! what an interrupted format has left, which the next one removes. After a failure all created
//! files are removed; the unfinished manifest is the last of them.

use crate::directory::{DEVICE_NAME, DataDir, LOCK_NAME, USERS_NAME};
use crate::error::DataDirError;
use crate::lock::{Lock, acquire_lock};
use crate::manifest::{MANIFEST_NAME, Manifest};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name of a new version of the manifest until it is complete.
const TEMPORARY_MANIFEST: &str = "softflash.toml.tmp";

/// Name of the manifest of a directory that is being created.
pub(crate) const UNFINISHED_MANIFEST: &str = "softflash.toml.unfinished";

/// Name of the record of a growth of the device, while it is under way or after a crash.
pub(crate) const GROWING: &str = "softflash.toml.growing";

/// The device, and what is made beside it to find out whether there is room.
const DEVICE_FILES: [&str; 2] = [DEVICE_NAME, PROBE_NAME];
const PROBE_NAME: &str = "flash.sfd.probe";

/// A data directory being created. What it has made is removed if this is dropped before
/// [`NewDataDir::finish`].
#[derive(Debug)]
pub struct NewDataDir {
    path: PathBuf,
    lock: Option<Lock>,
    made_directory: bool,
    /// The manifest, once older contents are deleted.
    manifest: Option<Manifest>,
    finished: bool,
}

impl NewDataDir {
    /// Creates the directory if it does not exist, and locks it. Nothing is deleted yet.
    ///
    /// # Errors
    /// [`DataDirError::Exists`] for a data directory without `force`, [`DataDirError::NotEmpty`]
    /// where the directory holds files that are not SoftFlash's, [`DataDirError::Busy`] where a
    /// process uses it.
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
        let (lock, manifest, finished) = (None, None, false);
        let mut new =
            NewDataDir { path: path.to_owned(), lock, made_directory, manifest, finished };
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
        Ok(new)
    }

    /// Path of the device to create.
    pub fn device_path(&self) -> PathBuf {
        self.path.join(DEVICE_NAME)
    }

    /// Deletes older contents. From now on the directory counts as unfinished.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn clear(&mut self, manifest: Manifest) -> Result<(), DataDirError> {
        let failed = |source| DataDirError::Io { path: self.path.clone(), source };
        text_of(&manifest)
            .and_then(|text| write_durably(&self.path.join(UNFINISHED_MANIFEST), &text))
            .and_then(|()| File::open(&self.path)?.sync_all())
            .map_err(failed)?;
        remove_contents(&self.path).map_err(failed)?;
        self.manifest = Some(manifest);
        Ok(())
    }

    /// Gives the manifest its name: from now on this is a data directory, durably.
    ///
    /// # Errors
    /// Errors of the file system; then all created files are removed.
    pub fn finish(mut self) -> Result<DataDir, DataDirError> {
        let path = self.path.join(MANIFEST_NAME);
        fs::rename(self.path.join(UNFINISHED_MANIFEST), &path)
            .and_then(|()| sync_with_parent(&self.path))
            .map_err(|source| DataDirError::Io { path, source })?;
        let (Some(lock), Some(manifest)) = (self.lock.take(), self.manifest.take()) else {
            return Err(DataDirError::Busy { path: self.path.clone(), holder: None });
        };
        self.finished = true;
        Ok(DataDir::created(&self.path, manifest, lock))
    }
}

/// Writes the manifest of a directory durably: the old one or the new one is there.
pub(crate) fn write_manifest(directory: &Path, manifest: &Manifest) -> io::Result<()> {
    let temporary = directory.join(TEMPORARY_MANIFEST);
    write_durably(&temporary, &text_of(manifest)?)?;
    fs::rename(&temporary, directory.join(MANIFEST_NAME))?;
    sync_with_parent(directory)
}

/// Writes the manifest that a directory will have, durably, beside the one that counts:
/// [`put_staged`] needs no space then.
pub(crate) fn stage_manifest(directory: &Path, manifest: &Manifest) -> io::Result<()> {
    let (temporary, text) = (directory.join(TEMPORARY_MANIFEST), text_of(manifest)?);
    match has_text(&temporary, &text) {
        true => File::open(&temporary)?.sync_all()?,
        false => write_durably(&temporary, &text)?,
    }
    File::open(directory)?.sync_all()
}

/// As [`write_manifest`], of a manifest that was [staged](stage_manifest): it is only renamed,
/// unless something else has its place.
pub(crate) fn put_staged(directory: &Path, manifest: &Manifest) -> io::Result<()> {
    let temporary = directory.join(TEMPORARY_MANIFEST);
    if !has_text(&temporary, &text_of(manifest)?) {
        return write_manifest(directory, manifest);
    }
    fs::rename(&temporary, directory.join(MANIFEST_NAME))?;
    sync_with_parent(directory)
}

/// Removes a manifest that was staged, and will not count.
pub(crate) fn remove_staged(directory: &Path) -> io::Result<()> {
    remove_if_there(&directory.join(TEMPORARY_MANIFEST))
}

fn has_text(path: &Path, text: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|found| found == text)
}

fn text_of(manifest: &Manifest) -> io::Result<String> {
    manifest.to_text().map_err(io::Error::other)
}

/// Writes a file whose contents are durable; its name is once its directory is.
pub(crate) fn write_durably(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Makes the names in a directory durable, and its own.
fn sync_with_parent(directory: &Path) -> io::Result<()> {
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
        let cleared = match self.manifest {
            Some(_) => remove_contents(&self.path)
                .and_then(|()| remove_if_there(&self.path.join(UNFINISHED_MANIFEST))),
            None => Ok(()),
        };
        // The lock of a data directory that stays is kept.
        let is_kept = self.path.join(MANIFEST_NAME).exists();
        let removed = cleared.and_then(|()| match (is_kept, self.made_directory) {
            (true, _) => Ok(()),
            (false, true) => {
                fs::remove_file(self.path.join(LOCK_NAME))?;
                fs::remove_dir(&self.path)
            }
            (false, false) => remove_if_there(&self.path.join(LOCK_NAME)),
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
    let names = [TEMPORARY_MANIFEST].into_iter().chain(DEVICE_FILES);
    let names = names.chain([UNFINISHED_MANIFEST, LOCK_NAME]);
    let mut paths: Vec<PathBuf> = names.map(|name| path.join(name)).collect();
    if !path.exists() {
        paths.push(path.to_owned());
    }
    paths
}

/// All files of a data directory, in the order of removal.
pub fn contents(path: &Path) -> Vec<PathBuf> {
    let names = [MANIFEST_NAME, TEMPORARY_MANIFEST, GROWING].into_iter().chain(DEVICE_FILES);
    let names = names.chain([USERS_NAME, UNFINISHED_MANIFEST, LOCK_NAME]);
    names.map(|name| path.join(name)).chain([path.to_owned()]).collect()
}

/// Whether a directory can become a data directory without the loss of anything: it does not exist,
/// is empty, or holds only what an interrupted format has left.
pub fn is_free(path: &Path) -> bool {
    !path.exists() || check_free_to_take(path, false).is_ok()
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
    let is_unfinished = path.join(UNFINISHED_MANIFEST).exists();
    for entry in fs::read_dir(path).map_err(io_error)? {
        let name = entry.map_err(io_error)?.file_name();
        let is_any_of = |names: &[&str]| names.iter().any(|known| name == **known);
        let ours = is_any_of(&[LOCK_NAME, TEMPORARY_MANIFEST, UNFINISHED_MANIFEST, "lost+found"])
            // It is made and removed before the unfinished manifest is.
            || is_any_of(&[PROBE_NAME])
            || is_any_of(&[GROWING]) && (is_unfinished || force)
            || (is_unfinished || force) && is_any_of(&DEVICE_FILES)
            || is_unfinished && is_any_of(&[USERS_NAME]);
        if !ours {
            let found = name.to_string_lossy().into_owned();
            return Err(DataDirError::NotEmpty { path: path.to_owned(), found });
        }
    }
    Ok(())
}

/// Removes manifest, device and users; the manifest first and durably, because without it the
/// device is not used.
fn remove_contents(path: &Path) -> io::Result<()> {
    for name in [MANIFEST_NAME, TEMPORARY_MANIFEST, GROWING] {
        remove_if_there(&path.join(name))?;
    }
    File::open(path)?.sync_all()?;
    for name in DEVICE_FILES.into_iter().chain([USERS_NAME]) {
        remove_if_there(&path.join(name))?;
    }
    Ok(())
}

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
