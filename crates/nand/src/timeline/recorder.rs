//! A record of the activities of dies and buses, for a Gantt chart.

use super::work::{Work, WorkKind};
use crate::activity::Activity;

/// One activity and its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The die.
    pub die: u32,
    /// The activity.
    pub activity: Activity,
    /// Its begin, in nanoseconds of the timeline.
    pub begin_ns: u64,
    /// Its end.
    pub end_ns: u64,
}

impl Interval {
    pub(super) fn of_array(die: u32, work: Work, moving: bool, from: u64, to: u64) -> Interval {
        let activity = match work.kind {
            _ if moving => Activity::Move,
            WorkKind::Read => Activity::Sense,
            WorkKind::Program => Activity::Program,
            WorkKind::Erase => Activity::Erase,
            WorkKind::Move | WorkKind::CopyBack | WorkKind::Pack => Activity::Move,
        };
        Interval { die, activity, begin_ns: from, end_ns: to }
    }

    pub(super) fn of_bus(die: u32, from: u64, to: u64) -> Interval {
        Interval { die, activity: Activity::Transfer, begin_ns: from, end_ns: to }
    }
}

/// Records intervals up to a limit.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    intervals: Vec<Interval>,
    most: usize,
}

impl Recorder {
    pub(super) fn of(most: usize) -> Recorder {
        Recorder { intervals: Vec::with_capacity(most), most }
    }

    #[inline]
    pub(super) fn note(&mut self, interval: impl FnOnce() -> Interval) {
        if self.intervals.len() < self.most {
            self.intervals.push(interval());
        }
    }

    /// Shortens the recorded interval that a die's cell array began at `begin_ns`, if it was
    /// recorded.
    pub(super) fn shorten(&mut self, die: u32, begin_ns: u64, end_ns: u64) {
        // Intervals are in the order of their begins, so this one is not recorded if the last one
        // began earlier.
        if self.intervals.last().is_none_or(|last| last.begin_ns < begin_ns) {
            return;
        }
        let cut = self.intervals.iter_mut().rev().find(|interval| {
            (interval.die, interval.begin_ns) == (die, begin_ns)
                && interval.activity != Activity::Transfer
        });
        if let Some(cut) = cut {
            cut.end_ns = end_ns;
        }
    }

    pub(super) fn intervals(&self) -> &[Interval] {
        &self.intervals
    }
}
