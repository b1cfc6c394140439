//! The outcome of one cell of an experiment.

use serde::{Deserialize, Serialize};
use softflash_base::histogram::LatencySummary;
use softflash_nand::Activity;
use std::collections::BTreeMap;

/// Latencies, in milliseconds, above which requests are counted.
pub const SLOW_MS: [u64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/// The figure of a run whose drive has more over-provisioning than was asked for: the latter, in
/// percent.
pub const ASKED_OP_PERCENT: &str = "asked_op_percent";

/// The result of one run: one device, one layout, one workload, one set of parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outcome {
    /// Requests submitted.
    pub requests: u64,
    /// Requests completed. In a valid run, all of them.
    pub completed: u64,
    /// Bytes read by the application.
    pub bytes_read: u64,
    /// Bytes written by the application.
    pub bytes_written: u64,
    /// Virtual time of the measured part, in nanoseconds.
    pub simulated_ns: u64,
    /// Latency of reads.
    pub read_latency: LatencySummary,
    /// Latency of writes.
    pub write_latency: LatencySummary,
    /// Standard deviation of the latency of reads and of writes, in nanoseconds.
    pub latency_stddev_ns: [f64; 2],
    /// Reads and writes that took longer than each of [`SLOW_MS`]; empty if there are none.
    pub slow: [Vec<u64>; 2],
    /// The latency that each of [`shares`] of the reads, and of the writes, does not exceed, in
    /// nanoseconds; empty if there are none.
    pub distribution_ns: [Vec<u64>; 2],
    /// Pages programmed, by cause.
    pub programs: Programs,
    /// Bytes programmed, for any cause: whole pages.
    pub programmed_bytes: u64,
    /// The change of write amplification over the measured part; `None` where it is unknown.
    pub drift: Option<Drift>,
    /// How the state before the run was settled, if it was.
    pub settled: Option<Settled>,
    /// Whether the device kept up with requests that come at their own times.
    pub backlog: Option<Backlog>,
    /// Blocks erased.
    pub erases: u64,
    /// The time series of the run.
    pub series: Vec<Sample>,
    /// Share of the time that each channel's bus was taken, 0 to 1.
    pub channel_utilisation: Vec<f64>,
    /// Share of the time that each die's cell array worked, 0 to 1.
    pub die_utilisation: Vec<f64>,
    /// Operations of dies in a short window, for a Gantt chart.
    pub gantt: Vec<Span>,
    /// Bytes of the simulator's memory for each flash page.
    pub bytes_per_page: f64,
    /// Further figures by name, such as `capacity_share`.
    pub figures: BTreeMap<String, f64>,
    /// The figures of each flow of a workload of several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowOutcome>,
}

/// The figures of one of several flows. Their sums are those of the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowOutcome {
    /// Its name.
    pub name: String,
    /// Requests submitted.
    pub requests: u64,
    /// Requests completed.
    pub completed: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// From the beginning of the flow, or of the measured part if that is later, to the last
    /// completion of the flow if it ended before the run, else that of the run, in nanoseconds.
    pub active_ns: u64,
    /// Latency of reads.
    pub read_latency: LatencySummary,
    /// Latency of writes.
    pub write_latency: LatencySummary,
    /// Standard deviation of the latency of reads and of writes, in nanoseconds.
    pub latency_stddev_ns: [f64; 2],
    /// Reads and writes that took longer than each of [`SLOW_MS`]; empty if there are none.
    pub slow: [Vec<u64>; 2],
    /// As [`Outcome::distribution_ns`].
    pub distribution_ns: [Vec<u64>; 2],
    /// Whether the device kept up with a flow whose requests come at their own times.
    pub backlog: Option<Backlog>,
    /// The time series of the flow, in a run with a duration.
    pub series: Vec<Sample>,
}

