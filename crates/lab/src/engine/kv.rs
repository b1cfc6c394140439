//! Key-value workloads.

use crate::cell::{Cell, Control};
use crate::error::LabError;
use crate::outcome::Outcome;
use softflash_workload::KvWorkload;

/// Runs a key-value workload.
pub fn run(cell: &Cell, _workload: &KvWorkload, _control: &Control) -> Result<Outcome, LabError> {
    Err(LabError::Unsupported(format!("{}: no engine for key-value workloads", cell.key)))
}
