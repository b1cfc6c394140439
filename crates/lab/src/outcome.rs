//! The outcome of one cell of an experiment.

use serde::{Deserialize, Serialize};
use softflash_base::histogram::LatencySummary;
use softflash_nand::Activity;
use std::collections::BTreeMap;

/// Latencies, in milliseconds, above which requests are counted.
pub const SLOW_MS: [u64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/// The result of one run: one device, one layout, one workload, one set of parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// Pages programmed, by cause.
    pub programs: Programs,
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
}

/// Pages programmed, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// First write of the application's data.
    pub host: u64,
    /// Moved by garbage collection.
    pub collection: u64,
    /// Written again by a store's compaction.
    pub compaction: u64,
    /// Parity.
    pub parity: u64,
    /// Logs, headers and other metadata.
    pub metadata: u64,
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
        self.host + self.collection + self.compaction + self.parity + self.metadata
    }

    /// Pages programmed for each page of the application's.
    pub fn waf(&self) -> f64 {
        if self.host == 0 { 0.0 } else { self.all() as f64 / self.host as f64 }
    }
}

impl Outcome {
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
        let seconds = (self.simulated_ns as f64 / 1e9).max(f64::MIN_POSITIVE);
        [self.bytes_read as f64 / seconds, self.bytes_written as f64 / seconds]
    }
}
