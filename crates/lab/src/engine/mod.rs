//! The engines that run cells: conventional drives, units of flash, and key-value stores on either.

mod caps;
mod client_loop;
mod cluster;
mod drift;
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
use drive::Asked;
use softflash_workload::Precondition;

/// Runs a cell. Equal cells give equal outcomes.
pub fn run(cell: &Cell, control: &Control) -> Result<Outcome, LabError> {
    check_precondition(cell)?;
    check_log(cell, control)?;
    let mut outcome = match (&cell.workload, &cell.layout.kind) {
        _ if cell.parameters.drives != 1 => cluster::run(cell, control),
        (Workload::Kv(workload), _) => kv::run(cell, workload, control),
        (Workload::Block(workload), LayoutKind::PageMapped(layout)) => {
            drive::run(cell, layout, Asked::Workload(workload), control)
        }
        (Workload::Flows(workload), LayoutKind::PageMapped(layout)) => {
            drive::run(cell, layout, Asked::Flows(workload), control)
        }
        (Workload::Flows(_), LayoutKind::Units(_)) => Err(no_flows(cell)),
        (Workload::Block(workload), LayoutKind::Units(layout)) => {
            units::run(cell, layout, workload, control)
        }
    }?;
    let Outcome { requests, completed, .. } = outcome;
    if requests != completed {
        return Err(LabError::LostRequests { requests, completed });
    }
    let page_bytes = match &cell.layout.kind {
        LayoutKind::PageMapped(layout) => layout.unit_bytes(&cell.device),
        LayoutKind::Units(_) => cell.device.geometry.page_bytes,
    };
    limits::add_programmed_bytes(page_bytes, &mut outcome);
    Ok(outcome)
}

/// Units take no writes of 4 KiB, and a store begins at time 0.
fn check_precondition(cell: &Cell) -> Result<(), LabError> {
    let kinds = (&cell.workload, &cell.layout.kind);
    match cell.parameters.precondition {
        state @ Precondition::Random4k { .. } if !is_drive(kinds) => {
            Err(LabError::Parameter(format!(
                "precondition {state} needs a block workload on a page-mapped layout; use fill, overwrite:TIMES or steady"
            )))
        }
        _ => Ok(()),
    }
}

/// Whether block requests go to a conventional drive.
fn is_drive(kinds: (&Workload, &LayoutKind)) -> bool {
    matches!(kinds, (Workload::Block(_) | Workload::Flows(_), LayoutKind::PageMapped(_)))
}

fn no_flows(cell: &Cell) -> LabError {
    LabError::Parameter(format!(
        "workload `{}` has several flows, which need the block interface of a page-mapped layout; `{}` has none",
        cell.workload_name, cell.layout_name
    ))
}

/// Only drives name the places of their requests.
fn check_log(cell: &Cell, control: &Control) -> Result<(), LabError> {
    match (&cell.workload, &cell.layout.kind, control.on_request) {
        (_, _, None) => Ok(()),
        (workload, layout, _) if is_drive((workload, layout)) => Ok(()),
        _ => Err(LabError::Parameter(format!(
            "a log of requests needs a block workload on a page-mapped layout, this is `{}` on `{}`",
            cell.workload_name, cell.layout_name
        ))),
    }
}
