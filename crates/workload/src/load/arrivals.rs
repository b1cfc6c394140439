//! Arrival times of the requests of an open loop.

use crate::error::{Problem, count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softflash_base::Time;
use softflash_base::random::Rng;

/// The most requests per second: one per nanosecond, the resolution of time.
pub(super) const MAX_RATE: f64 = 1e9;

/// The longest part of a cycle of bursts: an hour.
const MAX_BURST_NS: u64 = 3_600_000_000_000;

/// How arrivals are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ArrivalPattern {
    /// Constant gaps.
    Fixed,
    /// Independent of each other: gaps are exponential.
    #[default]
    Poisson,
    /// On-off periods: Poisson while on, at a rate that gives the configured average, and no
    /// arrivals while off. Begins with an on period.
    Bursts {
        /// The length of an on period, in nanoseconds.
        #[schemars(range(min = 1, max = 3_600_000_000_000_u64))]
        on_ns: u64,
        /// The length of an off period, in nanoseconds.
        #[schemars(range(min = 1, max = 3_600_000_000_000_u64))]
        off_ns: u64,
    },
}

impl ArrivalPattern {
    pub(super) fn validate(&self) -> Result<(), Problem> {
        match *self {
            ArrivalPattern::Bursts { on_ns, off_ns } => {
                count("load.open.arrivals.bursts.on_ns", on_ns, MAX_BURST_NS)?;
                count("load.open.arrivals.bursts.off_ns", off_ns, MAX_BURST_NS)
            }
            ArrivalPattern::Fixed | ArrivalPattern::Poisson => Ok(()),
        }
    }
}

/// An endless sequence of arrival times that never decrease.
#[derive(Debug, Clone)]
pub struct Arrivals {
    pattern: ArrivalPattern,
    rng: Rng,
    /// Mean gap in nanoseconds; with bursts, in on periods.
    gap_ns: f64,
    /// Whole nanoseconds of the last arrival, and the fraction: a sum in floating point alone would
    /// lose the fraction.
    whole_ns: u64,
    part_ns: f64,
}

impl Arrivals {
    /// Arrivals at `requests_per_second`, which is above 0, from time 0 on.
    pub fn new(pattern: ArrivalPattern, requests_per_second: f64, rng: Rng) -> Arrivals {
        let share_on = match pattern {
            ArrivalPattern::Bursts { on_ns, off_ns } => {
                on_ns as f64 / (on_ns as f64 + off_ns as f64)
            }
            ArrivalPattern::Fixed | ArrivalPattern::Poisson => 1.0,
        };
        let gap_ns = 1e9 / requests_per_second * share_on;
        Arrivals { pattern, rng, gap_ns, whole_ns: 0, part_ns: 0.0 }
    }

    /// The time of the next arrival.
    #[inline]
    pub fn next_at(&mut self) -> Time {
        match self.pattern {
            ArrivalPattern::Fixed => self.advance(self.gap_ns),
            ArrivalPattern::Poisson => {
                let gap_ns = self.exponential_ns();
                self.advance(gap_ns)
            }
            ArrivalPattern::Bursts { on_ns, off_ns } => {
                let gap_ns = self.exponential_ns();
                // A Poisson process has no memory, so the on periods can be drawn as one and split
                // afterwards.
                let at_ns = self.advance(gap_ns).0;
                Time(at_ns.saturating_add((at_ns / on_ns).saturating_mul(off_ns)))
            }
        }
    }

    #[inline]
    fn exponential_ns(&mut self) -> f64 {
        // 1 - u is above 0, so its logarithm is finite.
        -(1.0 - self.rng.unit_f64()).ln() * self.gap_ns
    }

    #[inline]
    fn advance(&mut self, gap_ns: f64) -> Time {
        let part_ns = self.part_ns + gap_ns;
        let whole_ns = part_ns.floor();
        self.part_ns = part_ns - whole_ns;
        self.whole_ns = self.whole_ns.saturating_add(whole_ns as u64);
        Time(self.whole_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 20;

    fn times(pattern: ArrivalPattern, rate: f64, count: usize) -> Vec<u64> {
        let mut arrivals = Arrivals::new(pattern, rate, Rng::seeded(SEED));
        (0..count).map(|_| arrivals.next_at().0).collect()
    }

    /// Mean of the gaps and their coefficient of variation: 0 when even, 1 for Poisson, more in
    /// bursts.
    fn gaps(times: &[u64]) -> (f64, f64) {
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        (mean, variance.sqrt() / mean)
    }

    #[test]
    fn fixed_arrivals_keep_the_rate_to_the_nanosecond() {
        let times = times(ArrivalPattern::Fixed, 3.0, 3_000_000);
        assert_eq!(times[..3], [333_333_333, 666_666_666, 1_000_000_000 - 1]);
        // A million seconds later the drift is that of 53 bits, not a third of a nanosecond an
        // arrival.
        assert!(times[2_999_999].abs_diff(1_000_000_000_000_000) < 100, "{}", times[2_999_999]);
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_the_variation_of_poisson() {
        let times = times(ArrivalPattern::Poisson, 50_000.0, 400_000);
        let (mean_ns, variation) = gaps(&times);
        println!("seed {SEED}: mean {mean_ns}, variation {variation}");
        // Four standard deviations: the mean's is 1/sqrt(n) of it, as is that of the variation.
        assert!((mean_ns / 20_000.0 - 1.0).abs() < 4.0 / 632.0);
        assert!((variation - 1.0).abs() < 8.0 / 632.0);
        // A quarter of the gaps is longer than ln 4 means.
        let long = times.windows(2).filter(|pair| pair[1] - pair[0] > 27_726).count();
        assert!(long.abs_diff(100_000) < 1_100, "{long}");
    }

    #[test]
    fn bursts_keep_the_mean_and_are_off_when_off() {
        let (on_ns, off_ns) = (1_000_000, 9_000_000);
        let times = times(ArrivalPattern::Bursts { on_ns, off_ns }, 50_000.0, 400_000);
        let (mean_ns, variation) = gaps(&times);
        println!("seed {SEED}: mean {mean_ns}, variation {variation}");
        assert!((mean_ns / 20_000.0 - 1.0).abs() < 4.0 / 632.0);
        assert!(variation > 5.0);
        assert!(times.iter().all(|at_ns| at_ns % (on_ns + off_ns) < on_ns));
    }

    #[test]
    fn the_slowest_rate_and_the_end_of_time_do_no_harm() {
        let mut arrivals =
            Arrivals::new(ArrivalPattern::Fixed, f64::MIN_POSITIVE, Rng::seeded(SEED));
        assert_eq!(arrivals.next_at(), Time::MAX);
        assert_eq!(arrivals.next_at(), Time::MAX);
    }
}
