//! Shared measurements of the benchmarks: time, processor time and latencies.

use crate::host;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Upper bound of the histogram.
const LONGEST_NS: u64 = 600_000_000_000;

/// Latencies, in nanoseconds.
pub struct Latencies(Option<Histogram<u64>>);

impl Default for Latencies {
    /// No latencies.
    fn default() -> Latencies {
        Latencies(Histogram::new_with_bounds(1, LONGEST_NS, 3).ok())
    }
}

impl Latencies {
    /// Records a latency.
    pub fn record(&mut self, ns: u64) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(ns.max(1));
        }
    }

    /// Whether none was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(Histogram::is_empty)
    }

    /// Adds those of another thread.
    pub fn merge(&mut self, other: &Latencies) {
        if let (Some(all), Some(part)) = (&mut self.0, &other.0) {
            // Both have the same bounds.
            let _ = all.add(part);
        }
    }

    /// The usual percentiles.
    pub fn summary(&self) -> LatencySummary {
        let at = |quantile: f64| {
            self.0.as_ref().map_or(0.0, |all| all.value_at_quantile(quantile) as f64 / 1000.0)
        };
        LatencySummary {
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: at(1.0),
        }
    }
}

/// Percentiles in microseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Median.
    pub p50_us: f64,
    /// 90 %.
    pub p90_us: f64,
    /// 99 %.
    pub p99_us: f64,
    /// 99.9 %.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
}

impl LatencySummary {
    /// Rows of a table.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        [
            ("latency p50", self.p50_us),
            ("latency p90", self.p90_us),
            ("latency p99", self.p99_us),
            ("latency p99.9", self.p999_us),
            ("latency max", self.max_us),
        ]
        .map(|(name, us)| (name, format!("{us:.1} us")))
        .into()
    }
}

/// The start of a measurement.
pub struct Stopwatch {
    wall: Instant,
    cpu: Duration,
}

/// The cost of a measured part.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Cost {
    /// Wall time.
    pub seconds: f64,
    /// Processor time of all threads of this process.
    pub cpu_seconds: f64,
}

impl Stopwatch {
    /// Starts.
    pub fn start() -> Stopwatch {
        Stopwatch { wall: host::now(), cpu: host::cpu_time() }
    }

    /// Stops.
    pub fn stop(&self) -> Cost {
        Cost {
            seconds: self.wall.elapsed().as_secs_f64().max(1e-9),
            cpu_seconds: host::cpu_time().saturating_sub(self.cpu).as_secs_f64().max(1e-9),
        }
    }
}
