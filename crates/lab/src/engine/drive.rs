//! Block workloads: requests to a conventional drive.

use crate::cell::{Cell, Control};
use crate::error::LabError;
use crate::outcome::Outcome;
use softflash_drive::spec::PageMapped;
use softflash_workload::BlockWorkload;

/// Runs a block workload.
pub fn run(
    cell: &Cell,
    _layout: &PageMapped,
    _workload: &BlockWorkload,
    _control: &Control,
) -> Result<Outcome, LabError> {
    Err(LabError::Unsupported(format!(
        "{}: no engine for requests to a conventional drive",
        cell.key
    )))
}
