//! The inputs of the runs of an experiment.

use super::parts::Parts;
use super::shown::Run;
use crate::results::warnings;
use softflash_report::{Cell, Table};

/// The most runs that a table shows at once; more are folded.
const OPEN: usize = 12;

/// Device, layout, workload, precondition, over-provisioning, requests and seed of each run.
pub(super) fn table(runs: &[&Run], parts: &mut Parts) -> Table {
    let columns = [
        "",
        "device",
        "layout",
        "workload",
        "precondition",
        "over-provisioning, %",
        "requests",
        "seed",
        "drives",
        "drift, %",
        "remarks",
    ];
    let mut table = Table::new(format!("Runs: {}", runs.len()), columns);
    for run in runs {
        table = table.row(row(run, parts));
    }
    let table = table.without_empty_columns();
    if runs.len() > OPEN { table.folded() } else { table }
}

fn row(run: &Run, parts: &mut Parts) -> [Cell; 11] {
    let (cell, outcome) = (&run.file.cell, &run.file.outcome);
    let op_percent = outcome.figures.get("op_percent").copied();
    let state = match outcome.settled {
        Some(settled) => {
            format!("{}, {} rewrites", cell.parameters.precondition, settled.rewrites)
        }
        None => cell.parameters.precondition.to_string(),
    };
    let remarks = warnings::of(outcome).join("; ");
    [
        Cell::text(&*run.label),
        Cell::text(parts.device(&cell.device)),
        Cell::text(parts.layout(&cell.layout_name, &cell.layout)),
        Cell::text(parts.workload(&cell.workload_name, &cell.workload)),
        Cell::text(state),
        op_percent.map_or(Cell::Empty, |percent| Cell::number(percent).digits(4)),
        Cell::count(outcome.completed),
        Cell::text(cell.seed.to_string()),
        if cell.parameters.drives == 1 {
            Cell::Empty
        } else {
            Cell::count(cell.parameters.drives.into())
        },
        outcome.drift.map_or(Cell::Empty, |drift| Cell::number(100.0 * drift.change).digits(2)),
        if remarks.is_empty() { Cell::Empty } else { Cell::text(remarks) },
    ]
}
