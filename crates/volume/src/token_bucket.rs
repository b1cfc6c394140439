//! A token bucket: a limit of a rate that lets a burst pass after a rest.
//!
//! The bucket is kept as the time at which it will be full again. A request begins when the bucket
//! is not in debt, and takes its tokens then, be they more than are there: so the largest request
//! passes, and the ones behind it wait longer. In any time T, the requests that begin take at most
//! `rate * (T + burst)`, and one request more.
//!
//! The same as the generic cell rate algorithm, *virtual scheduling* of ITU-T I.371.

use softflash_base::Time;
use std::cell::Cell;

/// A full bucket holds the tokens of this time.
pub(crate) const BURST_NS: u64 = 100_000_000;

const SECOND_NS: u128 = 1_000_000_000;

/// One bucket, full at first.
#[derive(Debug, Default)]
pub(crate) struct TokenBucket {
    full_at: Cell<Time>,
}

impl TokenBucket {
    /// When the next request may begin.
    pub fn ready_at(&self) -> Time {
        Time(self.full_at.get().0.saturating_sub(BURST_NS))
    }

    /// Takes the tokens of a request, at `rate` tokens a second.
    pub fn take(&self, now: Time, tokens: u64, rate: u64) {
        let ns = (u128::from(tokens) * SECOND_NS).div_ceil(u128::from(rate.max(1)));
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        self.full_at.set(self.full_at.get().max(now) + ns);
    }

    /// Fills the bucket.
    pub fn fill(&self) {
        self.full_at.set(Time::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of so many tokens that begin until `end`, each as soon as it may.
    fn begun(bucket: &TokenBucket, start: Time, end: Time, tokens: u64, rate: u64) -> u64 {
        let (mut now, mut count) = (start, 0);
        loop {
            now = now.max(bucket.ready_at());
            if now >= end {
                return count;
            }
            bucket.take(now, tokens, rate);
            count += 1;
        }
    }

    const SECOND: Time = Time(1_000_000_000);

    #[test]
    fn the_rate_holds_after_a_burst_of_a_tenth_of_a_second() {
        for rate in [1, 3, 1000, 1_000_000] {
            let bucket = TokenBucket::default();
            let first = begun(&bucket, Time::ZERO, SECOND, 1, rate);
            let most = rate + rate / 10 + 1;
            assert!((rate..=most).contains(&first), "{first} at {rate}/s");
            let second = begun(&bucket, SECOND, SECOND + SECOND.0, 1, rate);
            assert!(second.abs_diff(rate) <= 1, "{second} at {rate}/s");
        }
    }

    #[test]
    fn a_request_that_is_larger_than_a_burst_passes_and_those_behind_it_wait() {
        let bucket = TokenBucket::default();
        bucket.take(Time::ZERO, 5000, 1000);
        assert_eq!(bucket.ready_at(), Time(4_900_000_000));
        bucket.take(bucket.ready_at(), 1000, 1000);
        assert_eq!(bucket.ready_at(), Time(5_900_000_000));
    }

    #[test]
    fn a_rest_fills_the_bucket_and_no_more() {
        let bucket = TokenBucket::default();
        bucket.take(Time::ZERO, 100, 1000);
        let later = Time(3600 * SECOND.0);
        let burst = begun(&bucket, later, later + 1, 1, 1000);
        assert_eq!(burst, 101);
        bucket.take(later, 1 << 60, 1);
        bucket.fill();
        assert_eq!(bucket.ready_at(), Time::ZERO);
    }
}
