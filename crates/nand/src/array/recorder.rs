//! A record of the activities of dies and buses in a window of time, for charts.

use super::{Array, Core};
use crate::activity::Activity;
use crate::address::DieIndex;
use softflash_base::Time;

/// One activity of a die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// The die.
    pub die: DieIndex,
    /// The activity.
    pub activity: Activity,
    /// When it began.
    pub begin: Time,
    /// When it ended, or would have ended without a suspension.
    pub end: Time,
}

/// Records the activities that begin in its window.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    from: u64,
    until: u64,
    most: usize,
    recorded: Vec<Recorded>,
}

impl Array {
    /// Records the first `most` activities that begin from `from` on and before `until`; discards
    /// earlier records.
    pub fn record(&mut self, from: Time, until: Time, most: usize) {
        let recorder = Recorder { from: from.0, until: until.0, most, recorded: Vec::new() };
        self.core.recorder = Some(Box::new(recorder));
    }

    /// The recorded activities, in the order of their begins.
    pub fn recorded(&self) -> &[Recorded] {
        self.core.recorder.as_ref().map_or(&[], |recorder| &recorder.recorded)
    }
}

impl Core {
    /// Records an activity that begins now.
    #[inline]
    pub(super) fn note(&mut self, die: DieIndex, activity: Activity, takes_ns: u64) {
        if self.recorder.is_some() {
            self.take_down(die, activity, takes_ns);
        }
    }

    #[cold]
    fn take_down(&mut self, die: DieIndex, activity: Activity, takes_ns: u64) {
        let (begin, end) = (Time(self.now), Time(self.now + takes_ns));
        if let Some(recorder) = &mut self.recorder
            && (recorder.from..recorder.until).contains(&begin.0)
            && recorder.recorded.len() < recorder.most
        {
            recorder.recorded.push(Recorded { die, activity, begin, end });
        }
    }
}
