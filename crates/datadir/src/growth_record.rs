//! The record of a growth that is under way. It says what the table of sets will be once the label
//! of the device names all units: so the next one who opens the directory after a crash either
//! completes the growth, or undoes it.

use crate::creation::{GROWING, put_staged, remove_if_there, remove_staged, write_durably};
use crate::error::DataDirError;
use crate::manifest::{MANIFEST_NAME, Manifest};
use crate::set_table::SetTable;
use serde::{Deserialize, Serialize};
use softflash_device::settle_size;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What the directory will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// Units of the device.
    pub device_units: u16,
    /// The table of sets.
    pub sets: SetTable,
}

impl Record {
    fn path(directory: &Path) -> PathBuf {
        directory.join(GROWING)
    }

    /// Whether there is one.
    pub fn is_in(directory: &Path) -> bool {
        Record::path(directory).exists()
    }

    /// The record in a directory. One that cannot be read was not complete when a crash came, so
    /// that nothing else had begun.
    pub fn read(directory: &Path) -> Option<Record> {
        let text = fs::read_to_string(Record::path(directory)).ok()?;
        toml::from_str(&text).ok()
    }

    /// Writes it, durably.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let fields = toml::to_string_pretty(self).map_err(io::Error::other)?;
        let text =
            format!("# `softflash grow` is at work; the next start completes it.\n\n{fields}");
        write_durably(&Record::path(directory), &text)?;
        File::open(directory)?.sync_all()
    }

    /// Removes it. A crash may leave it: then it names a table that is there already, or one that
    /// cannot follow.
    pub fn remove(directory: &Path) -> io::Result<()> {
        remove_if_there(&Record::path(directory))?;
        File::open(directory)?.sync_all()
    }
}

/// Completes or undoes a growth that was interrupted, in a locked directory. Returns the manifest
/// that counts.
pub(crate) fn settle(path: &Path, manifest: Manifest) -> Result<Manifest, DataDirError> {
    if !Record::is_in(path) {
        return Ok(manifest);
    }
    let units = settle_size(&path.join(&manifest.device))?.units;
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| DataDirError::Io { path, source }
    };
    let follows = |record: &Record| {
        let epoch = manifest.sets.as_ref().map(|sets| sets.epoch);
        record.device_units == units
            && epoch.and_then(|epoch: u32| epoch.checked_add(1)) == Some(record.sets.epoch)
    };
    let settled = match Record::read(path).filter(follows) {
        Some(record) => {
            let grown = manifest.with_sets(record.sets);
            put_staged(path, &grown).map_err(failed(&path.join(MANIFEST_NAME)))?;
            tracing::info!(path = %path.display(), units, "an interrupted growth is completed");
            grown
        }
        None => {
            remove_staged(path).map_err(failed(path))?;
            manifest
        }
    };
    Record::remove(path).map_err(failed(path))?;
    Ok(settled)
}
