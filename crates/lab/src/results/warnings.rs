//! What a reader must know before believing the figures of a run.

use crate::experiment::Plan;
use crate::outcome::{ASKED_OP_PERCENT, Backlog, Drift, Outcome, Settled};

/// The remarks on files of other programs, and the warnings of all runs of a plan, each with the
/// label of the run's first row, or with the run's key if it has no row.
pub(super) fn of_plan(plan: &Plan, outcomes: &[Outcome]) -> Vec<String> {
    let replicates = plan.replicates as usize;
    let label = |cell: usize| {
        let first = cell - cell % replicates;
        let row = plan.rows.iter().find(|row| row.cell == first);
        let key = || plan.cells.get(first).map_or_else(String::new, |cell| cell.key.clone());
        let label = row.map_or_else(key, |row| row.label.clone());
        if cell == first { label } else { format!("{label}, replicate {}", cell - first + 1) }
    };
    let runs = outcomes.iter().enumerate();
    let of_runs = runs.flat_map(|(cell, outcome)| {
        let label = label(cell);
        of(outcome).into_iter().map(move |warning| format!("{label}: {warning}"))
    });
    plan.remarks.iter().cloned().chain(of_runs).collect()
}

/// The warnings of a run: it drifts, was not settled, did not keep up with its arrivals, or is of a
/// drive with more spare than was asked for.
pub fn of(outcome: &Outcome) -> Vec<String> {
    let drifts = outcome.drift.filter(Drift::is_significant).map(|drift| {
        let percent = 100.0 * drift.change;
        format!(
            "still drifting, {percent:+.1} % of the write amplification from the first to the last quarter"
        )
    });
    let unsettled = outcome.settled.filter(|settled| !settled.is_level).map(|settled| {
        let Settled { rewrites, change, .. } = settled;
        let last = change.map(|change| format!(", last change {:+.1} %", 100.0 * change));
        format!("not settled after {rewrites} rewrites of the drive{}", last.unwrap_or_default())
    });
    let behind = outcome.backlog.filter(|backlog| !backlog.kept_up()).map(|backlog| {
        let Backlog { waiting, lag_ns, .. } = backlog;
        let seconds = lag_ns as f64 / 1e9;
        format!(
            "did not keep up, {waiting} requests waited at the last arrival, and the last completed {seconds:.3} s later"
        )
    });
    let flows = outcome.flows.iter().filter_map(|flow| {
        let Backlog { waiting, .. } = flow.backlog.filter(|backlog| !backlog.kept_up())?;
        let name = &flow.name;
        Some(format!(
            "flow `{name}` did not keep up, {waiting} of its requests waited at its last arrival"
        ))
    });
    [drifts, unsettled, behind, raised(outcome)].into_iter().flatten().chain(flows).collect()
}

/// That the drive has more spare than was asked for.
fn raised(outcome: &Outcome) -> Option<String> {
    let asked = outcome.figures.get(ASKED_OP_PERCENT)?;
    let op_percent = outcome.figures.get("op_percent")?;
    Some(format!(
        "over-provisioning of {asked} % is too little for this drive, which has {op_percent:.2} %: \
         its write frontiers, parity and collection need so much"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_with_more_spare_than_was_asked_for_is_told() {
        let figures = [("op_percent", 3.125), (ASKED_OP_PERCENT, 1.0)];
        let figures = figures.map(|(name, value)| (name.to_owned(), value)).into();
        let warnings = of(&Outcome { figures, ..Outcome::default() }).join("; ");
        assert!(warnings.contains("of 1 % is too little"), "{warnings}");
        assert!(warnings.contains("has 3.12 %") || warnings.contains("has 3.13 %"), "{warnings}");
    }

    #[test]
    fn a_run_that_is_well_has_no_warning_and_others_say_why() {
        assert_eq!(of(&Outcome::default()), [""; 0]);
        let outcome = Outcome {
            drift: Some(Drift { change: -0.12, noise: 0.01 }),
            settled: Some(Settled { rewrites: 64, change: Some(0.03), waf: 3.0, is_level: false }),
            backlog: Some(Backlog { arrivals_ns: 1_000_000_000, waiting: 99, lag_ns: 500_000_000 }),
            ..Outcome::default()
        };
        let warnings = of(&outcome).join("; ");
        for part in
            ["still drifting, -12.0 %", "not settled after 64", "did not keep up, 99", "0.500 s"]
        {
            assert!(warnings.contains(part), "`{part}`: {warnings}");
        }
    }
}
