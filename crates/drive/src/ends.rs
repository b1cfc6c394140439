//! Ends of requests that are known but that the host has not heard of yet: pages still cross the link, and the
//! host's software takes its time.

use softflash_base::AccessKind;

/// Ends to come. Those of reads are in order of time, and so are those of all others.
#[derive(Debug)]
pub(crate) struct Ends {
    of_reads: InOrder,
    of_others: InOrder,
}

impl Ends {
    pub(crate) fn new() -> Ends {
        Ends { of_reads: InOrder::new(), of_others: InOrder::new() }
    }

    /// When the next end is; the end of time if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> u64 {
        self.of_reads.first_at.min(self.of_others.first_at)
    }

    /// A request will end.
    #[inline]
    pub(crate) fn push(&mut self, kind: AccessKind, at: u64, request: u32) {
        let ends = if kind == AccessKind::Read { &mut self.of_reads } else { &mut self.of_others };
        ends.push(at, request);
    }

    /// Takes the next end, of which there must be one: a read's before others at the same time.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> (u64, u32) {
        let reads_first = self.of_reads.first_at <= self.of_others.first_at;
        let ends = if reads_first { &mut self.of_reads } else { &mut self.of_others };
        ends.pop()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let ends = self.of_reads.ends.len() + self.of_others.ends.len();
        (ends * size_of::<(u64, u32)>()) as u64
    }
}

/// Requests in order of the times of their ends. Whether one stands behind another is as good as random, so nothing is
/// decided by it.
#[derive(Debug)]
struct InOrder {
    /// When which request ends; a power of two.
    ends: Box<[(u64, u32)]>,
    /// Where they begin and end: numbers that only rise, and wrap.
    begin: u32,
    end: u32,
    /// When the first ends; the end of time if there is none.
    first_at: u64,
}

impl InOrder {
    fn new() -> InOrder {
        InOrder { ends: vec![(0, 0); 16].into(), begin: 0, end: 0, first_at: u64::MAX }
    }

    #[inline]
    fn at(&mut self, place: u32) -> &mut (u64, u32) {
        let mask = self.ends.len() - 1;
        &mut self.ends[place as usize & mask]
    }

    #[inline]
    fn push(&mut self, at: u64, request: u32) {
        if self.end.wrapping_sub(self.begin) as usize == self.ends.len() {
            self.grow();
        }
        *self.at(self.end) = (at, request);
        self.end = self.end.wrapping_add(1);
        self.first_at = self.first_at.min(at);
    }

    #[inline(always)]
    fn pop(&mut self) -> (u64, u32) {
        let first = *self.at(self.begin);
        self.begin = self.begin.wrapping_add(1);
        let (next_at, _) = *self.at(self.begin);
        self.first_at = if self.begin == self.end { u64::MAX } else { next_at };
        first
    }

    #[cold]
    fn grow(&mut self) {
        let before = self.ends.len() as u32;
        let kept: Vec<(u64, u32)> =
            (0..before).map(|number| *self.at(self.begin.wrapping_add(number))).collect();
        self.ends = vec![(0, 0); 2 * kept.len()].into();
        self.ends[..kept.len()].copy_from_slice(&kept);
        (self.begin, self.end) = (0, before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_base::random::Rng;
    use std::collections::VecDeque;

    #[test]
    fn ends_come_in_order_of_time_and_those_of_reads_first() {
        for seed in 0..50 {
            let mut rng = Rng::seeded(seed).fork("ends");
            let mut ends = Ends::new();
            let mut model: [VecDeque<(u64, u32)>; 2] = Default::default();
            let mut last = [0; 2];
            for request in 0..2000 {
                let next = |model: &[VecDeque<(u64, u32)>; 2], way: usize| {
                    model[way].front().map_or(u64::MAX, |&(at, _)| at)
                };
                let next_at = next(&model, 0).min(next(&model, 1));
                assert_eq!(ends.next_at(), next_at, "seed {seed}");
                // Now more come, now fewer.
                let more = (request / 200) % 2 == 0;
                if next_at == u64::MAX || rng.chance(if more { 0.7 } else { 0.3 }) {
                    let way = rng.below(2) as usize;
                    last[way] += rng.below(3);
                    let kind = [AccessKind::Read, AccessKind::Write][way];
                    ends.push(kind, last[way], request);
                    model[way].push_back((last[way], request));
                } else {
                    let way = usize::from(next(&model, 0) > next_at);
                    assert_eq!(Some(ends.pop()), model[way].pop_front(), "seed {seed}");
                }
            }
        }
    }
}
