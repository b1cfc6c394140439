//! Block workloads: requests to units of flash.

use crate::cell::{Cell, Control};
use crate::error::LabError;
use crate::layout::Units;
use crate::outcome::Outcome;
use softflash_workload::BlockWorkload;

/// Runs a block workload.
pub fn run(
    cell: &Cell,
    _layout: &Units,
    _workload: &BlockWorkload,
    _control: &Control,
) -> Result<Outcome, LabError> {
    Err(LabError::Unsupported(format!("{}: no engine for requests to units of flash", cell.key)))
}
