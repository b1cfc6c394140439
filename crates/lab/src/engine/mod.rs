//! The engines that run cells: conventional drives, units of flash, and key-value stores on either.

mod caps;
mod client_loop;
mod cluster;
mod drift;
pub mod drive;
pub mod kv;
mod level;
pub mod limits;
mod meter;
mod progress;
mod quota;
mod tally;
pub mod units;
pub mod volumes;

use crate::cell::{Cell, Control};
use crate::error::LabError;
use crate::layout::LayoutKind;
use crate::outcome::Outcome;
use crate::workload::Workload;
use drive::Asked;
use softflash_workload::Precondition;
use units::Taken;

/// Runs a cell. Equal cells give equal outcomes.
pub fn run(cell: &Cell, control: &Control) -> Result<Outcome, LabError> {
    check_precondition(cell)?;
    check_sets(cell)?;
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
        (Workload::Trace(workload), LayoutKind::PageMapped(layout)) => {
            drive::run(cell, layout, Asked::Repeated(workload), control)
        }
        (Workload::Flows(_), LayoutKind::Units(_)) => Err(no_flows(cell)),
        (Workload::Trace(_), LayoutKind::Units(_)) => Err(no_trace(cell)),
        (Workload::Block(workload), LayoutKind::Units(layout)) => {
            match units::takes(cell, layout, workload)? {
                Taken::ByVolume => volumes::run(cell, layout, workload, control),
                Taken::BySuperblocks => units::run(cell, layout, workload, control),
            }
        }
    }?;
    let Outcome { requests, completed, .. } = outcome;
    if requests != completed {
        return Err(LabError::LostRequests { requests, completed });
    }
    // A volume counts the bytes itself.
    if !(matches!(cell.layout.kind, LayoutKind::Units(_)) && has_block_interface(cell)?) {
        let page_bytes = match &cell.layout.kind {
            LayoutKind::PageMapped(layout) => layout.unit_bytes(&cell.device),
            LayoutKind::Units(_) => cell.device.geometry.page_bytes,
        };
        limits::add_programmed_bytes(page_bytes, &mut outcome);
    }
    Ok(outcome)
}

/// Whether the requests of a cell are those of blocks at addresses: to a drive, or to a volume over
/// units.
fn has_block_interface(cell: &Cell) -> Result<bool, LabError> {
    Ok(match (&cell.workload, &cell.layout.kind) {
        (Workload::Kv(_), _) => false,
        (_, LayoutKind::PageMapped(_)) => true,
        (Workload::Flows(_) | Workload::Trace(_), LayoutKind::Units(_)) => false,
        (Workload::Block(workload), LayoutKind::Units(layout)) => {
            units::takes(cell, layout, workload)? == Taken::ByVolume
        }
    })
}

/// Superblocks take no writes of 4 KiB, and a store begins at time 0.
fn check_precondition(cell: &Cell) -> Result<(), LabError> {
    match cell.parameters.precondition {
        state @ Precondition::Random4k { .. } if !has_block_interface(cell)? => {
            Err(LabError::Parameter(format!(
                "precondition {state} needs a block workload on a page-mapped layout or a volume; use fill, \
                 overwrite:TIMES or steady"
            )))
        }
        _ => Ok(()),
    }
}

/// A store here has no sets.
fn check_sets(cell: &Cell) -> Result<(), LabError> {
    match cell.workload {
        Workload::Kv(_) if cell.layout.sets.are_used() => Err(LabError::Parameter(format!(
            "`{}` has sets, which need a workload of blocks; `{}` is one of keys: remove `sets`",
            cell.layout_name, cell.workload_name
        ))),
        _ => Ok(()),
    }
}

fn no_flows(cell: &Cell) -> LabError {
    LabError::Parameter(format!(
        "workload `{}` has several flows, which need a page-mapped layout; `{}` has units, and a volume on them takes one flow",
        cell.workload_name, cell.layout_name
    ))
}

fn no_trace(cell: &Cell) -> LabError {
    LabError::Parameter(format!(
        "workload `{}` repeats a trace, which needs a page-mapped layout; `{}` has units: `softflash replay` plays a \
         trace on them once",
        cell.workload_name, cell.layout_name
    ))
}

/// Only block interfaces name the places of their requests.
fn check_log(cell: &Cell, control: &Control) -> Result<(), LabError> {
    match control.on_request {
        Some(_) if !has_block_interface(cell)? => Err(LabError::Parameter(format!(
            "a log of requests needs a block workload on a page-mapped layout or a volume, this is `{}` on `{}`",
            cell.workload_name, cell.layout_name
        ))),
        _ => Ok(()),
    }
}
