//! Experiments: files with the runs, the rows of the results and the published figures.

mod derive;
mod expand;
mod fields;
mod label;
mod plan;
mod published;
mod spec;

pub use derive::Derivation;
pub use fields::{Assignment, Tables};
pub use plan::{Form, Plan, PlannedRow, Point};
pub use published::{Bound, Published};
pub use spec::{Derived, Function, Group, Plot, Requests, Row, Spec, Variant};

use crate::error::LabError;
use crate::presets::Kind;
use crate::toml_text::TomlError;

/// A parsed experiment, before it is planned.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Its name, that of its file.
    pub name: String,
    /// The name of its file in messages.
    file: String,
    /// Its contents.
    text: String,
    /// The parsed contents.
    pub spec: Spec,
}

impl Experiment {
    /// Finds the experiment of this name or path.
    pub fn find(name: &str) -> Result<Experiment, LabError> {
        let document = Kind::Experiment.find(name)?;
        let spec = document.read()?;
        Ok(Experiment { name: document.name, file: document.file, text: document.text, spec })
    }

    /// Parses the text of an experiment's file.
    pub fn parse(name: &str, file: &str, text: &str) -> Result<Experiment, LabError> {
        let spec = crate::toml_text::from_text(file, text)?;
        Ok(Experiment { name: name.to_owned(), file: file.to_owned(), text: text.to_owned(), spec })
    }

    /// Adds the place in the file to the error of an unknown preset.
    fn unknown(&self, error: LabError) -> LabError {
        match error {
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
