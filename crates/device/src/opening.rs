//! Opens the device at a path with the backend that its label names.

use crate::file::{FileDevice, OpenOptions};
use crate::geometry::DeviceInfo;
use crate::label::{open_label, read_label};
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

/// As [`open`], with options; backends other than `file` use only [`OpenOptions::repair_label`].
pub fn open_with(path: &Path, options: OpenOptions) -> Result<Arc<dyn Device>, OpenError> {
    let (label, note) = open_label(path, options.repair_label)?;
    match label.label().configuration.backend.as_str() {
        "file" => Ok(Arc::new(FileDevice::from_label(label, note, options)?)),
        "model" => Ok(Arc::new(ModelDevice::from_label(label, note)?)),
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
    let detail = match loaded.worse {
        None => String::new(),
        Some((copy, reason)) => format!("label copy {}: {reason}", ['A', 'B'][copy]),
    };
    let configuration = loaded.label.configuration;
    Ok(DeviceInfo {
        backend: configuration.backend,
        uuid: configuration.uuid,
        units: configuration.units,
        geometry: configuration.geometry,
        detail,
    })
}

fn unknown_backend(path: &Path, backend: &str) -> OpenError {
    OpenError::DamagedLabel {
        path: path.to_owned(),
        reason: format!("unknown backend `{backend}`"),
    }
}
