//! Opens the device at a path with the backend that its label names.

use crate::backends::{Backend, Capabilities};
use crate::file::{self, OpenOptions};
use crate::geometry::DeviceInfo;
use crate::label::{Configuration, open_exclusive, open_label, read_label};
use crate::model;
use crate::queue_pair::{Device, OpenError};
use crate::size::{cut_short, size_of};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// All backends.
static BACKENDS: [&Backend; 2] = [&file::BACKEND, &model::BACKEND];

/// The backend of this name.
fn named(name: &str) -> Option<&'static Backend> {
    BACKENDS.iter().find(|backend| backend.name == name).copied()
}

/// The capabilities of a backend; none for one that has no formatted devices.
pub fn capabilities(backend: &str) -> Option<Capabilities> {
    named(backend).map(|backend| backend.capabilities)
}

/// Opens the device at `path`, with the backend that its label names, and locks it against other
/// processes.
///
/// # Errors
/// [`OpenError`] names the failed check and the remedy.
pub fn open(path: &Path) -> Result<Arc<dyn Device>, OpenError> {
    open_with(path, OpenOptions::default())
}

/// As [`open`], with options; backends other than `file` use only [`OpenOptions::access`].
///
/// # Errors
/// As [`open`].
pub fn open_with(path: &Path, options: OpenOptions) -> Result<Arc<dyn Device>, OpenError> {
    let (label, note) = open_label(path, options.access)?;
    let name = &label.label().configuration.backend;
    let backend = named(name).ok_or_else(|| unknown_backend(path, name))?;
    (backend.open)(label, note, options)
}

/// Reads the label without taking the lock, so it also works while a server uses the device.
///
/// # Errors
/// As [`open`], except [`OpenError::Busy`].
pub fn inspect(path: &Path) -> Result<DeviceInfo, OpenError> {
    let file = File::open(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => OpenError::Missing { path: path.to_owned() },
        _ => OpenError::Io { path: path.to_owned(), source },
    })?;
    let loaded = read_label(&file, path)?;
    let worse =
        loaded.worse.map(|(copy, reason)| format!("label copy {}: {reason}", ['A', 'B'][copy]));
    let configuration = loaded.label.configuration;
    let found = size_of(&file).map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
    let cut = bytes_of(&configuration).filter(|expected| found < *expected);
    let cut = cut.map(|expected| cut_short(found, expected));
    let detail = worse.into_iter().chain(cut).collect::<Vec<_>>().join(", ");
    Ok(DeviceInfo {
        backend: configuration.backend,
        uuid: configuration.uuid,
        units: configuration.units,
        geometry: configuration.geometry,
        detail,
    })
}

/// The size of a device's file as its label has it; none if the label is wrong.
pub(crate) fn bytes_of(configuration: &Configuration) -> Option<u64> {
    named(&configuration.backend).and_then(|backend| (backend.bytes)(configuration))
}

/// What is missing at the end of a device that was cut short.
#[derive(Debug, Clone)]
pub struct Cut {
    /// The remark about it.
    pub remark: String,
    /// The units that have lost a whole superblock, or more.
    pub units: Range<u16>,
    /// The whole size of the device.
    bytes: u64,
}

/// What is missing of a device that was cut short; nothing if it was not cut. Reads only.
///
/// # Errors
/// As [`inspect`].
pub fn cut_of(path: &Path) -> Result<Option<Cut>, OpenError> {
    let failed = |source| OpenError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let loaded = read_label(&file, path)?;
    Ok(cut_in(&loaded.label.configuration, size_of(&file).map_err(failed)?))
}

/// What a device of so many bytes lacks.
fn cut_in(configuration: &Configuration, found: u64) -> Option<Cut> {
    let bytes = bytes_of(configuration).filter(|expected| found < *expected)?;
    let (units, unit_bytes) = (configuration.units, configuration.geometry.unit_bytes());
    // The data of the units, in their order, end the file of every backend.
    let end_of = |unit: u16| bytes.saturating_sub(u64::from(units - 1 - unit) * unit_bytes);
    let superblock = unit_bytes / u64::from(configuration.geometry.blocks_per_plane).max(1);
    let is_whole = |unit: &u16| end_of(*unit) < found + superblock;
    let whole = (0..units).take_while(is_whole).count() as u16;
    Some(Cut { remark: cut_short(found, bytes), units: whole..units, bytes })
}

/// Extends the file of a device that was cut short to its whole size: what was cut off is then
/// empty flash. Nothing is returned if it was not cut.
///
/// # Errors
/// As [`open`]; a block device cannot be extended.
pub fn extend(path: &Path) -> Result<Option<Cut>, OpenError> {
    let failed = |source| OpenError::Io { path: path.to_owned(), source };
    let file = open_exclusive(path)?;
    let loaded = read_label(&file, path)?;
    let found = size_of(&file).map_err(failed)?;
    let Some(cut) = cut_in(&loaded.label.configuration, found) else { return Ok(None) };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(OpenError::CutShort { path: path.to_owned(), found, expected: cut.bytes });
    }
    file.set_len(cut.bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(Some(cut))
}

fn unknown_backend(path: &Path, backend: &str) -> OpenError {
    OpenError::DamagedLabel {
        path: path.to_owned(),
        reason: format!("unknown backend `{backend}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_found_by_their_names() {
        for backend in BACKENDS {
            assert_eq!(named(backend.name).map(|found| found.name), Some(backend.name));
        }
        assert!(capabilities("file").is_some_and(|file| !file.native_bad_blocks));
        assert!(capabilities("model").is_some_and(|model| model.native_bad_blocks));
        assert_eq!(capabilities("tape"), None);
    }
}
