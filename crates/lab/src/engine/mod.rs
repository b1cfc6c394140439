//! The engines that run cells: conventional drives, units of flash, and key-value stores on either.

mod caps;
mod client_loop;
mod cluster;
pub mod drive;
pub mod kv;
pub mod limits;
mod meter;
mod progress;
mod quota;
mod tally;
pub mod units;

use crate::cell::{Cell, Control};
use crate::error::LabError;
use crate::layout::LayoutKind;
use crate::outcome::Outcome;
use crate::workload::Workload;

/// Runs a cell. Equal cells give equal outcomes.
pub fn run(cell: &Cell, control: &Control) -> Result<Outcome, LabError> {
    let outcome = match (&cell.workload, &cell.layout.kind) {
        _ if cell.parameters.drives != 1 => cluster::run(cell, control),
        (Workload::Kv(workload), _) => kv::run(cell, workload, control),
        (Workload::Block(workload), LayoutKind::PageMapped(layout)) => {
            drive::run(cell, layout, workload, control)
        }
        (Workload::Block(workload), LayoutKind::Units(layout)) => {
            units::run(cell, layout, workload, control)
        }
    }?;
    let Outcome { requests, completed, .. } = outcome;
    if requests != completed {
        return Err(LabError::LostRequests { requests, completed });
    }
    Ok(outcome)
}
