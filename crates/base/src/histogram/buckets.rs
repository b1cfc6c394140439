//! Counts of values in buckets whose width is at most a thousandth of the value.
//!
//! The buckets are those of HdrHistogram with three digits, which tests compare with this
//! implementation. It exists because a simulated drive records millions of latencies per second:
//! here the bucket follows from the value's leading zeros.

/// Significant bits of a value: from 1024 up, a bucket is narrower than a thousandth of its values.
const PRECISION_BITS: u32 = 10;

/// Values below this have a bucket each.
const EXACT_BELOW: u64 = 2 << PRECISION_BITS;

/// Counts by bucket.
#[derive(Debug, Clone, Default)]
pub(super) struct Buckets {
    /// Up to the end of the power of two of the largest value.
    counts: Vec<u64>,
    total: u64,
}

/// Number of low bits that are ignored.
#[inline]
fn dropped_bits(value: u64) -> u32 {
    (EXACT_BELOW - 1).leading_zeros() - (value | (EXACT_BELOW - 1)).leading_zeros()
}

#[inline]
fn bucket_of(value: u64) -> usize {
    let dropped = dropped_bits(value);
    ((dropped as usize) << PRECISION_BITS) + (value >> dropped) as usize
}

/// The largest value of a bucket.
fn last_of(bucket: usize) -> u64 {
    let dropped = (bucket >> PRECISION_BITS).saturating_sub(1);
    let kept = bucket - (dropped << PRECISION_BITS);
    ((kept as u64 + 1) << dropped) - 1
}

impl Buckets {
    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        let bucket = bucket_of(value);
        if bucket >= self.counts.len() {
            self.grow(bucket);
        }
        self.counts[bucket] += 1;
        self.total += 1;
    }

    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.counts.resize((bucket + 1).next_multiple_of(1 << PRECISION_BITS), 0);
    }

    pub(super) fn merge(&mut self, other: &Buckets) {
        if let Some(last) = other.counts.len().checked_sub(1)
            && last >= self.counts.len()
        {
            self.grow(last);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    /// Removes all values and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// Number of values.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Number of values in the buckets above that of a value.
    pub(super) fn count_above(&self, value: u64) -> u64 {
        self.counts.iter().skip(bucket_of(value) + 1).sum()
    }

    /// The largest value of the bucket up to which there are `percent` of all values; 0 without
    /// values.
    pub(super) fn percentile(&self, percent: f64) -> u64 {
        let wanted = ((percent / 100.0).min(1.0) * self.total as f64).ceil() as u64;
        let mut seen = 0;
        let reached = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted.max(1)
        });
        reached.map_or(0, last_of)
    }

    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;
    use hdrhistogram::Histogram;

    #[test]
    fn a_bucket_ends_where_the_next_begins_and_is_less_than_a_thousandth_wide() {
        for bucket in 0..40_000 {
            let last = last_of(bucket);
            assert_eq!((bucket_of(last), bucket_of(last + 1)), (bucket, bucket + 1));
            let first = if bucket == 0 { 0 } else { last_of(bucket - 1) + 1 };
            assert!((last - first) * 1000 < first.max(1), "{first} to {last}");
        }
    }

    #[test]
    fn percentiles_are_those_of_hdrhistogram() {
        const PERCENTS: [f64; 9] = [0.0, 0.01, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0, 200.0];
        for seed in 0..300 {
            let mut rng = Rng::seeded(seed).fork("buckets");
            let (mut all, mut reference) = (Buckets::default(), Histogram::<u64>::new(3).unwrap());
            for _ in 0..1 + rng.below(3) {
                let (mut ours, mut theirs) =
                    (Buckets::default(), Histogram::<u64>::new(3).unwrap());
                let bits = rng.below(50);
                for _ in 0..rng.below(400) {
                    let value = rng.below(2 << bits);
                    ours.add(value);
                    theirs.record(value).unwrap();
                }
                all.merge(&ours);
                reference.add(&theirs).unwrap();
                ours.clear();
                assert_eq!((ours.total(), ours.percentile(50.0)), (0, 0), "seed {seed}");
            }
            assert_eq!(all.total(), reference.len(), "seed {seed}");
            for percent in PERCENTS {
                let wanted = match reference.is_empty() {
                    true => 0,
                    // HdrHistogram gives the start of the bucket at 0 only.
                    false => reference.highest_equivalent(reference.value_at_percentile(percent)),
                };
                assert_eq!(all.percentile(percent), wanted, "seed {seed}, {percent} %");
            }
        }
    }
}
