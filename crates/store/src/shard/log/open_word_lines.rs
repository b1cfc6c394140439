//! Open word lines: they hold written frames that a power cut during a later program can destroy.
//!
//! On flash with several bits per cell a frame is safe only when its word lines are completely
//! programmed. Until then the frame is not durable. Where no more events follow, the writer pads
//! the word lines.

use std::collections::VecDeque;

/// A prefix of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// The sequence of the next frame.
    pub next_frame: u64,
    /// The last sequence number in it.
    pub seq: u64,
    /// The expiry clock in its last frame.
    pub clock_ms: u64,
}

/// The open word lines at the end of the current segment.
#[derive(Debug, Default)]
pub(super) struct OpenWordLines {
    /// Prefixes that were written, and the page up to which the segment must be programmed to make
    /// each of them safe.
    marks: VecDeque<(u32, Reach)>,
    safe: Reach,
}

impl OpenWordLines {
    /// No open word lines: recovery ended at `reach`.
    pub fn new(reach: Reach) -> OpenWordLines {
        OpenWordLines { marks: VecDeque::new(), safe: reach }
    }

    /// The log was written up to `reach`; it is safe when the segment is programmed up to page
    /// `end`.
    pub fn note(&mut self, reach: Reach, end: u32) {
        self.marks.push_back((end, reach));
    }

    /// The segment is programmed up to page `end`. Returns the safe prefix of the log.
    pub fn settle(&mut self, end: u32) -> Reach {
        while let Some(&(needed, reach)) = self.marks.front()
            && needed <= end
        {
            self.safe = reach;
            self.marks.pop_front();
        }
        self.safe
    }

    /// The segment takes no more writes, so its frames are safe.
    pub fn leave_segment(&mut self) {
        self.settle(u32::MAX);
    }

    /// The page up to which the segment must be programmed to make all frames safe.
    pub fn end(&self) -> Option<u32> {
        self.marks.back().map(|(end, _)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_safe_when_their_word_lines_are_programmed() {
        let reach = |next_frame| Reach { next_frame, ..Reach::default() };
        let mut open = OpenWordLines::new(reach(3));
        open.note(reach(4), 6);
        open.note(reach(5), 9);
        assert_eq!((open.settle(5), open.end()), (reach(3), Some(9)));
        assert_eq!(open.settle(8), reach(4));
        open.leave_segment();
        assert_eq!((open.settle(0), open.end()), (reach(5), None));
    }
}
