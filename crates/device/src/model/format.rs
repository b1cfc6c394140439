//! Formatting of a persisted model device.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]

use super::config::ModelConfig;
use super::device::BACKEND;
use super::device::record_factory_bad;
use super::persisted::{FileMedium, file_bytes};
use crate::file::{FormatError, NewFile, check_sparse_place};
use crate::label::Configuration;
use std::path::Path;

/// The options of a new model device.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFormat {
    /// Array, faults and units.
    pub config: ModelConfig,
    /// Whether to replace a file that exists.
    pub force: bool,
    /// The identity of the device: random, never used before.
    pub uuid: u128,
}

impl ModelFormat {
    /// Checks that [`format_model`] can make its file at `path` and, with `force`, may replace what
    /// is there. Changes nothing.
    ///
    /// # Errors
    /// As [`format_model`].
    pub fn check_place(&self, path: &Path) -> Result<(), FormatError> {
        let geometry = self.config.unit_geometry();
        geometry.map_err(|error| FormatError::Geometry(error.to_string()))?;
        check_sparse_place(path, self.force, file_bytes(&self.config.array.geometry))
    }
}

/// Formats a model device in a sparse file at `path`.
///
/// # Errors
/// [`FormatError`]; a file that cannot be completed is removed.
pub fn format_model(path: &Path, format: &ModelFormat) -> Result<(), FormatError> {
    let config = &format.config;
    let refuse = |reason: String| FormatError::Geometry(reason);
    let units = config.units().map_err(|error| refuse(error.to_string()))?;
    let geometry = config.unit_geometry().map_err(|error| refuse(error.to_string()))?;
    let options = toml::Table::try_from(config).map_err(|error| refuse(error.to_string()))?;

    let mut target = NewFile::open(path, format.force)?;
    target.make_sparse(file_bytes(&config.array.geometry))?;
    let file = target.handle()?;
    record_factory_bad(config, &FileMedium::new(Box::new(file), &config.array.geometry))
        .map_err(|source| target.io(source))?;
    target.finish(Configuration {
        backend: BACKEND.name.to_owned(),
        uuid: format.uuid,
        units,
        geometry,
        options,
    })
}
