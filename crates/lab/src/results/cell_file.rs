//! The file of one run, with a fingerprint that detects outdated files.

use super::{Directory, read_json, write_json};
use crate::cell::Cell;
use crate::error::LabError;
use crate::outcome::Outcome;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};
use softflash_base::checksum::checksum64;

/// Everything about one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellFile {
    /// The fingerprint of all inputs of the outcome: the cell, and the program that ran it.
    pub fingerprint: String,
    /// The cell.
    pub cell: Cell,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The fingerprint of the outcome of this cell, run by the program with the identity `program`.
pub fn fingerprint(cell: &Cell, program: u64) -> Result<String, LabError> {
    let text = serde_json::to_vec(cell)
        .map_err(|error| LabError::Simulation(format!("{}: {error}", cell.key)))?;
    let inputs = checksum64(program, &text);
    // A trace in a file is an input like the cell; those of the program are a part of that.
    let inputs = match &cell.workload {
        Workload::Trace(workload) => checksum64(inputs, &workload.foreign_bytes()?),
        Workload::Block(_) | Workload::Flows(_) | Workload::Kv(_) => inputs,
    };
    Ok(format!("{inputs:016x}"))
}

impl CellFile {
    /// The outcome of `cell`, if the directory has it. Files of other runs and damaged files are
    /// ignored.
    pub fn find(
        directory: &Directory,
        cell: &Cell,
        program: u64,
    ) -> Result<Option<Outcome>, LabError> {
        let fingerprint = fingerprint(cell, program)?;
        let found: Result<CellFile, LabError> = read_json(&directory.cell(&cell.key));
        Ok(found.ok().filter(|file| file.fingerprint == fingerprint).map(|file| file.outcome))
    }

    /// Writes an outcome.
    pub fn keep(
        directory: &Directory,
        cell: &Cell,
        outcome: &Outcome,
        program: u64,
    ) -> Result<(), LabError> {
        let file = CellFile {
            fingerprint: fingerprint(cell, program)?,
            cell: cell.clone(),
            outcome: outcome.clone(),
        };
        write_json(&directory.cell(&cell.key), &file)
    }

    /// Reads the file of a cell.
    pub fn read(directory: &Directory, key: &str) -> Result<CellFile, LabError> {
        read_json(&directory.cell(key))
    }
}
