//! Latencies of the requests to a volume, for monitors.

use softflash_base::EDGES_US;

/// Counts of latencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latencies {
    by_edge: [u64; EDGES_US.len() + 1],
    sum_us: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { by_edge: [0; EDGES_US.len() + 1], sum_us: 0 }
    }
}

impl Latencies {
    /// Counts a latency in nanoseconds.
    pub fn add(&mut self, ns: u64) {
        let us = ns.div_ceil(1000);
        let place = EDGES_US.partition_point(|edge| *edge < us);
        if let Some(count) = self.by_edge.get_mut(place) {
            *count += 1;
        }
        self.sum_us = self.sum_us.saturating_add(us);
    }

    /// For each of [`EDGES_US`]: how many are at most so long, and longer than the edge before it. The
    /// last number is of those longer than all edges.
    pub fn by_edge(&self) -> &[u64] {
        &self.by_edge
    }

    /// The sum in microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum_us
    }

    /// How many they are.
    pub fn count(&self) -> u64 {
        self.by_edge.iter().sum()
    }
}

/// The latencies of a volume by operation, from the arrival of a request to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VolumeLatencies {
    /// Reads.
    pub read: Latencies,
    /// Writes.
    pub write: Latencies,
    /// Discards.
    pub discard: Latencies,
    /// Flushes.
    pub flush: Latencies,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_counts_at_the_first_edge_that_it_does_not_exceed() {
        let mut latencies = Latencies::default();
        for ns in [1, 1000, 1001, 2000, 4_000_000, 100_000_000_000] {
            latencies.add(ns);
        }
        assert_eq!(latencies.by_edge()[..3], [2, 2, 0]);
        assert_eq!(latencies.by_edge()[12], 1, "4096 us");
        assert_eq!(latencies.by_edge().last(), Some(&1));
        assert_eq!((latencies.count(), latencies.sum_us()), (6, 100_004_006));
    }
}
