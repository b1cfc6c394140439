//! What happened in each second of a measurement.

use serde::{Deserialize, Serialize};
use softflash_store::stats::Stalls;

const SECOND_NS: u64 = 1_000_000_000;

/// Operations by the second in which they ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    seconds: Vec<Second>,
    /// The time until which every thread had work; none before the first one ended.
    busy_ns: Option<u64>,
}

/// One second of a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Second {
    /// Operations that ended in it.
    pub operations: u64,
    /// The longest latency of these.
    pub longest_us: f64,
    /// The time for which the store delayed writes, by cause.
    #[serde(skip)]
    pub stalls: Stalls,
}

/// One second of the time line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SecondOfLine {
    /// Operations that ended in it.
    pub operations: u64,
    /// The time for which the store delayed writes, by cause, in microseconds.
    pub stall_us: Stalls,
}

impl Series {
    /// An operation of `latency_ns` ended `at_ns` after the start.
    pub fn record(&mut self, at_ns: u64, latency_ns: u64) {
        if let Some(second) = self.second(at_ns) {
            second.operations += 1;
            second.longest_us = second.longest_us.max(latency_ns as f64 / 1000.0);
        }
    }

    /// Writes were delayed for so long up to `at_ns` after the start, since the last call.
    pub fn record_stalls(&mut self, at_ns: u64, stalls: Stalls) {
        if stalls != Stalls::default()
            && let Some(second) = self.second(at_ns)
        {
            second.stalls = second.stalls.plus(stalls);
        }
    }

    fn second(&mut self, at_ns: u64) -> Option<&mut Second> {
        let index = (at_ns / SECOND_NS) as usize;
        if index >= self.seconds.len() {
            self.seconds.resize(index + 1, Second::default());
        }
        self.seconds.get_mut(index)
    }

    /// The thread ran out of work `at_ns` after the start.
    pub fn end(&mut self, at_ns: u64) {
        self.busy_ns = Some(at_ns);
    }

    /// Adds the series of another thread.
    pub fn merge(&mut self, other: &Series) {
        let seconds = self.seconds.len().max(other.seconds.len());
        self.seconds.resize(seconds, Second::default());
        for (all, part) in self.seconds.iter_mut().zip(&other.seconds) {
            all.operations += part.operations;
            all.longest_us = all.longest_us.max(part.longest_us);
            all.stalls = all.stalls.plus(part.stalls);
        }
        self.busy_ns = match (self.busy_ns, other.busy_ns) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }

    /// All seconds, the last one usually not whole.
    pub fn seconds(&self) -> &[Second] {
        &self.seconds
    }

    /// The rate and the delays of all seconds.
    pub fn line(&self) -> Vec<SecondOfLine> {
        let line = |second: &Second| SecondOfLine {
            operations: second.operations,
            stall_us: second.stalls,
        };
        self.seconds.iter().map(line).collect()
    }

    /// Operations in the slowest whole second, divided by the mean per second of the measurement.
    /// Seconds in which a thread had no work left do not count: they are slow for lack of requests.
    /// None if the measurement is shorter than two seconds.
    pub fn slowest_second_ratio(&self, mean_per_second: f64) -> Option<f64> {
        let whole = (self.busy_ns? / SECOND_NS) as usize;
        if whole < 2 || mean_per_second <= 0.0 {
            return None;
        }
        // Seconds at the end in which nothing ended are not in the list.
        let count = |index: usize| self.seconds.get(index).map_or(0, |second| second.operations);
        let slowest = (0..whole).map(count).min()?;
        Some(slowest as f64 / mean_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `operations[i]` operations of `i + 1` ms in second i, and an end.
    fn series(operations: &[u64], end_ms: u64) -> Series {
        let mut series = Series::default();
        for (second, count) in operations.iter().enumerate() {
            let at = second as u64 * SECOND_NS + 5;
            (0..*count).for_each(|_| series.record(at, (second as u64 + 1) * 1_000_000));
        }
        series.end(end_ms * 1_000_000);
        series
    }

    #[test]
    fn the_slowest_whole_second_counts_and_a_begun_one_does_not() {
        let series = series(&[100, 40, 100, 3], 3_100);
        assert_eq!(series.slowest_second_ratio(80.0), Some(0.5));
        assert_eq!(series.seconds().len(), 4);
        let second = Second { operations: 40, longest_us: 2_000.0, ..Second::default() };
        assert_eq!(series.seconds()[1], second);
    }

    #[test]
    fn the_time_line_has_the_delays_of_all_threads_by_cause() {
        let stalls = |space, cleaning| Stalls { space, cleaning, ..Stalls::default() };
        let (mut one, mut other) = (series(&[10, 20], 2_000), series(&[1], 1_000));
        one.record_stalls(SECOND_NS + 1, stalls(0, 7));
        one.record_stalls(SECOND_NS + 9, stalls(2, 5));
        other.record_stalls(SECOND_NS - 1, stalls(4, 0));
        one.merge(&other);
        let line: Vec<_> =
            one.line().iter().map(|second| (second.operations, second.stall_us)).collect();
        assert_eq!(line, [(11, stalls(4, 0)), (20, stalls(2, 12))]);
    }

    #[test]
    fn a_second_without_any_operation_is_the_slowest() {
        assert_eq!(series(&[100, 0, 100], 3_000).slowest_second_ratio(66.0), Some(0.0));
        // Also where it is the last.
        assert_eq!(series(&[100, 100], 3_500).slowest_second_ratio(66.0), Some(0.0));
    }

    #[test]
    fn less_than_two_seconds_have_no_ratio() {
        assert_eq!(series(&[100, 100], 1_999).slowest_second_ratio(100.0), None);
        assert_eq!(series(&[100, 100], 2_000).slowest_second_ratio(100.0), Some(1.0));
        assert_eq!(Series::default().slowest_second_ratio(1.0), None);
    }

    #[test]
    fn threads_are_added_and_the_first_one_without_work_ends_the_whole_seconds() {
        let mut all = series(&[10, 20, 30], 3_000);
        all.merge(&series(&[10, 20, 30, 5, 5], 5_000));
        assert_eq!(all.slowest_second_ratio(40.0), Some(0.5));
        let operations: Vec<u64> = all.seconds().iter().map(|second| second.operations).collect();
        assert_eq!(operations, [20, 40, 60, 5, 5]);
        assert_eq!(all.seconds()[4].longest_us, 5_000.0);
    }
}