impl FlowOutcome {
    /// The outcome of a run that the flow would be, for the figures that a flow has.
    pub fn as_run(&self) -> Outcome {
        Outcome {
            requests: self.requests,
            completed: self.completed,
            bytes_read: self.bytes_read,
            bytes_written: self.bytes_written,
            simulated_ns: self.active_ns,
            read_latency: self.read_latency,
            write_latency: self.write_latency,
            latency_stddev_ns: self.latency_stddev_ns,
            slow: self.slow.clone(),
            distribution_ns: self.distribution_ns.clone(),
            backlog: self.backlog,
            series: self.series.clone(),
            ..Outcome::default()
        }
    }
}

/// Pages programmed, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// First write of the application's data.
    pub host: u64,
    /// Moved by garbage collection.
    pub collection: u64,
    /// Moved out of an SLC cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub folding: u64,
    /// Written again by a store's compaction.
    pub compaction: u64,
    /// Parity.
    pub parity: u64,
    /// Logs, headers and other metadata.
    pub metadata: u64,
    /// Left unused in flash pages that were programmed before they were full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub padding: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn has_none(latency: &LatencySummary) -> bool {
    latency.count == 0
}

/// A change of write amplification from the first to the last quarter of a run's requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// The last quarter / the first - 1.
    pub change: f64,
    /// The standard error of `change`, from the intervals within both quarters.
    pub noise: f64,
}

/// The largest relative change of write amplification in a steady state.
const LEVEL: f64 = 0.02;
/// A change above this is not noise, or the run is too short to tell.
const CERTAIN: f64 = 0.1;

impl Drift {
    /// Whether the run has not been in a steady state: it changed by more than 2 %, and by more
    /// than twice the standard error or 10 %.
    pub fn is_significant(&self) -> bool {
        self.change.abs() > (2.0 * self.noise).clamp(LEVEL, CERTAIN)
    }
}

/// How a state was settled: rewrites of the whole drive until write amplification was level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settled {
    /// Rewrites: bytes written / capacity.
    pub rewrites: u32,
    /// The relative change of write amplification from the second last to the last window; `None`
    /// if there was one only.
    pub change: Option<f64>,
    /// Write amplification of the last window, in pages.
    pub waf: f64,
    /// Whether this change is within the bound, 1 %.
    pub is_level: bool,
}

/// The requests that had not completed when the last one came, in a run whose requests come at
/// their own times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backlog {
    /// From the beginning of the run to the last arrival, in nanoseconds.
    pub arrivals_ns: u64,
    /// Requests that had not completed then.
    pub waiting: u64,
    /// From then to the last completion, in nanoseconds.
    pub lag_ns: u64,
}

/// The largest lag of a device that keeps up, as a share of the time of all arrivals.
const LAG_SHARE: f64 = 0.01;
/// As many requests may be under way at the end, however short the run.
const UNDER_WAY: u64 = 32;

impl Backlog {
    /// Whether the device kept up: the last request completed within 1 % of the time of all
    /// arrivals, or no more than 32 had not completed when it came.
    pub fn kept_up(&self) -> bool {
        self.waiting <= UNDER_WAY || self.lag_ns as f64 <= LAG_SHARE * self.arrivals_ns as f64
    }
}

/// The shares of the points of [`Outcome::distribution_ns`], 0 to 1: each percent, and more of the
/// slowest.
pub fn shares() -> impl Iterator<Item = f64> {
    let percents = (0..100).map(f64::from);
    let slowest = [99.5, 99.8, 99.9, 99.95, 99.98, 99.99, 99.995, 99.998, 99.999, 100.0];
    percents.chain(slowest).map(|percent| percent / 100.0)
}

