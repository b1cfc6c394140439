//! A cluster of equal drives that share a workload evenly. Their requests are independent of each
//! other, so one drive is simulated, with its share.

use crate::cell::{Cell, Control};
use crate::engine::drive::{self, Asked};
use crate::error::LabError;
use crate::layout::LayoutKind;
use crate::outcome::{Outcome, Programs};
use crate::workload::Workload;
use softflash_base::histogram::LatencySummary;

/// Runs a cell of several drives. Requests, bytes, pages and erases of its outcome are those of all
/// drives; latencies, busy times and further figures those of a drive.
pub fn run(cell: &Cell, control: &Control) -> Result<Outcome, LabError> {
    let drives = cell.parameters.drives;
    let (Workload::Block(workload), LayoutKind::PageMapped(layout)) =
        (&cell.workload, &cell.layout.kind)
    else {
        return Err(LabError::Parameter(format!(
            "drives = {drives}: only block workloads on page-mapped drives can be shared; remove it"
        )));
    };
    let workload = workload.share(drives)?;
    let mut share = cell.clone();
    share.parameters.requests = share.parameters.requests.map(|all| all.div_ceil(drives.into()));
    let outcome = drive::run(&share, layout, Asked::Workload(&workload), control)?;
    Ok(of_all(outcome, drives.into()))
}

fn of_all(outcome: Outcome, drives: u64) -> Outcome {
    let latency = |of: LatencySummary| LatencySummary { count: of.count * drives, ..of };
    let Programs { host, collection, folding, compaction, parity, metadata, padding } =
        outcome.programs;
    let mut all = Outcome {
        requests: outcome.requests * drives,
        completed: outcome.completed * drives,
        bytes_read: outcome.bytes_read * drives,
        bytes_written: outcome.bytes_written * drives,
        read_latency: latency(outcome.read_latency),
        write_latency: latency(outcome.write_latency),
        programs: Programs {
            host: host * drives,
            collection: collection * drives,
            folding: folding * drives,
            compaction: compaction * drives,
            parity: parity * drives,
            metadata: metadata * drives,
            padding: padding * drives,
        },
        erases: outcome.erases * drives,
        ..outcome
    };
    all.slow.iter_mut().flatten().for_each(|count| *count *= drives);
    for sample in &mut all.series {
        sample.bytes_read *= drives;
        sample.bytes_written *= drives;
    }
    all
}
