//! Finds devices, layouts, workloads and experiments by name, or by the path of a TOML file.

mod embedded;

use crate::error::LabError;
use crate::layout::Layout;
use crate::toml_text::{TomlError, from_text, impossible};
use crate::workload::Workload;
use serde::de::DeserializeOwned;
use softflash_drive::spec::DeviceSpec;
use std::fs;
use std::path::{Path, PathBuf};

/// The kinds of presets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Flash, link, controller.
    Device,
    /// How a device uses its flash.
    Layout,
    /// The requests to a device or store.
    Workload,
    /// Combinations of these, and the figures to measure.
    Experiment,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::Device, Kind::Layout, Kind::Workload, Kind::Experiment];

    /// Its name, in messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Device => "device",
            Kind::Layout => "layout",
            Kind::Workload => "workload",
            Kind::Experiment => "experiment",
        }
    }

    /// Names and texts of the presets in the binary, sorted by name.
    pub fn embedded(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Kind::Device => embedded::DEVICES,
            Kind::Layout => embedded::LAYOUTS,
            Kind::Workload => embedded::WORKLOADS,
            Kind::Experiment => embedded::EXPERIMENTS,
        }
    }

    /// Finds a preset by its name, or reads the file at a path.
    pub fn find(self, name: &str) -> Result<Document, LabError> {
        if is_path(name) {
            let path = Path::new(name);
            let text = fs::read_to_string(path).map_err(LabError::file(path))?;
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
            let directory = path.parent().map(Path::to_owned).unwrap_or_default();
            return Ok(Document { directory, ..Document::parse(stem, name, text)? });
        }
        let known = || self.embedded().iter().map(|(name, _)| *name);
        match self.embedded().iter().find(|(known, _)| *known == name) {
            Some((name, text)) => {
                let file = format!("preset {} {name}", self.name());
                Document::parse(name, &file, (*text).to_owned())
            }
            None => Err(LabError::no_such(self.name(), name, known().collect::<Vec<_>>())),
        }
    }

    /// All presets in the binary.
    pub fn all(self) -> Result<Vec<Document>, LabError> {
        self.embedded().iter().map(|(name, _)| self.find(name)).collect()
    }
}

/// A name, or a path that is relative to `directory`.
pub fn seen_from(directory: &Path, name: &str) -> String {
    if is_path(name) { directory.join(name).display().to_string() } else { name.to_owned() }
}

/// Whether a name is the path of a file.
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// A parsed TOML file, before its conversion to a preset.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The preset's name, or the file's name without its extension.
    pub name: String,
    /// Its name in messages.
    pub file: String,
    /// Its contents.
    pub text: String,
    /// The parsed contents.
    pub table: toml::Table,
    /// The directory of the file, from which the paths in it lead; empty for a preset.
    pub directory: PathBuf,
}

impl Document {
    fn parse(name: &str, file: &str, text: String) -> Result<Document, LabError> {
        let table = from_text(file, &text)?;
        let (name, file) = (name.to_owned(), file.to_owned());
        Ok(Document { name, file, text, table, directory: PathBuf::new() })
    }

    /// Its description in one line.
    pub fn title(&self) -> &str {
        self.table.get("title").and_then(toml::Value::as_str).unwrap_or_default()
    }

    /// Converts it to a preset.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, TomlError> {
        // Parses the text, not the table, so that errors have a line.
        from_text(&self.file, &self.text)
    }

    fn impossible(&self, problem: String) -> TomlError {
        impossible(&self.file, &self.text, problem)
    }
}

/// The device of this name or path.
pub fn device(name: &str) -> Result<DeviceSpec, LabError> {
    let document = Kind::Device.find(name)?;
    let mut device: DeviceSpec = document.read()?;
    device.default_layout = seen_from(&document.directory, &device.default_layout);
    let possible = device.array().validate();
    possible.map_err(|error| document.impossible(error.to_string()))?;
    Ok(device)
}

/// The layout of this name or path, and its name.
pub fn layout(name: &str) -> Result<(String, Layout), LabError> {
    let document = Kind::Layout.find(name)?;
    Ok((document.name.clone(), document.read()?))
}

/// The workload of this name or path, and its name.
pub fn workload(name: &str) -> Result<(String, Workload), LabError> {
    let document = Kind::Workload.find(name)?;
    let workload: Workload = document.read()?;
    workload.validate().map_err(|error| document.impossible(error.to_string()))?;
    Ok((document.name, workload))
}
