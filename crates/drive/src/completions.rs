//! Pending completions: the times at which requests complete for the host, after the link and the
//! host's software.

use softflash_base::AccessKind;

/// Pending completions. Those of reads are in time order, and so are those of all other requests.
#[derive(Debug)]
pub(crate) struct Completions {
    of_reads: Queue,
    of_others: Queue,
}

impl Completions {
    pub(crate) fn new() -> Completions {
        Completions { of_reads: Queue::new(), of_others: Queue::new() }
    }

    /// The time of the next completion; `u64::MAX` if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> u64 {
        self.of_reads.first_at.min(self.of_others.first_at)
    }

    /// Adds the completion of a request.
    #[inline]
    pub(crate) fn push(&mut self, kind: AccessKind, at: u64, request: u32) {
        let queue = if kind == AccessKind::Read { &mut self.of_reads } else { &mut self.of_others };
        queue.push(at, request);
    }

    /// Removes the next completion; there must be one. At equal times, reads complete first.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> (u64, u32) {
        let reads_first = self.of_reads.first_at <= self.of_others.first_at;
        let queue = if reads_first { &mut self.of_reads } else { &mut self.of_others };
        queue.pop()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let entries = self.of_reads.ring.len() + self.of_others.ring.len();
        (entries * size_of::<(u64, u32)>()) as u64
    }
}

/// A FIFO queue of completions. Whether it holds more than one is unpredictable, so no branch
/// depends on that.
#[derive(Debug)]
struct Queue {
    /// Times and requests; the length is a power of two.
    ring: Box<[(u64, u32)]>,
    /// Positions of the first completion and behind the last: counters that wrap.
    begin: u32,
    end: u32,
    /// The time of the first; `u64::MAX` if there is none.
    first_at: u64,
}

impl Queue {
    fn new() -> Queue {
        Queue { ring: vec![(0, 0); 16].into(), begin: 0, end: 0, first_at: u64::MAX }
    }

    #[inline]
    fn at(&mut self, place: u32) -> &mut (u64, u32) {
        let mask = self.ring.len() - 1;
        &mut self.ring[place as usize & mask]
    }

    #[inline]
    fn push(&mut self, at: u64, request: u32) {
        if self.end.wrapping_sub(self.begin) as usize == self.ring.len() {
            self.grow();
        }
        *self.at(self.end) = (at, request);
        self.end = self.end.wrapping_add(1);
        self.first_at = self.first_at.min(at);
    }

    #[inline(always)]
    fn pop(&mut self) -> (u64, u32) {
        assert_ne!(self.begin, self.end, "no completion is pending");
        let first = *self.at(self.begin);
        self.begin = self.begin.wrapping_add(1);
        let (next_at, _) = *self.at(self.begin);
        self.first_at = if self.begin == self.end { u64::MAX } else { next_at };
        first
    }

    #[cold]
    fn grow(&mut self) {
        let before = self.ring.len() as u32;
        let kept: Vec<(u64, u32)> =
            (0..before).map(|number| *self.at(self.begin.wrapping_add(number))).collect();
        self.ring = vec![(0, 0); 2 * kept.len()].into();
        self.ring[..kept.len()].copy_from_slice(&kept);
        (self.begin, self.end) = (0, before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_base::random::Rng;
    use std::collections::VecDeque;

    #[test]
    fn completions_come_in_order_of_time_and_those_of_reads_first() {
        for seed in 0..50 {
            let mut rng = Rng::seeded(seed).fork("ends");
            let mut completions = Completions::new();
            let mut model: [VecDeque<(u64, u32)>; 2] = Default::default();
            let mut last = [0; 2];
            for request in 0..2000 {
                let next = |model: &[VecDeque<(u64, u32)>; 2], way: usize| {
                    model[way].front().map_or(u64::MAX, |&(at, _)| at)
                };
                let next_at = next(&model, 0).min(next(&model, 1));
                assert_eq!(completions.next_at(), next_at, "seed {seed}");
                // Alternates between more pushes and more pops.
                let more = (request / 200) % 2 == 0;
                if next_at == u64::MAX || rng.chance(if more { 0.7 } else { 0.3 }) {
                    let way = rng.below(2) as usize;
                    last[way] += rng.below(3);
                    let kind = [AccessKind::Read, AccessKind::Write][way];
                    completions.push(kind, last[way], request);
                    model[way].push_back((last[way], request));
                } else {
                    let way = usize::from(next(&model, 0) > next_at);
                    assert_eq!(Some(completions.pop()), model[way].pop_front(), "seed {seed}");
                }
            }
        }
    }
}
