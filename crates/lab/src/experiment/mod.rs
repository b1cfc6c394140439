//! Experiments: files with the runs, the rows of the results and the published figures.

mod column;
mod derive;
mod expand;
mod fields;
mod fixed;
mod label;
mod plan;
mod published;
mod spec;

pub use derive::Derivation;
pub(crate) use fields::unknown;
pub use fields::{Assignment, Tables};
pub use plan::{Form, Place, Plan, PlannedRow, Point};
pub use published::{Bound, Published};
pub use spec::{Column, Derived, Function, Group, Plot, Requests, Row, Spec, Variant};

use crate::error::LabError;
use crate::presets::{Document, Kind, seen_from};
use crate::toml_text::TomlError;
use std::path::PathBuf;

/// A parsed experiment, before it is planned.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Its name, that of its file.
    pub name: String,
    /// The name of its file in messages.
    file: String,
    /// Its contents.
    text: String,
    /// The directory of its file, from which the paths in it lead.
    directory: PathBuf,
    /// The parsed contents.
    pub spec: Spec,
}

impl Experiment {
    /// Finds the experiment of this name or path.
    pub fn find(name: &str) -> Result<Experiment, LabError> {
        let document = Kind::Experiment.find(name)?;
        let spec = document.read()?;
        let Document { name, file, text, directory, .. } = document;
        Ok(Experiment { name, file, text, directory, spec })
    }

    /// Parses the text of an experiment's file.
    pub fn parse(name: &str, file: &str, text: &str) -> Result<Experiment, LabError> {
        let spec = crate::toml_text::from_text(file, text)?;
        let (name, file, text) = (name.to_owned(), file.to_owned(), text.to_owned());
        Ok(Experiment { name, file, text, directory: PathBuf::new(), spec })
    }

    /// Finds a preset that the file names, or the file at a path that begins at its directory.
    fn preset(&self, kind: Kind, name: &str) -> Result<Document, LabError> {
        let found = kind.find(&seen_from(&self.directory, name));
        found.map_err(|error| self.unknown(name, error))
    }

    /// Adds the place in the file to the error of an unknown preset.
    fn unknown(&self, name: &str, error: LabError) -> LabError {
        match error {
            LabError::File { path, source } => {
                let path = path.display();
                let problem =
                    format!("{path}: {source}; paths begin at the directory of this file");
                self.wrong(name, problem)
            }
            LabError::NoSuchPreset { what, name, suggestion, .. } => {
                let line = self.line_of(&name).map(|line| format!("line {line}: "));
                let place = format!("{}: {}", self.file, line.unwrap_or_default());
                LabError::NoSuchPreset { place, what, name, suggestion }
            }
            other => other,
        }
    }

    /// An error in the file, at the first line that contains `word`.
    fn wrong(&self, word: &str, problem: impl Into<String>) -> LabError {
        let line = self.line_of(word);
        LabError::Toml(TomlError { file: self.file.clone(), line, problem: problem.into() })
    }

    fn line_of(&self, word: &str) -> Option<usize> {
        let written = |(_, line): &(usize, &str)| {
            line.split('#').next().is_some_and(|line| line.contains(word))
        };
        self.text.lines().enumerate().find(written).map(|(index, _)| index + 1)
    }
}
