//! Senses that end while a bus is busy.

use crate::geometry::MAX_DIES_PER_CHANNEL;

const MOST: usize = MAX_DIES_PER_CHANNEL as usize;

/// Senses in the order of their ends, at most one per die. Their ends are not events: the end of a
/// transfer collects the senses that are due.
#[derive(Debug)]
pub(super) struct Senses {
    /// By the place of the die in its channel.
    of_dies: [Sense; MOST],
    /// Places of dies, in the order of the ends of their senses.
    order: [u8; MOST],
    /// The begin and end of the queue in `order`, as wrapping counters.
    begin: u8,
    end: u8,
    /// When the first of them ends; `u64::MAX` if there is none.
    first_at: u64,
    /// When the last of them ends, or a past time.
    last_at: u64,
}

/// A sense.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sense {
    pub(super) ends_at: u64,
    /// The die's number in the channel.
    pub(super) place: u8,
    /// Pages that are sensed.
    pub(super) pages: u8,
}

impl Senses {
    pub(super) fn new() -> Senses {
        Senses {
            of_dies: [Sense { ends_at: 0, place: 0, pages: 0 }; MOST],
            order: [0; MOST],
            begin: 0,
            end: 0,
            first_at: u64::MAX,
            last_at: 0,
        }
    }

    /// Whether a sense that ends then is the last in order.
    #[inline]
    pub(super) fn is_last(&self, ends_at: u64) -> bool {
        self.last_at <= ends_at
    }

    /// Appends a sense that is the last in order.
    #[inline]
    pub(super) fn push(&mut self, sense: Sense) {
        self.order[usize::from(self.end) % MOST] = sense.place;
        self.of_dies[usize::from(sense.place) % MOST] = sense;
        self.end = self.end.wrapping_add(1);
        self.first_at = self.first_at.min(sense.ends_at);
        self.last_at = sense.ends_at;
    }

    /// Removes the first sense, if it ends by `now`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: u64) -> Option<Sense> {
        if self.first_at > now {
            return None;
        }
        let first = *self.at(self.begin);
        self.begin = self.begin.wrapping_add(1);
        let next_at = self.at(self.begin).ends_at;
        self.first_at = if self.begin == self.end { u64::MAX } else { next_at };
        Some(first)
    }

    /// Removes the first sense, due or not.
    pub(super) fn pop(&mut self) -> Option<Sense> {
        if self.begin == self.end {
            return None;
        }
        let first = self.pop_due(self.first_at);
        if self.begin == self.end {
            self.last_at = 0;
        }
        first
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    #[inline]
    fn at(&self, number: u8) -> &Sense {
        let place = self.order[usize::from(number) % MOST];
        &self.of_dies[usize::from(place) % MOST]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_base::random::Rng;
    use std::collections::VecDeque;

    #[test]
    fn senses_are_a_queue_of_dies() {
        for seed in 0..100 {
            let mut rng = Rng::seeded(seed).fork("senses");
            let mut senses = Senses::new();
            let mut model: VecDeque<Sense> = VecDeque::new();
            let mut now = 0;
            for _ in 0..1000 {
                now += rng.below(10);
                let sense =
                    Sense { ends_at: now + rng.below(50), place: rng.below(64) as u8, pages: 1 };
                let place = |sense: Option<Sense>| sense.map(|sense| sense.place);
                let waits = model.iter().any(|other| other.place == sense.place);
                match rng.below(20) {
                    // All at once, as when the bus falls idle.
                    0 => {
                        while let Some(first) = model.pop_front() {
                            assert_eq!(place(senses.pop()), Some(first.place), "seed {seed}");
                        }
                        assert!(senses.pop().is_none() && senses.is_last(now), "seed {seed}");
                    }
                    1..=9 if !waits => {
                        let last = model.back().is_none_or(|last| last.ends_at <= sense.ends_at);
                        assert_eq!(senses.is_last(sense.ends_at), last, "seed {seed}");
                        if last {
                            senses.push(sense);
                            model.push_back(sense);
                        }
                    }
                    _ => {
                        let due = model.front().filter(|first| first.ends_at <= now).copied();
                        assert_eq!(place(senses.pop_due(now)), place(due), "seed {seed}");
                        model.drain(..usize::from(due.is_some()));
                    }
                }
                assert_eq!(senses.is_empty(), model.is_empty(), "seed {seed}");
            }
        }
    }
}
