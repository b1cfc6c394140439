//! What a reader must know before believing the figures of a run.

use super::shown::{Run, Shown};
use crate::outcome::{Backlog, Settled};

/// The runs that drift, were not settled or did not keep up, as a list; `None` if all are well.
pub(super) fn of(shown: &[Shown]) -> Option<String> {
    let runs = shown.iter().flat_map(|shown| &shown.runs);
    let lines: Vec<String> = runs
        .flat_map(|run| {
            of_run(run).into_iter().map(|warning| format!("- {}: {warning}", run.label))
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The warnings of a run.
pub(super) fn of_run(run: &Run) -> Vec<String> {
    let outcome = &run.file.outcome;
    let drifts = outcome.drift.filter(|drift| drift.is_significant()).map(|drift| {
        let percent = 100.0 * drift.change;
        format!(
            "still drifting, {percent:+.1} % of the write amplification from the first to the last quarter"
        )
    });
    let unsettled = outcome.settled.filter(|settled| !settled.is_level).map(|settled| {
        let Settled { rewrites, change, .. } = settled;
        let percent = 100.0 * change;
        format!("not settled after {rewrites} rewrites of the drive, last change {percent:+.1} %")
    });
    let behind = outcome.backlog.filter(|backlog| !backlog.kept_up()).map(|backlog| {
        let Backlog { waiting, lag_ns, .. } = backlog;
        let seconds = lag_ns as f64 / 1e9;
        format!(
            "did not keep up, {waiting} requests waited at the last arrival, and the last completed {seconds:.3} s later"
        )
    });
    [drifts, unsettled, behind].into_iter().flatten().collect()
}
