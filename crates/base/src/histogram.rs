//! Latency histograms: fixed relative precision, mergeable, small.

mod buckets;

use buckets::Buckets;
use serde::{Deserialize, Serialize};

/// Longer latencies (13 days) count as this in percentiles; limits the memory.
const CEILING_NS: u64 = 1 << 50;

/// Latencies in nanoseconds. Percentiles are within 0.1 %; mean and maximum are exact. Memory grows
/// with the largest value seen, up to 350 KiB.
#[derive(Debug, Clone, Default)]
pub struct LatencyHistogram {
    buckets: Buckets,
    sum_ns: u128,
    max_ns: u64,
}

impl LatencyHistogram {
    /// An empty histogram.
    pub fn new() -> LatencyHistogram {
        LatencyHistogram::default()
    }

    /// Records a latency.
    #[inline]
    pub fn record_ns(&mut self, latency_ns: u64) {
        self.buckets.add(latency_ns.min(CEILING_NS));
        self.sum_ns += u128::from(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Adds all records of `other`.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.buckets.merge(&other.buckets);
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Removes all records and keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.clear();
        self.sum_ns = 0;
        self.max_ns = 0;
    }

    /// Number of records.
    pub fn count(&self) -> u64 {
        self.buckets.total()
    }

    /// Mean in nanoseconds; 0 without records.
    pub fn mean_ns(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.sum_ns as f64 / count as f64,
        }
    }

    /// The latency that `percent` (0 to 100) of all records do not exceed; 0 without records.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        self.buckets.percentile(percent).min(self.max_ns)
    }

    /// Records above this latency, to which those within 0.1 % above it do not count.
    pub fn count_above(&self, latency_ns: u64) -> u64 {
        self.buckets.count_above(latency_ns.min(CEILING_NS))
    }

    /// The longest latency.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The usual figures.
    pub fn summary(&self) -> LatencySummary {
        LatencySummary {
            count: self.count(),
            mean_ns: self.mean_ns(),
            p50_ns: self.percentile_ns(50.0),
            p90_ns: self.percentile_ns(90.0),
            p95_ns: self.percentile_ns(95.0),
            p99_ns: self.percentile_ns(99.0),
            p999_ns: self.percentile_ns(99.9),
            p9999_ns: self.percentile_ns(99.99),
            max_ns: self.max_ns,
        }
    }
}

/// The figures of a [`LatencyHistogram`] for reports.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LatencySummary {
    /// Number of records.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// 99.99th percentile.
    pub p9999_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies_ns: impl IntoIterator<Item = u64>) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        latencies_ns.into_iter().for_each(|ns| histogram.record_ns(ns));
        histogram
    }

    #[test]
    fn percentiles_are_within_a_thousandth_and_the_ends_are_exact() {
        let summary = of((1..=10_000).map(|us| us * 1000)).summary();
        let near = |found: u64, wanted: u64| found.abs_diff(wanted) * 1000 <= wanted;
        assert_eq!((summary.count, summary.max_ns), (10_000, 10_000_000));
        assert!((summary.mean_ns - 5_000_500.0).abs() < 1e-6);
        assert!(near(summary.p50_ns, 5_000_000), "{summary:?}");
        assert!(near(summary.p90_ns, 9_000_000), "{summary:?}");
        assert!(near(summary.p95_ns, 9_500_000), "{summary:?}");
        assert!(near(summary.p99_ns, 9_900_000), "{summary:?}");
        assert!(near(summary.p999_ns, 9_990_000), "{summary:?}");
        assert!(near(summary.p9999_ns, 9_999_000), "{summary:?}");
    }

    #[test]
    fn records_above_a_latency_are_counted_within_a_thousandth() {
        let histogram = of((1..=10_000).map(|us| us * 1000));
        assert_eq!((histogram.count_above(0), histogram.count_above(10_000_000)), (10_000, 0));
        let above = histogram.count_above(5_000_000);
        assert!((4_995..=5_000).contains(&above), "{above}");
        assert_eq!(of([]).count_above(0), 0);
    }

    #[test]
    fn merging_equals_recording_together() {
        let (small, large) = (1..=100_u64, (1..=100_u64).map(|s| s * 1_000_000_000));
        let mut merged = of(small.clone());
        merged.merge(&of(large.clone()));
        assert_eq!(merged.summary(), of(small.clone().chain(large.clone())).summary());
        let mut other_way = of(large.clone());
        other_way.merge(&of(small.clone()));
        assert_eq!(other_way.summary(), merged.summary());
    }

    #[test]
    fn nothing_recorded_is_all_zeros() {
        let mut histogram = of([5, 6]);
        histogram.clear();
        assert_eq!(histogram.summary(), LatencySummary::default());
    }

    #[test]
    fn absurd_latencies_are_taken_and_memory_stays_bounded() {
        let histogram = of([0, u64::MAX]);
        assert_eq!((histogram.count(), histogram.max_ns()), (2, u64::MAX));
        assert!(histogram.buckets.memory_bytes() <= 350 << 10);
    }
}
