//! The drift of write amplification over the measured part of a run.

use super::meter::PageCounts;
use crate::outcome::Drift;
use std::ops::Range;

/// Requests between the first two counts.
const FIRST_EVERY: u64 = 64;

/// Counts that are kept; when there are as many, every second one is dropped.
const MOST: usize = 64;

/// Page counts at equal distances of requests. The distance doubles as the run goes on, so that a
/// run of unknown length needs little memory.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    every: u64,
    due: u64,
    counts: Vec<PageCounts>,
}

impl Marks {
    /// The marks of a run before its first request.
    pub(super) fn new() -> Marks {
        Marks { every: FIRST_EVERY, due: FIRST_EVERY, counts: Vec::with_capacity(MOST) }
    }

    /// The number of completed requests at which [`note`](Marks::note) is due.
    #[inline]
    pub(super) fn due(&self) -> u64 {
        self.due
    }

    /// Keeps the counts at [`due`](Marks::due).
    #[cold]
    pub(super) fn note(&mut self, counts: PageCounts) {
        self.counts.push(counts);
        if self.counts.len() == MOST {
            let mut number = 0;
            self.counts.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.every *= 2;
        }
        self.due = (self.counts.len() as u64 + 1) * self.every;
    }

    /// The relative change of write amplification from the first to the last quarter of the
    /// requests. `None` for a run too short to tell, or one that wrote nothing in a part of it.
    pub(super) fn drift(&self) -> Option<Drift> {
        let quarter = self.counts.len() / 4;
        if quarter < MOST / 8 {
            return None;
        }
        let first = Quarter::of(&self.counts, 0..quarter)?;
        let last = Quarter::of(&self.counts, self.counts.len() - quarter..self.counts.len())?;
        let noise = (first.variance + last.variance).sqrt() / first.mean;
        Some(Drift { change: last.mean / first.mean - 1.0, noise })
    }
}

/// The write amplification of a quarter, and the variance of this mean of its intervals.
struct Quarter {
    mean: f64,
    variance: f64,
}

impl Quarter {
    /// The quarter of these intervals; `None` if it programmed nothing for the host.
    fn of(counts: &[PageCounts], intervals: Range<usize>) -> Option<Quarter> {
        let at = |end: usize| end.checked_sub(1).and_then(|index| counts.get(index)).copied();
        let between = |from: usize, to: usize| {
            let (from, to) = (at(from).unwrap_or_default(), at(to)?);
            // Not the pages that the host wrote: those that wait would count before their programs.
            let for_host = (to.programmed_for_host - from.programmed_for_host) as f64;
            let programmed = (to.programmed - from.programmed) as f64;
            (for_host > 0.0).then_some(programmed / for_host)
        };
        let mean = between(intervals.start, intervals.end)?;
        let each: Vec<f64> =
            intervals.filter_map(|interval| between(interval, interval + 1)).collect();
        // From the differences of neighbours, in which a change over the quarter counts little.
        let pairs = each.iter().zip(each.iter().skip(1));
        let squares: f64 = pairs.map(|(one, next)| (next - one).powi(2)).sum();
        let count = each.len() as f64;
        Some(Quarter { mean, variance: squares / (2.0 * (count - 1.0).max(1.0)) / count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run whose requests write a page each, with this amplification at each request.
    fn marks(requests: u64, amplification: impl Fn(u64) -> u64) -> Marks {
        let (mut marks, mut counts) = (Marks::new(), PageCounts::default());
        for request in 1..=requests {
            counts.programmed_for_host += 1;
            counts.programmed += amplification(request);
            if request == marks.due() {
                marks.note(counts);
            }
        }
        marks
    }

    #[test]
    fn a_level_run_does_not_drift_whatever_its_length() {
        for requests in [2048, 2049, 5000, 4096, 100_000, 999_999] {
            let drift = marks(requests, |_| 3).drift().unwrap();
            assert_eq!((drift.change, drift.is_significant()), (0.0, false), "{requests}");
        }
    }

    #[test]
    fn a_run_that_changes_drifts_by_its_change() {
        let rising = marks(1 << 16, |request| 4 + u64::from(request > 1 << 15)).drift().unwrap();
        assert!((rising.change - 0.25).abs() < 1e-12 && rising.is_significant(), "{rising:?}");
        let falling = marks(1 << 16, |request| 5 - u64::from(request > 1 << 15)).drift().unwrap();
        assert!((falling.change + 0.2).abs() < 1e-12 && falling.is_significant(), "{falling:?}");
        let steep = marks(1 << 13, |request| 1 + request / 1024).drift().unwrap();
        assert!(steep.change > 1.0 && steep.is_significant(), "{steep:?}");
    }

    #[test]
    fn short_runs_and_runs_without_writes_say_nothing() {
        assert_eq!(marks(2047, |_| 3).drift(), None);
        let mut reads = Marks::new();
        (0..40).for_each(|_| reads.note(PageCounts::default()));
        assert_eq!(reads.drift(), None);
    }

    #[test]
    fn a_change_within_the_noise_is_not_significant() {
        // Lumps of collection that differ from one interval to the next by as much as the change.
        let lumpy = marks(1 << 12, |request| 10 + 9 * u64::from(request * request % 1013 < 200));
        let drift = lumpy.drift().unwrap();
        assert!(drift.noise > drift.change.abs() / 2.0, "{drift:?}");
        assert!(!drift.is_significant(), "{drift:?}");
    }
}
