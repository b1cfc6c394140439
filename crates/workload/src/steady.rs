//! Detection of the steady state as defined in SNIA's Solid State Storage Performance Test
//! Specification (SSS PTS).
//!
//! By its definition a device is in the steady state with respect to a figure (IOPS, throughput,
//! latency, WAF) when over a measurement window of five rounds
//! - the largest and the smallest figure are no more than 20 % of the window's mean apart, and
//! - the largest and the smallest value on the line of best fit (least squares) through them are no
//!   more than 10 % of the mean apart.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The criterion of a steady state. The default is that of the SNIA SSS PTS.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SteadyCriterion {
    /// Rounds in the window; fewer than 2 count as 2.
    pub rounds: u32,
    /// Largest minus smallest figure, as a share of the mean: at most this.
    pub range: f64,
    /// The most that the line of best fit rises or falls over the window, as a share of the mean.
    pub slope: f64,
}

impl Default for SteadyCriterion {
    fn default() -> SteadyCriterion {
        SteadyCriterion { rounds: 5, range: 0.20, slope: 0.10 }
    }
}

/// Detects the steady state of a figure with one value per round.
#[derive(Debug, Clone)]
pub struct SteadyState {
    criterion: SteadyCriterion,
    figures: VecDeque<f64>,
    seen: u64,
}

/// The window of the last rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The mean of its figures.
    pub mean: f64,
    /// Largest minus smallest, as a share of the mean.
    pub range: f64,
    /// Rise (above 0) or fall of the line of best fit from the first to the last round, as a share
    /// of the mean.
    pub slope: f64,
    /// Whether it meets the criterion.
    pub is_steady: bool,
}

impl SteadyState {
    /// A detector without values.
    pub fn new(criterion: SteadyCriterion) -> SteadyState {
        SteadyState { criterion, figures: VecDeque::new(), seen: 0 }
    }

    /// Adds the figure of a round; returns whether the window that ends with it is steady.
    pub fn add(&mut self, figure: f64) -> bool {
        if self.figures.len() == self.rounds() {
            self.figures.pop_front();
        }
        self.figures.push_back(figure);
        self.seen += 1;
        self.is_steady()
    }

    /// Whether the last rounds are a window that meets the criterion.
    pub fn is_steady(&self) -> bool {
        self.window().is_some_and(|window| window.is_steady)
    }

    /// The number of rounds added.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The window of the last rounds; none before there are enough of them.
    pub fn window(&self) -> Option<Window> {
        let rounds = self.rounds();
        if self.figures.len() < rounds {
            return None;
        }
        let mean = self.figures.iter().sum::<f64>() / rounds as f64;
        let (low, high) = self
            .figures
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &y| (low.min(y), high.max(y)));
        let of_mean =
            |difference: f64| if difference == 0.0 { 0.0 } else { difference / mean.abs() };
        let (range, slope) = (of_mean(high - low), of_mean(self.rise(mean)));
        // With a figure of NaN both comparisons are false.
        let is_steady = range <= self.criterion.range && slope.abs() <= self.criterion.slope;
        Some(Window { mean, range, slope, is_steady })
    }

    fn rounds(&self) -> usize {
        self.criterion.rounds.max(2) as usize
    }

    /// The rise of the line of best fit from the first to the last round of the window.
    fn rise(&self, mean: f64) -> f64 {
        let rounds = self.figures.len() as f64;
        let middle = (rounds - 1.0) / 2.0;
        let along = |(index, figure): (usize, &f64)| (index as f64 - middle) * (figure - mean);
        let covariance: f64 = self.figures.iter().enumerate().map(along).sum();
        let spread = rounds * (rounds * rounds - 1.0) / 12.0;
        covariance / spread * (rounds - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The round (from 1) that ends the first steady window.
    fn steady_after(series: impl IntoIterator<Item = f64>) -> Option<usize> {
        let mut detector = SteadyState::new(SteadyCriterion::default());
        series.into_iter().position(|figure| detector.add(figure)).map(|index| index + 1)
    }

    #[test]
    fn a_constant_is_steady_after_one_window() {
        assert_eq!(steady_after([7.0; 10]), Some(5));
        assert_eq!(steady_after([0.0; 10]), Some(5));
    }

    #[test]
    fn the_limits_are_those_of_the_standard() {
        // Range: 2.0 of a mean of 10 is 20 %, and the line of best fit is level.
        assert_eq!(steady_after([9.0, 11.0, 10.0, 11.0, 9.0]), Some(5));
        assert_eq!(steady_after([8.99, 11.0, 10.02, 11.0, 8.99]), None);
        // Slope: a straight line that rises by 10 % of its mean over the window, and one that rises
        // by a little more.
        let line = |rise: f64| (0..5).map(move |x| 100.0 + rise * (f64::from(x) / 4.0 - 0.5));
        assert_eq!(steady_after(line(9.999)), Some(5));
        assert_eq!(steady_after(line(10.001)), None);
        assert_eq!(steady_after(line(-9.999)), Some(5));
        assert_eq!(steady_after(line(-10.001)), None);
    }

    #[test]
    fn a_decay_is_steady_when_its_tail_is_flat() {
        // Like the throughput of a drive that was fresh: from 400 down to 100, by a tenth of the
        // rest a round.
        let series = |round: i32| 100.0 + 300.0 * 0.9_f64.powi(round);
        let found = steady_after((0..200).map(series)).unwrap();
        let rise = |end: i32| {
            // Straight from the definition, with the normal equations written out.
            let y: Vec<f64> = (end - 4..=end).map(series).collect();
            let mean = y.iter().sum::<f64>() / 5.0;
            let slope = (-2.0 * y[0] - y[1] + y[3] + 2.0 * y[4]) / 10.0;
            (slope * 4.0 / mean).abs().max((y[0] - y[4]) / mean / 2.0)
        };
        assert!(rise(found as i32 - 1) <= 0.10 && rise(found as i32 - 2) > 0.10, "{found}");
        assert!(found > 10);
    }

    #[test]
    fn what_never_settles_is_never_steady() {
        assert_eq!(steady_after((0..1000).map(|x| if x % 2 == 0 { 1.0 } else { 2.0 })), None);
        assert_eq!(steady_after((0..100).map(|x| 1.5_f64.powi(x))), None);
        assert_eq!(steady_after([f64::NAN; 20]), None);
        assert_eq!(steady_after([f64::INFINITY; 20]), None);
    }

    #[test]
    fn the_criterion_can_be_set() {
        let mut strict = SteadyState::new(SteadyCriterion { rounds: 3, range: 0.0, slope: 0.0 });
        let steady: Vec<bool> = [1.0, 2.0, 2.0, 2.0].map(|figure| strict.add(figure)).into();
        assert_eq!((steady, strict.seen()), (vec![false, false, false, true], 4));
        let window = strict.window().unwrap();
        assert_eq!((window.mean, window.range, window.slope), (2.0, 0.0, 0.0));
    }
}
