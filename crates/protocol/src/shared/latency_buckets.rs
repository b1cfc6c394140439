//! A histogram of latencies that many threads add to: fixed buckets, each a relaxed counter.

use softflash_base::EDGES_US;
use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

/// The highest power of two, in microseconds, with buckets of its own: 17 to 34 s.
const TOP: u32 = 24;
/// Four buckets for each power of two, and one for longer latencies.
const BUCKETS: usize = 4 * TOP as usize + 1;

/// Counts of latencies.
pub(super) struct LatencyBuckets {
    counts: [AtomicU64; BUCKETS],
    /// In microseconds, because clients with deep pipelines add many latencies at a time: a sum in
    /// nanoseconds could overflow within hours.
    sum_us: AtomicU64,
}

impl Default for LatencyBuckets {
    fn default() -> LatencyBuckets {
        LatencyBuckets { counts: array::from_fn(|_| AtomicU64::new(0)), sum_us: AtomicU64::new(0) }
    }
}

/// The figures of a histogram.
pub(super) struct Summary {
    pub count: u64,
    pub sum_us: u64,
    /// For each of [`EDGES_US`]: how many are at most so long, and longer than the edge before it.
    /// The last number is of those longer than all edges.
    pub by_edge: Vec<u64>,
    /// Median, 99th and 99.9th percentile.
    pub percentiles_us: [u64; 3],
}

/// The bucket of a latency: an edge belongs to the bucket below it.
fn bucket_of(ns: u64) -> usize {
    let above = ns.div_ceil(1000).saturating_sub(1);
    match above.checked_ilog2() {
        None | Some(0 | 1) => above as usize,
        Some(power) if power <= TOP => {
            4 * (power as usize - 1) + (above >> (power - 2)) as usize % 4
        }
        Some(_) => BUCKETS - 1,
    }
}

/// The inclusive upper edge of a bucket, in microseconds.
fn edge_us(bucket: usize) -> u64 {
    let next = bucket as u64 + 1;
    if next < 4 { next } else { (4 + next % 4) << (next / 4 - 1) }
}

impl LatencyBuckets {
    /// Adds `count` equal latencies.
    pub fn add(&self, count: u64, ns: u64) {
        if let Some(bucket) = self.counts.get(bucket_of(ns)) {
            bucket.fetch_add(count, Ordering::Relaxed);
        }
        let sum_us = (u128::from(ns) * u128::from(count) + 500) / 1000;
        self.sum_us.fetch_add(u64::try_from(sum_us).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn reset(&self) {
        self.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        self.sum_us.store(0, Ordering::Relaxed);
    }

    /// The figures now. While other threads add, the sum may be ahead of the counts.
    pub fn summary(&self) -> Summary {
        let counts: Vec<u64> =
            self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        let buckets = || counts.iter().enumerate().map(|(bucket, count)| (edge_us(bucket), *count));
        let mut by_edge = vec![0; EDGES_US.len() + 1];
        for (edge_us, count) in buckets() {
            let place = EDGES_US.partition_point(|edge| *edge < edge_us);
            if let Some(sum) = by_edge.get_mut(place) {
                *sum += count;
            }
        }
        let percentile = |thousandths: u64| {
            let (wanted, mut passed) = ((count * thousandths).div_ceil(1000), 0);
            let mut reached = buckets().filter(|(_, count)| *count > 0);
            let edge = reached.find(|(_, count)| {
                passed += count;
                passed >= wanted
            });
            edge.map_or(0, |(edge, _)| edge)
        };
        Summary {
            count,
            sum_us: self.sum_us.load(Ordering::Relaxed),
            by_edge,
            percentiles_us: [percentile(500), percentile(990), percentile(999)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_hold_their_edges() {
        for bucket in 0..BUCKETS - 1 {
            let edge_ns = edge_us(bucket) * 1000;
            assert_eq!(bucket_of(edge_ns), bucket);
            assert_eq!(bucket_of(edge_ns + 1), bucket + 1);
            assert!(bucket == 0 || edge_us(bucket - 1) * 5 >= edge_us(bucket) * 4 || bucket < 4);
        }
        assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BUCKETS - 1));
        assert_eq!(EDGES_US.last(), Some(&edge_us(BUCKETS - 2)));
        assert!(EDGES_US.iter().all(|edge| (0..BUCKETS).any(|bucket| edge_us(bucket) == *edge)));
    }

    #[test]
    fn figures_are_those_of_the_latencies() {
        let buckets = LatencyBuckets::default();
        (1..=1000).for_each(|us| buckets.add(2, us * 1000));
        let Summary { count, sum_us, by_edge, percentiles_us } = buckets.summary();
        assert_eq!((count, sum_us), (2000, 1_001_000));
        buckets.add(3, 1500);
        assert_eq!(buckets.summary().sum_us, sum_us + 5, "4.5 µs, rounded");
        let at_most = |us: u64| {
            let edges = EDGES_US.iter().take_while(|edge| **edge <= us).count();
            by_edge[..edges].iter().sum::<u64>()
        };
        assert_eq!((at_most(1), at_most(2), at_most(512), at_most(1024)), (2, 4, 1024, 2000));
        for (found, wanted) in percentiles_us.into_iter().zip([500, 990, 999]) {
            assert!((wanted..=wanted * 5 / 4).contains(&found), "{found} for {wanted}");
        }
        buckets.add(1, 100_000_000_000);
        let longer = buckets.summary();
        assert_eq!((longer.count, longer.by_edge.last()), (2004, Some(&1)));
        buckets.reset();
        assert_eq!(buckets.summary().count, 0);
        assert_eq!(buckets.summary().percentiles_us, [0; 3]);
    }
}
