//! Lengths of requests of one kind.

use super::report::{SizeBin, Sizes};
use hdrhistogram::Histogram;

/// Longer requests count as this long in percentiles; bounds the memory to 350 KiB.
const CEILING_BYTES: u64 = 1 << 50;

/// An empty histogram with a precision of 0.1 %.
pub(super) fn histogram() -> Histogram<u64> {
    #[expect(clippy::expect_used, reason = "only more than 5 digits are refused")]
    Histogram::new(3).expect("3 digits are a valid precision")
}

/// Adds a value.
#[inline]
pub(super) fn record(histogram: &mut Histogram<u64>, value: u64) {
    #[expect(clippy::expect_used, reason = "a histogram that grows takes all values below 2^63")]
    histogram.record(value).expect("values are below a ceiling");
}

pub(super) struct SizeMeter {
    percentiles: Histogram<u64>,
    /// Requests of 0 bytes, of 1 byte, of up to 2, of up to 4 ...
    powers: [u64; 66],
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for SizeMeter {
    fn default() -> SizeMeter {
        let percentiles = histogram();
        SizeMeter { percentiles, powers: [0; 66], count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl SizeMeter {
    pub(super) fn add(&mut self, bytes: u64) {
        record(&mut self.percentiles, bytes.min(CEILING_BYTES));
        if let Some(count) = self.powers.get_mut(bin(bytes)) {
            *count += 1;
        }
        self.count += 1;
        self.sum += u128::from(bytes);
        self.min = self.min.min(bytes);
        self.max = self.max.max(bytes);
    }

    pub(super) fn finish(&self) -> Option<Sizes> {
        if self.count == 0 {
            return None;
        }
        // Lengths are usually round numbers: the lower end of a histogram's step is the actual one.
        let at = |percent| {
            self.percentiles.lowest_equivalent(self.percentiles.value_at_percentile(percent))
        };
        let bins = self.powers.iter().enumerate().filter(|(_, requests)| **requests > 0);
        let up_to = |bin: usize| match bin.checked_sub(1) {
            None => 0,
            Some(power) => 1_u64.checked_shl(power as u32).unwrap_or(u64::MAX),
        };
        Some(Sizes {
            mean_bytes: self.sum as f64 / self.count as f64,
            p50_bytes: at(50.0),
            p90_bytes: at(90.0),
            p99_bytes: at(99.0),
            min_bytes: self.min,
            max_bytes: self.max,
            histogram: bins
                .map(|(bin, requests)| SizeBin { up_to_bytes: up_to(bin), requests: *requests })
                .collect(),
        })
    }
}

/// The bin of a length: 0 for 0 bytes, 1 for 1 byte, and one more for each power of two.
fn bin(bytes: u64) -> usize {
    match bytes {
        0 => 0,
        _ => 1 + (u64::BITS - (bytes - 1).leading_zeros()) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_end_at_powers_of_two() {
        for (bytes, expected) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (u64::MAX, 65)] {
            assert_eq!(bin(bytes), expected, "{bytes}");
        }
        let mut meter = SizeMeter::default();
        assert_eq!(meter.finish(), None);
        [0, 4096, 4097, 8192, u64::MAX].into_iter().for_each(|bytes| meter.add(bytes));
        let bins = meter.finish().unwrap().histogram;
        let bins: Vec<_> = bins.iter().map(|bin| (bin.up_to_bytes, bin.requests)).collect();
        assert_eq!(bins, [(0, 1), (4096, 1), (8192, 2), (u64::MAX, 1)]);
    }
}
