//! Ends of requests that are known but that the host has not heard of yet: pages still cross the link, and the
//! host's software takes its time.

use crate::pages::{Line, Pages};
use crate::request::AccessKind;

/// Ends to come. Those of reads are in order of time, and so are those of all others.
#[derive(Debug)]
pub(crate) struct Ends {
    of_reads: InOrder,
    of_others: InOrder,
}

/// Requests in order of the times of their ends.
#[derive(Debug)]
struct InOrder {
    line: Line,
    /// When the first ends; the end of time if there is none.
    first_at: u64,
}

impl Ends {
    pub(crate) fn new() -> Ends {
        let none = || InOrder { line: Line::EMPTY, first_at: u64::MAX };
        Ends { of_reads: none(), of_others: none() }
    }

    /// When the next end is; the end of time if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> u64 {
        self.of_reads.first_at.min(self.of_others.first_at)
    }

    /// A request will end.
    #[inline]
    pub(crate) fn push(&mut self, pages: &mut Pages, kind: AccessKind, at: u64, request: u32) {
        let ends = if kind == AccessKind::Read { &mut self.of_reads } else { &mut self.of_others };
        if ends.line.is_empty() {
            ends.first_at = at;
        }
        pages.get_mut(request).ends_at = at;
        ends.line.push(pages, request);
    }

    /// Takes the next end, a read's before others at the same time.
    #[inline(always)]
    pub(crate) fn pop(&mut self, pages: &Pages) -> Option<(u64, u32)> {
        let reads_first = self.of_reads.first_at <= self.of_others.first_at;
        let ends = if reads_first { &mut self.of_reads } else { &mut self.of_others };
        let request = ends.line.pop(pages)?;
        let at = ends.first_at;
        ends.first_at = match ends.line.first() {
            crate::map::NONE => u64::MAX,
            next => pages.get(next).ends_at,
        };
        Some((at, request))
    }
}
