//! The figures of each of several flows.

use super::report::{Latency, backlog_line};
use super::scaled::{bandwidth, latency, rate};
use serde::Serialize;
use softflash_lab::{Backlog, FlowOutcome, Sample};

/// The figures of a flow.
#[derive(Debug, Serialize)]
pub(super) struct FlowReport {
    name: String,
    requests: u64,
    completed: u64,
    bytes_read: u64,
    bytes_written: u64,
    /// Virtual seconds in which it made requests: rates are for them.
    active_seconds: f64,
    iops: f64,
    read_iops: f64,
    write_iops: f64,
    read_bytes_per_second: f64,
    write_bytes_per_second: f64,
    /// Of requests that come at their own times.
    backlog: Option<Backlog>,
    kept_up: Option<bool>,
    read_latency_ns: Latency,
    write_latency_ns: Latency,
    /// The flow over time, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Vec<Sample>>,
}

impl FlowReport {
    pub(super) fn of(flow: &FlowOutcome, with_series: bool) -> FlowReport {
        let run = flow.as_run();
        let [read_bytes_per_second, write_bytes_per_second] = run.bytes_per_second();
        FlowReport {
            name: flow.name.clone(),
            requests: flow.requests,
            completed: flow.completed,
            bytes_read: flow.bytes_read,
            bytes_written: flow.bytes_written,
            active_seconds: flow.active_ns as f64 / 1e9,
            iops: run.iops(),
            read_iops: flow.read_latency.count as f64 / run.seconds(),
            write_iops: flow.write_latency.count as f64 / run.seconds(),
            read_bytes_per_second,
            write_bytes_per_second,
            backlog: flow.backlog,
            kept_up: flow.backlog.map(|backlog| backlog.kept_up()),
            read_latency_ns: flow.read_latency.into(),
            write_latency_ns: flow.write_latency.into(),
            series: with_series.then(|| flow.series.clone()),
        }
    }

    /// A row of its reads and a row of its writes, of those that it has.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let reads = ("reads", &self.read_latency_ns, self.read_iops, self.read_bytes_per_second);
        let writes =
            ("writes", &self.write_latency_ns, self.write_iops, self.write_bytes_per_second);
        let both = [reads, writes].into_iter().filter(|(_, latencies, ..)| latencies.count > 0);
        let row = |(kind, of, iops, bytes): (&str, &Latency, f64, f64)| {
            vec![
                self.name.clone(),
                kind.to_owned(),
                of.count.to_string(),
                rate(iops),
                bandwidth(bytes),
                latency(of.mean),
                latency(of.p99 as f64),
                latency(of.p999 as f64),
                latency(of.max as f64),
            ]
        };
        let rows: Vec<Vec<String>> = both.map(row).collect();
        if rows.is_empty() { vec![vec![self.name.clone(), "no requests".to_owned()]] } else { rows }
    }

    /// Whether the drive kept up with a flow whose requests come at their own times.
    pub(super) fn backlog_line(&self) -> Option<String> {
        self.backlog.map(|backlog| format!("{}: {}", self.name, backlog_line(&backlog)))
    }
}
