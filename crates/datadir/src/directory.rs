//! A data directory: manifest, device, users and lock.
//!
//! ```text
//! DIR/softflash.toml   the manifest (see `manifest`); a directory with it is a data directory
//! DIR/flash.sfd        the device, unless the manifest names another
//! DIR/users.acl        users and permissions, once ACL SAVE has written it
//! DIR/lock             locked by the process that has the directory open
//! DIR/softflash.toml.unfinished   the manifest while `format` is at work, or after it was killed
//! DIR/softflash.toml.growing      what `grow` is about to do, or was when it was killed
//! ```

use crate::creation::{self, UNFINISHED_MANIFEST};
use crate::error::DataDirError;
use crate::growth_record;
use crate::lock::{Lock, acquire_lock, lock_to_look};
use crate::manifest::{FORMAT_VERSION, MANIFEST_NAME, Manifest};
use softflash_device::{Access, Device, OpenOptions};
use softflash_store::StoreLayout;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Default name of the device in the directory.
pub const DEVICE_NAME: &str = "flash.sfd";

/// Name of the file of users.
pub const USERS_NAME: &str = "users.acl";

/// Name of the lock file in the directory.
pub(crate) const LOCK_NAME: &str = "lock";

/// An open and locked data directory.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    manifest: Manifest,
    /// Holds the lock; none of a directory that cannot be written.
    _lock: Option<Lock>,
}

impl DataDir {
    /// A directory that was just created, with its lock.
    pub(crate) fn created(path: &Path, manifest: Manifest, lock: Lock) -> DataDir {
        DataDir { path: path.to_owned(), manifest, _lock: Some(lock) }
    }

    /// Opens and locks the directory, but not its device.
    ///
    /// # Errors
    /// [`DataDirError`]: the directory is invalid, or another process uses it.
    pub fn open(path: &Path) -> Result<DataDir, DataDirError> {
        DataDir::inspect(path)?;
        let lock = acquire_lock(path)?;
        // Another process may have changed it before it released the lock.
        let manifest = growth_record::settle(path, DataDir::inspect(path)?)?;
        // Left by a format that was killed before it deleted this directory: nothing reads it. It
        // must not be taken for the remains of one if the manifest gets lost.
        let _ = fs::remove_file(path.join(UNFINISHED_MANIFEST));
        Ok(DataDir { path: path.to_owned(), manifest, _lock: Some(lock) })
    }

    /// As [`open`](DataDir::open), to read only: also on a file system that cannot be written.
    ///
    /// # Errors
    /// As [`open`](DataDir::open).
    pub fn open_to_look(path: &Path) -> Result<DataDir, DataDirError> {
        DataDir::inspect(path)?;
        let lock = lock_to_look(path)?;
        let manifest = DataDir::inspect(path)?;
        Ok(DataDir { path: path.to_owned(), manifest, _lock: lock })
    }

    /// Reads the manifest without the lock: also works while a server has the directory open.
    ///
    /// # Errors
    /// As [`DataDir::open`], except [`DataDirError::Busy`].
    pub fn inspect(path: &Path) -> Result<Manifest, DataDirError> {
        let owned = || path.to_owned();
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(DataDirError::NotADirectory { path: owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DataDirError::Missing { path: owned() });
            }
            Err(source) => return Err(DataDirError::Io { path: owned(), source }),
        }
        let file = path.join(MANIFEST_NAME);
        match fs::read_to_string(&file) {
            Ok(text) => Manifest::parse(&file, &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // An interrupted format leaves a device, too, and its mark.
                let is_orphan =
                    path.join(DEVICE_NAME).exists() && !path.join(UNFINISHED_MANIFEST).exists();
                match is_orphan {
                    true => Err(DataDirError::NoManifest { path: owned() }),
                    false => Err(DataDirError::NotADataDir { path: owned() }),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let reason = "it is not UTF-8 text".to_owned();
                Err(DataDirError::DamagedManifest { path: file, reason })
            }
            Err(source) => Err(DataDirError::Io { path: file, source }),
        }
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The contents of `softflash.toml`.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Path of the device.
    pub fn device_path(&self) -> PathBuf {
        self.path.join(&self.manifest.device)
    }

    /// Opens the device and checks the layout against it. The layout returned is that of the store,
    /// which has the units of its sets; [`Manifest::domains`] has those for volumes. Unless
    /// the options only look, a directory of an older version becomes one of the version that this
    /// program writes.
    ///
    /// # Errors
    /// The device's [`OpenError`](softflash_device::OpenError), or [`DataDirError::Layout`] where
    /// the layout does not fit the device.
    pub fn open_device(
        &self,
        options: OpenOptions,
    ) -> Result<(Arc<dyn Device>, StoreLayout), DataDirError> {
        let may_write = options.access == Access::Write;
        let device = softflash_device::open_with(&self.device_path(), options)?;
        let units = device.info().units;
        if let Some(reason) = self.manifest.problem(units) {
            return Err(DataDirError::Layout { path: self.path.join(MANIFEST_NAME), reason });
        }
        if may_write {
            self.raise_version()?;
        }
        Ok((device, self.manifest.layout(units)))
    }

    /// Records in the manifest that the store may now hold data of the version that this program
    /// writes, so that older programs refuse it.
    fn raise_version(&self) -> Result<(), DataDirError> {
        if self.manifest.format_version >= FORMAT_VERSION {
            return Ok(());
        }
        let raised = Manifest { format_version: FORMAT_VERSION, ..self.manifest.clone() };
        self.write_manifest(&raised)
    }

    /// Replaces the manifest durably: after a crash the old one or the new one is there.
    pub(crate) fn replace_manifest(&mut self, manifest: Manifest) -> Result<(), DataDirError> {
        self.write_manifest(&manifest)?;
        self.manifest = manifest;
        Ok(())
    }

    /// Whether the file has the manifest as it is known here: not if one that replaces it could be
    /// written, and not be made durable.
    pub fn is_as_known(&self) -> bool {
        DataDir::inspect(&self.path).is_ok_and(|on_disk| on_disk == self.manifest)
    }

    /// Takes this for the manifest, whether the disk has it or not.
    pub(crate) fn presume(&mut self, manifest: Manifest) {
        self.manifest = manifest;
    }

    /// Writes the manifest that will [replace](DataDir::put_manifest) this one, durably, so that no
    /// space is needed then.
    pub(crate) fn stage_manifest(&self, manifest: &Manifest) -> Result<(), DataDirError> {
        creation::stage_manifest(&self.path, manifest).map_err(self.manifest_error())
    }

    /// As [`replace_manifest`](DataDir::replace_manifest), by one that was staged.
    pub(crate) fn put_manifest(&mut self, manifest: Manifest) -> Result<(), DataDirError> {
        creation::put_staged(&self.path, &manifest).map_err(self.manifest_error())?;
        self.manifest = manifest;
        Ok(())
    }

    fn manifest_error(&self) -> impl FnOnce(io::Error) -> DataDirError + use<> {
        let path = self.path.join(MANIFEST_NAME);
        move |source| DataDirError::Io { path, source }
    }

    fn write_manifest(&self, manifest: &Manifest) -> Result<(), DataDirError> {
        creation::write_manifest(&self.path, manifest).map_err(self.manifest_error())
    }
}
