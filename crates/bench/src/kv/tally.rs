//! What a measurement counts.

use super::series::Series;
use softflash_console::measure::{Latencies, LatencySummary};

/// Counts of one thread, or of all.
pub struct Tally {
    /// Operations completed.
    pub operations: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Keys with values at the end.
    pub live_keys: u64,
    /// Latencies of whole operations.
    pub all: Latencies,
    reads: Latencies,
    writes: Latencies,
    /// Operations by second.
    pub series: Series,
}

/// The times that an operation took, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Took {
    /// Reading, if it read.
    pub read_ns: Option<u64>,
    /// Writing or deleting, if it did.
    pub write_ns: Option<u64>,
    /// Bytes of keys and values.
    pub bytes: u64,
}

impl Tally {
    /// Nothing counted yet.
    pub fn new() -> Tally {
        Tally {
            operations: 0,
            bytes: 0,
            live_keys: 0,
            all: Latencies::default(),
            reads: Latencies::default(),
            writes: Latencies::default(),
            series: Series::default(),
        }
    }

    /// An operation ended `at_ns` after the start.
    pub fn record(&mut self, took: Took, at_ns: u64) {
        let latency_ns = took.read_ns.unwrap_or(0) + took.write_ns.unwrap_or(0);
        self.operations += 1;
        self.bytes += took.bytes;
        self.all.record(latency_ns);
        took.read_ns.into_iter().for_each(|ns| self.reads.record(ns));
        took.write_ns.into_iter().for_each(|ns| self.writes.record(ns));
        self.series.record(at_ns, latency_ns);
    }

    /// Adds the counts of another thread.
    pub fn merge(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.live_keys += other.live_keys;
        self.all.merge(&other.all);
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.series.merge(&other.series);
    }

    /// Latencies of reads and of writes, if there were both.
    pub fn apart(&self) -> Option<(LatencySummary, LatencySummary)> {
        let both = !self.reads.is_empty() && !self.writes.is_empty();
        both.then(|| (self.reads.summary(), self.writes.summary()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_are_told_apart_where_there_are_both() {
        let mut tally = Tally::new();
        tally.record(Took { read_ns: Some(1_000_000), bytes: 7, ..Took::default() }, 0);
        assert!(tally.apart().is_none());
        tally.record(Took { write_ns: Some(9_000_000), bytes: 8, ..Took::default() }, 0);
        // A read-modify-write is one operation of both.
        let both = Took { read_ns: Some(1_000_000), write_ns: Some(9_000_000), bytes: 9 };
        tally.record(both, 0);
        assert_eq!((tally.operations, tally.bytes), (3, 24));
        let (reads, writes) = tally.apart().unwrap();
        assert!((reads.max_us / 1_000.0 - 1.0).abs() < 0.01, "{reads:?}");
        assert!((writes.p50_us / 9_000.0 - 1.0).abs() < 0.01, "{writes:?}");
        assert!((tally.all.summary().max_us / 10_000.0 - 1.0).abs() < 0.01);
    }
}
