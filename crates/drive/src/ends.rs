//! Ends of requests that are known but that the host has not heard of yet: pages still cross the link, and the
//! host's software takes its time.

use crate::request::AccessKind;
use std::collections::VecDeque;

/// Ends to come. Those of reads are in order of time, and so are those of all others.
#[derive(Debug)]
pub(crate) struct Ends {
    of_reads: VecDeque<(u64, u32)>,
    of_others: VecDeque<(u64, u32)>,
    /// When the first is.
    next_at: u64,
}

impl Ends {
    pub(crate) fn new() -> Ends {
        Ends { of_reads: VecDeque::new(), of_others: VecDeque::new(), next_at: u64::MAX }
    }

    /// When the next end is; the end of time if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> u64 {
        self.next_at
    }

    /// A request will end.
    #[inline]
    pub(crate) fn push(&mut self, kind: AccessKind, at: u64, request: u32) {
        let queue = if kind == AccessKind::Read { &mut self.of_reads } else { &mut self.of_others };
        queue.push_back((at, request));
        self.next_at = self.next_at.min(at);
    }

    /// Takes the next end, a read's before others at the same time.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, u32)> {
        let at = self.next_at;
        let first = |queue: &VecDeque<(u64, u32)>| queue.front().map_or(u64::MAX, |end| end.0);
        let queue =
            if first(&self.of_reads) == at { &mut self.of_reads } else { &mut self.of_others };
        let end = queue.pop_front();
        self.next_at = first(&self.of_reads).min(first(&self.of_others));
        end
    }
}
