//! Caps on bytes a second: token buckets in virtual time.

use crate::error::{Problem, count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softflash_base::{AccessKind, Time};

/// The most bytes per second: far above any device, and without overflow in calculations.
const MAX_BYTES_PER_SECOND: u64 = 1 << 50;

/// Caps of a workload; an absent one means no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateCaps {
    /// The most bytes read per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_125_899_906_842_624_u64))]
    pub read_bytes_per_second: Option<u64>,
    /// The most bytes written per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_125_899_906_842_624_u64))]
    pub write_bytes_per_second: Option<u64>,
    /// Bytes of reads, and of writes, that may pass at once after a pause; 0: evenly spaced.
    #[serde(default)]
    pub burst_bytes: u64,
}

impl RateCaps {
    /// The cap on requests of a kind, if there is one. Trims transfer no data and have none.
    pub fn of(&self, kind: AccessKind) -> Option<RateCap> {
        let bytes_per_second = match kind {
            AccessKind::Read => self.read_bytes_per_second,
            AccessKind::Write => self.write_bytes_per_second,
            AccessKind::Trim => None,
        };
        bytes_per_second.map(|rate| RateCap::new(rate, self.burst_bytes))
    }

    pub(crate) fn validate(&self) -> Result<(), Problem> {
        let rates = [
            ("rate_caps.read_bytes_per_second", self.read_bytes_per_second),
            ("rate_caps.write_bytes_per_second", self.write_bytes_per_second),
        ];
        for (field, rate) in rates {
            rate.map_or(Ok(()), |rate| count(field, rate, MAX_BYTES_PER_SECOND))?;
        }
        Ok(())
    }
}

/// A token bucket: `bytes_per_second` flow in, at most `burst_bytes` are kept. A request begins
/// when the bucket has no debt from earlier requests, so that a request larger than the bucket can
/// pass too.
#[derive(Debug, Clone)]
pub struct RateCap {
    bytes_per_second: u64,
    /// Times here are nanoseconds × bytes a second: whole numbers, so that nothing is lost by
    /// rounding.
    burst: u128,
    /// The time at which all admitted requests are paid for.
    paid: u128,
}

impl RateCap {
    /// A full bucket; a rate of 0 counts as 1.
    pub fn new(bytes_per_second: u64, burst_bytes: u64) -> RateCap {
        let burst = u128::from(burst_bytes) * 1_000_000_000;
        RateCap { bytes_per_second: bytes_per_second.max(1), burst, paid: 0 }
    }

    /// When a request of `bytes` that is ready `now` may begin. The request is admitted: another
    /// call is another request.
    pub fn earliest(&mut self, now: Time, bytes: u64) -> Time {
        let rate = u128::from(self.bytes_per_second);
        let ready = u128::from(now.0) * rate;
        let begins = ready.max(self.paid.saturating_sub(self.burst));
        self.paid = self.paid.max(begins) + u128::from(bytes) * 1_000_000_000;
        Time(u64::try_from(begins.div_ceil(rate)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_a_burst_requests_are_evenly_spaced() {
        let mut cap = RateCap::new(3, 0);
        let begins: Vec<u64> = (0..4).map(|_| cap.earliest(Time(0), 1).0).collect();
        assert_eq!(begins, [0, 333_333_334, 666_666_667, 1_000_000_000]);
    }

    #[test]
    fn a_pause_fills_the_bucket_and_no_more() {
        let mut cap = RateCap::new(1000, 100);
        let mut begins = |at: u64| cap.earliest(Time(at), 50).0 / 1_000_000;
        assert_eq!([begins(0), begins(0), begins(0), begins(0)], [0, 0, 0, 50]);
        let later = 10_000_000_000;
        let after: Vec<u64> = (0..4).map(|_| begins(later) - 10_000).collect();
        assert_eq!(after, [0, 0, 0, 50]);
    }

    #[test]
    fn caps_are_of_reads_and_of_writes_and_not_of_trims() {
        let caps = RateCaps { write_bytes_per_second: Some(10), ..RateCaps::default() };
        assert!(caps.of(AccessKind::Read).is_none() && caps.of(AccessKind::Trim).is_none());
        assert!(caps.of(AccessKind::Write).is_some());
        let none = RateCaps { read_bytes_per_second: Some(0), ..RateCaps::default() };
        assert_eq!(
            none.validate(),
            Err(Problem::Zero { field: "rate_caps.read_bytes_per_second" })
        );
    }

    proptest! {
        /// The bytes that pass in any period are at most the inflow, the bucket, and one request.
        #[test]
        fn no_stretch_of_time_has_more_than_the_cap(
            rate in 1_u64..1_000_000_000,
            burst in 0_u64..1_000_000,
            requests in prop::collection::vec((0_u64..10_000_000, 1_u64..100_000), 1..60),
        ) {
            let mut cap = RateCap::new(rate, burst);
            let mut now = 0;
            let begun: Vec<(u64, u64)> = requests
                .iter()
                .map(|&(pause_ns, bytes)| {
                    now += pause_ns;
                    let begins = cap.earliest(Time(now), bytes).0;
                    assert!(begins >= now);
                    (begins, bytes)
                })
                .collect();
            prop_assert!(begun.is_sorted_by_key(|(begins, _)| begins));
            for first in 0..begun.len() {
                let mut sum = 0_u128;
                for (begins, bytes) in &begun[first..] {
                    let flowed = u128::from(begins - begun[first].0 + 1) * u128::from(rate);
                    prop_assert!(sum * 1_000_000_000 <= flowed + u128::from(burst) * 1_000_000_000);
                    sum += u128::from(*bytes);
                }
            }
        }
    }
}
