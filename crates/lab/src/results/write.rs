//! Atomic writes of files: a file is complete or does not exist.

use crate::error::LabError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::Path;

/// Writes a file atomically; creates its directory where it is missing.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(LabError::file(parent))?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    fs::write(&part, bytes).map_err(LabError::file(&part))?;
    fs::rename(&part, path).map_err(LabError::file(path))
}

/// Writes a value as JSON.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), LabError> {
    let problem = |error: serde_json::Error| LabError::NotAResult {
        path: path.to_owned(),
        problem: error.to_string(),
    };
    let mut text = serde_json::to_vec_pretty(value).map_err(problem)?;
    text.push(b'\n');
    write_atomically(path, &text)
}

/// Reads a value that [`write_json`] wrote.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, LabError> {
    let text = fs::read(path).map_err(LabError::file(path))?;
    serde_json::from_slice(&text)
        .map_err(|error| LabError::NotAResult { path: path.to_owned(), problem: error.to_string() })
}
