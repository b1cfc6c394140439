//! What was written and can still be taken along by a power cut in a later write.
//!
//! On flash with several bits in a cell a frame is out of reach only when the word lines that it lies in are full. Until
//! then it does not count as durable. Where there is no more to write, the writer fills the pages that are missing.

use std::collections::VecDeque;

/// The log up to some frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// The sequence of the frame behind it.
    pub next_frame: u64,
    /// The last sequence number in it.
    pub seq: u64,
    /// The expiry clock in its last frame.
    pub clock_ms: u64,
}

/// The end of the current segment.
#[derive(Debug, Default)]
pub(super) struct Exposed {
    /// What was written, and the page up to which the segment must be programmed until it is safe.
    marks: VecDeque<(u32, Reach)>,
    safe: Reach,
}

impl Exposed {
    /// Nothing is exposed where a recovery ended at `reach`.
    pub fn new(reach: Reach) -> Exposed {
        Exposed { marks: VecDeque::new(), safe: reach }
    }

    /// The log was written up to `reach`; it is safe when the segment is programmed up to page `end`.
    pub fn note(&mut self, reach: Reach, end: u32) {
        self.marks.push_back((end, reach));
    }

    /// The segment is programmed up to page `end`. Returns how far the log is safe.
    pub fn settle(&mut self, end: u32) -> Reach {
        while let Some(&(needed, reach)) = self.marks.front()
            && needed <= end
        {
            self.safe = reach;
            self.marks.pop_front();
        }
        self.safe
    }

    /// Nothing more is written to the segment, so nothing can be taken along any more.
    pub fn leave_segment(&mut self) {
        self.settle(u32::MAX);
    }

    /// The page up to which the segment must be programmed until everything is safe.
    pub fn end(&self) -> Option<u32> {
        self.marks.back().map(|(end, _)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_safe_when_its_word_lines_are_full() {
        let reach = |next_frame| Reach { next_frame, ..Reach::default() };
        let mut exposed = Exposed::new(reach(3));
        exposed.note(reach(4), 6);
        exposed.note(reach(5), 9);
        assert_eq!((exposed.settle(5), exposed.end()), (reach(3), Some(9)));
        assert_eq!(exposed.settle(8), reach(4));
        exposed.leave_segment();
        assert_eq!((exposed.settle(0), exposed.end()), (reach(5), None));
    }
}
