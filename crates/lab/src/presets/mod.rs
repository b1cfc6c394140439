//! Finds devices, layouts, workloads and experiments by name, or by the path of a TOML file.

mod embedded;

use crate::error::LabError;
use crate::import::fio;
use crate::layout::Layout;
use crate::toml_text::{TomlError, from_text, impossible, suggestion};
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
            if self == Kind::Workload && is_fio(name) {
                return Document::of_jobs(stem, name, &text, &[]);
            }
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
    name.contains('/') || name.ends_with(".toml") || is_fio(name)
}

/// Whether a path is that of a job file of fio.
fn is_fio(name: &str) -> bool {
    [".fio", ".job"].iter().any(|extension| name.ends_with(extension))
}

/// The jobs of a job file of fio as a workload of flows, all or those of the names in `sections`.
pub fn jobs_of_fio(path: &Path, sections: &[String]) -> Result<Document, LabError> {
    let text = fs::read_to_string(path).map_err(LabError::file(path))?;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("jobs");
    Document::of_jobs(stem, &path.display().to_string(), &text, sections)
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
    /// What was changed or left out when it was made from a file of another program.
    pub remarks: Vec<String>,
}

impl Document {
    fn parse(name: &str, file: &str, text: String) -> Result<Document, LabError> {
        let table = from_text(file, &text)?;
        let (name, file) = (name.to_owned(), file.to_owned());
        let (directory, remarks) = (PathBuf::new(), Vec::new());
        Ok(Document { name, file, text, table, directory, remarks })
    }

    /// The workload of a job file of fio with this text, in TOML.
    fn of_jobs(
        name: &str,
        file: &str,
        text: &str,
        sections: &[String],
    ) -> Result<Document, LabError> {
        let jobs = fio::jobs(name, file, text, sections)?;
        let text = toml::to_string(&jobs.workload)
            .map_err(|error| LabError::Simulation(format!("{file}: {error}")))?;
        Ok(Document { remarks: jobs.remarks, ..Document::parse(name, file, text)? })
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

    /// Its remarks, each with the name of the file.
    pub fn named_remarks(&self) -> impl Iterator<Item = String> {
        self.remarks.iter().map(|remark| format!("{}: {remark}", self.file))
    }

    /// Converts it to a workload.
    pub fn workload(&self) -> Result<Workload, LabError> {
        let workload: Workload = self.read()?;
        workload.validate().map_err(|error| self.impossible(error.to_string()))?;
        Ok(workload.seen_from(&self.directory))
    }

    fn impossible(&self, problem: String) -> TomlError {
        impossible(&self.file, &self.text, problem)
    }
}

/// The recorded trace of this name, as stored.
pub(crate) fn trace(name: &str) -> Result<&'static [u8], LabError> {
    let known = embedded::TRACES.iter().map(|(known, _)| *known);
    match embedded::TRACES.iter().find(|(known, _)| *known == name) {
        Some((_, stored)) => Ok(stored),
        None => Err(LabError::Parameter(format!(
            "no trace is called `{name}`; {}; the path of a file, with a `/` in it, works too",
            suggestion(name, known)
        ))),
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

/// The workload of this name or path, and its name. The path of a job file of fio ends in `.fio` or
/// `.job`.
pub fn workload(name: &str) -> Result<(String, Workload), LabError> {
    let document = Kind::Workload.find(name)?;
    let workload = document.workload()?;
    Ok((document.name, workload))
}
