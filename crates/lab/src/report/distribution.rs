//! Cumulative distributions of latencies.

use crate::experiment::Requests;
use crate::outcome::{Outcome, shares};
use softflash_report::{Axis, Plot, Series, Style, Unit};

/// The axes of a distribution: latency, and the share of the requests that do not exceed it.
pub(super) fn plot(title: impl Into<String>, x_label: &str, y_label: &str) -> Plot {
    let x = Axis::new(x_label).unit(Unit::Nanoseconds).log10();
    let y = Axis::new(y_label).unit(Unit::Share).including(0.0).including(1.0);
    Plot::new(title, x, y)
}

/// The distribution of a run; `None` if it has no such requests.
pub(super) fn line(name: &str, outcome: &Outcome, of: Requests) -> Option<Series> {
    let [reads, writes] = &outcome.distribution_ns;
    let latencies_ns = if of == Requests::Read { reads } else { writes };
    // A latency of 0 has no place on a logarithmic axis.
    let points = latencies_ns.iter().zip(shares()).filter(|(ns, _)| **ns > 0);
    let points: Vec<(f64, f64)> = points.map(|(ns, share)| (*ns as f64, share)).collect();
    (!points.is_empty()).then(|| Series::new(name, points).style(Style::Line))
}

/// The distributions of reads and of writes of a run; `None` if it has neither.
pub(super) fn of_run(label: &str, outcome: &Outcome) -> Option<Plot> {
    let kinds = [("reads", Requests::Read), ("writes", Requests::Write)];
    let lines: Vec<Series> =
        kinds.into_iter().filter_map(|(name, of)| line(name, outcome, of)).collect();
    let title = format!("Distribution of latency: {label}");
    let empty = plot(title, "latency", "share of the requests, at most");
    (!lines.is_empty()).then(|| lines.into_iter().fold(empty, Plot::series))
}
