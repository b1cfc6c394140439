//! Opens the device at a path with the backend that its label names.

use crate::file::{FileDevice, OpenOptions, check_configuration, size_of};
use crate::geometry::DeviceInfo;
use crate::label::{Configuration, open_exclusive, open_label, read_label};
use crate::model::ModelDevice;
use crate::queue_pair::{Device, OpenError};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

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
    match label.label().configuration.backend.as_str() {
        "file" => Ok(Arc::new(FileDevice::from_label(label, note, options)?)),
        "model" => Ok(Arc::new(ModelDevice::from_label(label, note, options.access)?)),
        other => Err(unknown_backend(path, other)),
    }
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

/// Begins the remark about a device that is shorter than its label says.
pub const CUT_SHORT: &str = "cut short";

/// The remark about such a device.
pub(crate) fn cut_short(found: u64, expected: u64) -> String {
    format!("{CUT_SHORT}: its label says {expected} bytes, and it has {found}")
}

/// The size of a device's file as its label has it; none if the label is wrong.
fn bytes_of(configuration: &Configuration) -> Option<u64> {
    match configuration.backend.as_str() {
        "model" => crate::model::bytes_of(&configuration.options),
        _ => check_configuration(configuration).ok(),
    }
}

/// Extends the file of a device that was cut short to its whole size: what was cut off is then there,
/// and is lost. Returns the remark about it, if it was cut.
///
/// # Errors
/// As [`open`]; a block device cannot be extended.
pub fn extend(path: &Path) -> Result<Option<String>, OpenError> {
    let failed = |source| OpenError::Io { path: path.to_owned(), source };
    let file = open_exclusive(path)?;
    let loaded = read_label(&file, path)?;
    let found = size_of(&file).map_err(failed)?;
    let expected = bytes_of(&loaded.label.configuration).unwrap_or(0);
    if found >= expected {
        return Ok(None);
    }
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(OpenError::CutShort { path: path.to_owned(), found, expected });
    }
    file.set_len(expected).and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(Some(cut_short(found, expected)))
}

fn unknown_backend(path: &Path, backend: &str) -> OpenError {
    OpenError::DamagedLabel {
        path: path.to_owned(),
        reason: format!("unknown backend `{backend}`"),
    }
}
