//! Configurations of other simulators, as devices, layouts and workloads.

pub mod fio;
pub mod mqsim;
mod xml;

use thiserror::Error;

/// Why a configuration cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}{}: {problem}", line.map(|line| format!(": line {line}")).unwrap_or_default())]
pub struct ImportError {
    /// The file.
    pub file: String,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// The problem, with the remedy.
    pub problem: String,
}

/// A parameter that has no counterpart here.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct WithoutCounterpart {
    /// Its name.
    pub parameter: String,
    /// Its value.
    pub value: String,
    /// What holds here instead.
    pub instead: &'static str,
}

/// A file of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its name, without extension.
    pub name: String,
    /// Its contents, in TOML.
    pub text: String,
}
