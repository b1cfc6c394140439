//! Ends of requests that are known but that the host has not heard of yet: pages still cross the link, and the
//! host's software takes its time.

use crate::request::AccessKind;
use std::collections::VecDeque;

/// Ends to come. Those of reads are in order of time, and so are those of all others.
#[derive(Debug)]
pub(crate) struct Ends {
    of_reads: Queue,
    of_others: Queue,
}

/// Ends in order of time.
#[derive(Debug)]
struct Queue {
    ends: VecDeque<(u64, u32)>,
    /// When the first is; the end of time if there is none.
    first_at: u64,
}

impl Ends {
    pub(crate) fn new() -> Ends {
        let queue = || Queue { ends: VecDeque::new(), first_at: u64::MAX };
        Ends { of_reads: queue(), of_others: queue() }
    }

    /// When the next end is; the end of time if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> u64 {
        self.of_reads.first_at.min(self.of_others.first_at)
    }

    /// A request will end.
    #[inline]
    pub(crate) fn push(&mut self, kind: AccessKind, at: u64, request: u32) {
        let queue = if kind == AccessKind::Read { &mut self.of_reads } else { &mut self.of_others };
        if queue.ends.is_empty() {
            queue.first_at = at;
        }
        queue.ends.push_back((at, request));
    }

    /// Takes the next end, a read's before others at the same time.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<(u64, u32)> {
        let reads_first = self.of_reads.first_at <= self.of_others.first_at;
        let queue = if reads_first { &mut self.of_reads } else { &mut self.of_others };
        let end = queue.ends.pop_front();
        queue.first_at = queue.ends.front().map_or(u64::MAX, |end| end.0);
        end
    }
}