/// An interval of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Its end, from the beginning of the measured part.
    pub at_ns: u64,
    /// Bytes read in it.
    pub bytes_read: u64,
    /// Bytes written in it.
    pub bytes_written: u64,
    /// Median, 99th and 99.9th percentile of the latency of all requests that completed in it.
    pub latency_ns: [u64; 3],
    /// Latency of the reads that completed in it.
    #[serde(default, skip_serializing_if = "has_none")]
    pub read_latency: LatencySummary,
    /// Latency of the writes that completed in it.
    #[serde(default, skip_serializing_if = "has_none")]
    pub write_latency: LatencySummary,
    /// Write amplification in it; 0 where nothing was written.
    pub waf: f64,
}

/// One operation of a die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The die.
    pub die: u32,
    /// The activity.
    pub what: Activity,
    /// From the beginning of the window, in nanoseconds.
    pub begin_ns: u64,
    /// Its end.
    pub end_ns: u64,
}

impl Programs {
    /// Pages programmed for any cause.
    pub fn all(&self) -> u64 {
        self.host
            + self.collection
            + self.folding
            + self.compaction
            + self.parity
            + self.metadata
            + self.padding
    }

    /// Pages programmed for each page of the application's.
    pub fn waf(&self) -> f64 {
        if self.host == 0 { 0.0 } else { self.all() as f64 / self.host as f64 }
    }
}

impl Outcome {
    /// Bytes programmed for each byte that the application wrote; 0 if it wrote none.
    pub fn waf_bytes(&self) -> f64 {
        match self.bytes_written {
            0 => 0.0,
            written => self.programmed_bytes as f64 / written as f64,
        }
    }

    /// Requests completed a second.
    pub fn iops(&self) -> f64 {
        self.completed as f64 / self.seconds()
    }

    /// Virtual seconds of the measured part, at least a nanosecond: rates are finite for requests
    /// that take no time, as trims.
    pub fn seconds(&self) -> f64 {
        self.simulated_ns.max(1) as f64 / 1e9
    }

    /// This outcome of clients, with the figures of flash and store from `observed`.
    pub fn with_observed(self, observed: Outcome) -> Outcome {
        let Outcome { programs, erases, channel_utilisation, die_utilisation, .. } = observed;
        let Outcome { gantt, bytes_per_page, figures, .. } = observed;
        Outcome {
            programs,
            erases,
            channel_utilisation,
            die_utilisation,
            gantt,
            bytes_per_page,
            figures,
            ..self
        }
    }

    /// Bytes a second of reads and of writes.
    pub fn bytes_per_second(&self) -> [f64; 2] {
        let seconds = self.seconds();
        [self.bytes_read as f64 / seconds, self.bytes_written as f64 / seconds]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_whole_pages() {
        let outcome =
            Outcome { bytes_written: 4096, programmed_bytes: 16384, ..Outcome::default() };
        assert_eq!(outcome.waf_bytes(), 4.0);
        assert_eq!(Outcome::default().waf_bytes(), 0.0);
    }

    #[test]
    fn rates_of_requests_that_take_no_time_are_finite() {
        assert!(Outcome { completed: 1000, ..Outcome::default() }.iops().is_finite());
    }

    #[test]
    fn a_device_keeps_up_if_its_queue_does_not_grow() {
        let second = 1_000_000_000;
        let kept_up =
            |waiting, lag_ns| Backlog { arrivals_ns: 10 * second, waiting, lag_ns }.kept_up();
        assert!(kept_up(1000, second / 10) && kept_up(32, second));
        assert!(!kept_up(33, second / 9));
    }

    #[test]
    fn a_drift_is_significant_above_its_noise() {
        let significant = |change, noise| Drift { change, noise }.is_significant();
        assert!(significant(-0.021, 0.0) && significant(0.05, 0.02) && significant(0.11, 0.5));
        assert!(!significant(0.019, 0.0) && !significant(-0.05, 0.03) && !significant(0.1, 0.5));
    }

    #[test]
    fn shares_rise_from_0_to_1() {
        let shares: Vec<f64> = shares().collect();
        assert!(shares.is_sorted() && shares.first() == Some(&0.0) && shares.last() == Some(&1.0));
    }
}
