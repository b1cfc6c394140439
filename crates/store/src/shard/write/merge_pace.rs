//! The pace of writers while a merge runs. A merge of level 0 frees space at its end only, so the
//! free space has to last until then: writers get it at an even rate.

use softflash_base::Time;
use std::cell::Cell;
use std::time::Duration;

/// The assumed rate of merges before the first measurement, in records per second.
const FIRST_RATE: f64 = 50_000.0;
/// Records after which the rate is measured again.
const MEASURED_RECORDS: u64 = 2048;
/// The longest sleep of a writer. Hard limits stop writers by themselves.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);
/// The share of the last measurement in the rate.
const WEIGHT: f64 = 0.2;

/// The progress of the running merge.
pub struct MergePace {
    /// Input records that the running merge has not read; 0 while none runs.
    remaining: Cell<u64>,
    /// Blocks that the running merge will take before it frees any.
    blocks_to_take: Cell<usize>,
    /// Input records per second.
    rate: Cell<f64>,
    /// The time of the last measurement, and the records merged since.
    measured: Cell<(Time, u64)>,
    /// The time at which all admitted writes would have arrived at their rate.
    paid_until: Cell<Time>,
}

impl Default for MergePace {
    fn default() -> MergePace {
        MergePace {
            remaining: Cell::default(),
            blocks_to_take: Cell::default(),
            rate: Cell::new(FIRST_RATE),
            measured: Cell::default(),
            paid_until: Cell::default(),
        }
    }
}

/// The merge runs until this is dropped.
pub struct RunningMerge<'a> {
    pace: &'a MergePace,
    /// The most blocks that it holds more than before it began.
    most_held: usize,
}

impl MergePace {
    /// A merge of `records` begins, which will hold up to `most_held` blocks.
    pub fn begin(&self, now: Time, records: u64, most_held: usize) -> RunningMerge<'_> {
        self.blocks_to_take.set(most_held);
        self.remaining.set(records);
        self.measured.set((now, 0));
        RunningMerge { pace: self, most_held }
    }

    /// The time at which `bytes` may be written, where `room_bytes` have to last until the end of
    /// the running merge; at most [`LONGEST_SLEEP`] from now.
    pub fn admits_at(&self, now: Time, bytes: usize, room_bytes: u64) -> Time {
        let remaining_ns = self.remaining.get() as f64 * 1e9 / self.rate.get();
        let cost_ns = bytes as f64 * remaining_ns / (room_bytes as f64).max(1.0);
        let at = (self.paid_until.get().max(now) + cost_ns as u64).min(now + LONGEST_SLEEP);
        self.paid_until.set(at);
        at
    }

    /// Blocks that the running merge will take before it frees any.
    pub fn blocks_to_take(&self) -> usize {
        self.blocks_to_take.get()
    }

    /// Whether a merge runs.
    pub fn is_running(&self) -> bool {
        self.remaining.get() > 0
    }
}

impl RunningMerge<'_> {
    /// The merge holds this many blocks more than before it began.
    pub fn hold(&self, blocks: usize) {
        self.pace.blocks_to_take.set(self.most_held.saturating_sub(blocks));
    }

    /// The merge has read one more record.
    pub fn advance(&self, now: impl FnOnce() -> Time) {
        let MergePace { remaining, rate, measured, .. } = self.pace;
        // Patches that could not be read have no count: a merge that runs has work to do.
        remaining.set(remaining.get().saturating_sub(1).max(1));
        let (since, merged) = measured.get();
        if merged + 1 < MEASURED_RECORDS {
            return measured.set((since, merged + 1));
        }
        let now = now();
        let last = (merged + 1) as f64 * 1e9 / now.since_ns(since).max(1) as f64;
        rate.set(rate.get() * (1.0 - WEIGHT) + last * WEIGHT);
        measured.set((now, 0));
    }
}

impl Drop for RunningMerge<'_> {
    fn drop(&mut self) {
        self.pace.remaining.set(0);
        self.pace.blocks_to_take.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_lasts_until_the_end_of_the_merge() {
        let pace = MergePace::default();
        assert!(!pace.is_running());
        let records = FIRST_RATE as u64;
        let running = pace.begin(Time(0), records, 0);
        // One second of work is left, and room for 1000 writes of 1 KiB.
        let room_bytes = 1000 << 10;
        assert_eq!(pace.admits_at(Time(0), 1 << 10, room_bytes), Time(1_000_000));
        assert_eq!(pace.admits_at(Time(0), 1 << 10, room_bytes), Time(2_000_000));
        let later = Time(1_000_000_000);
        assert_eq!(pace.admits_at(later, 1 << 10, room_bytes), later + Duration::from_millis(1));
        drop(running);
        assert!(!pace.is_running());
    }

    #[test]
    fn a_writer_without_room_sleeps_shortly_and_delays_no_later_one() {
        let pace = MergePace::default();
        let running = pace.begin(Time(0), 1 << 20, 5);
        assert_eq!(pace.admits_at(Time(0), 1 << 20, 0), Time(0) + LONGEST_SLEEP);
        running.hold(3);
        assert_eq!(pace.blocks_to_take(), 2);
        drop(running);
        assert_eq!(pace.blocks_to_take(), 0);
        let later = Time(0) + LONGEST_SLEEP;
        assert_eq!(pace.admits_at(later, 1, 1), later);
    }

    #[test]
    fn the_rate_follows_the_merge() {
        let pace = MergePace::default();
        let running = pace.begin(Time(0), 1 << 20, 5);
        let mut now = Time(0);
        // A thousand records a second.
        for _ in 0..60 * MEASURED_RECORDS {
            now = now + Duration::from_millis(1);
            running.advance(|| now);
        }
        assert!((999.0..1001.0).contains(&pace.rate.get()), "{}", pace.rate.get());
    }
}
