//! The pending events of a timeline, a FIFO queue for each class of events.
//!
//! All operations of a class take equally long, so the one that began first ends first: a new event
//! is appended to its class, and the next event is the first of one of the few classes. The cost of
//! both does not depend on the number of dies. The exceptions (copy-backs of few pages, transfers
//! of several) are moved forward from the end of their class to their place, so that the order of
//! events is always exact.
//!
//! A key is the time, then the owner, then the class. At equal times dies precede buses, then the
//! lower number comes first, so equal runs are equal event by event. An owner has at most one
//! event, so the class never decides.

use crate::timing::LEVELS;

/// The class of an event: events of a class are queued together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventClass {
    /// Ends of transfers.
    Transfer,
    /// Ends of senses.
    Sense,
    /// Ends of erases.
    Erase,
    /// Ends of programs that take equally long, by the place of their time in
    /// [`of_programs`](EventClass::of_programs).
    Program(u8),
    /// All others.
    Other,
}

const CLASS_BITS: u32 = 3;
const CLASSES: usize = 1 << CLASS_BITS;
const PROGRAM_CLASSES: usize = CLASSES - 4;

impl EventClass {
    /// For each level, the class of the ends of its programs, by their times. More than
    /// [`PROGRAM_CLASSES`] times share the class of all other events.
    pub(super) fn of_programs(program_ns: &[u64; LEVELS]) -> [EventClass; LEVELS] {
        let mut times: Vec<u64> = Vec::new();
        program_ns.map(|ns| {
            let place = times.iter().position(|&known| known == ns).unwrap_or_else(|| {
                times.push(ns);
                times.len() - 1
            });
            match place < PROGRAM_CLASSES {
                true => EventClass::Program(place as u8),
                false => EventClass::Other,
            }
        })
    }

    #[inline]
    fn number(self) -> usize {
        match self {
            EventClass::Transfer => 0,
            EventClass::Sense => 1,
            EventClass::Erase => 2,
            EventClass::Other => 3,
            EventClass::Program(level) => 4 + usize::from(level) % PROGRAM_CLASSES,
        }
    }
}

/// The die or bus that an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// A die, counted through all channels.
    Die(u32),
    /// The bus of a channel.
    Bus(u32),
}

/// The key of a class without an event.
const NEVER: u64 = u64::MAX;

/// The events of a class.
#[derive(Debug)]
struct Ring {
    /// A power of two.
    keys: Box<[u64]>,
    /// Positions of the first event and after the last, as wrapping counters.
    begin: u32,
    end: u32,
    /// An upper bound of the pending keys: usually the key of the last event, still pending or not.
    last: u64,
}

impl Ring {
    #[inline]
    fn at(&mut self, place: u32) -> &mut u64 {
        let mask = self.keys.len() - 1;
        &mut self.keys[place as usize & mask]
    }

    /// The keys of the events that have not been taken.
    fn pending(&self) -> impl Iterator<Item = u64> {
        let mask = self.keys.len() - 1;
        let places = 0..self.end.wrapping_sub(self.begin);
        places.map(move |place| self.keys[self.begin.wrapping_add(place) as usize & mask])
    }

    /// The first key, or [`NEVER`].
    #[inline]
    fn first(&mut self) -> u64 {
        let first = *self.at(self.begin);
        if self.begin == self.end { NEVER } else { first }
    }

    /// Appends a key; returns whether it is in order there.
    #[inline]
    fn push(&mut self, key: u64) -> bool {
        *self.at(self.end) = key;
        self.end = self.end.wrapping_add(1);
        let in_order = key >= self.last;
        self.last = self.last.max(key);
        in_order
    }

    /// Moves the key that was pushed last forward to its place in the order.
    #[inline(never)]
    fn settle(&mut self) {
        let mut place = self.end.wrapping_sub(1);
        let key = *self.at(place);
        while place != self.begin {
            let before = *self.at(place.wrapping_sub(1));
            if before < key {
                break;
            }
            *self.at(place) = before;
            place = place.wrapping_sub(1);
        }
        *self.at(place) = key;
        self.last = *self.at(self.end.wrapping_sub(1));
    }

    /// Removes a key at any position.
    fn remove(&mut self, key: u64) {
        let mut place = self.begin;
        while place != self.end && *self.at(place) != key {
            place = place.wrapping_add(1);
        }
        assert!(place != self.end, "an event is taken out that is not there");
        self.end = self.end.wrapping_sub(1);
        while place != self.end {
            let behind = *self.at(place.wrapping_add(1));
            *self.at(place) = behind;
            place = place.wrapping_add(1);
        }
    }
}

/// The event queue.
#[derive(Debug)]
pub(super) struct EventQueue {
    rings: [Ring; CLASSES],
    /// Node `i` holds the least key below it, its children are `2i` and `2i + 1`: the second half
    /// are the first keys of the classes, and node 1 is the key of the next event.
    firsts: [u64; 2 * CLASSES],
    dies: u32,
    /// The number of bits below the time in a key (owner and class), and their mask.
    low_bits: u32,
    owner_mask: u32,
    /// The time of key 0: keys hold times relative to it, so that a 64-bit clock fits.
    base: u64,
    /// The first time that a key cannot hold.
    horizon: u64,
}

impl EventQueue {
    pub(super) fn new(dies: u32, channels: u32) -> EventQueue {
        // Each die and each bus has at most one event.
        let places = (dies + channels).next_power_of_two() as usize;
        let ring = || Ring { keys: vec![0; places].into(), begin: 0, end: 0, last: 0 };
        let low_bits = CLASS_BITS + (dies + channels).next_power_of_two().trailing_zeros();
        EventQueue {
            rings: std::array::from_fn(|_| ring()),
            firsts: [NEVER; 2 * CLASSES],
            dies,
            low_bits,
            owner_mask: (1 << low_bits) - 1,
            base: 0,
            horizon: 1 << (63 - low_bits),
        }
    }

    /// The time of the next event; `u64::MAX` if there is none.
    #[inline]
    pub(super) fn next_at(&self) -> u64 {
        let next = self.firsts[1];
        if next == NEVER { u64::MAX } else { self.base + (next >> self.low_bits) }
    }

    /// The time of a die's event; `None` if it has none. It looks through all pending events.
    pub(super) fn at_of_die(&self, die: u32) -> Option<u64> {
        let key = self
            .rings
            .iter()
            .flat_map(Ring::pending)
            .find(|&key| (key as u32 & self.owner_mask) >> CLASS_BITS == die)?;
        Some(self.base + (key >> self.low_bits))
    }

    /// Adds an event. No pending or later event is before `now`.
    #[inline(always)]
    pub(super) fn add(&mut self, class: EventClass, at: u64, owner: Owner, now: u64) {
        let class = class.number();
        let key = self.key(class, at, owner, now);
        let ring = &mut self.rings[class];
        if !ring.push(key) {
            ring.settle();
        }
        if key < self.firsts[CLASSES + class] {
            self.set_first(class, key);
        }
    }

    /// Removes the next event; the queue must not be empty.
    #[inline]
    pub(super) fn pop(&mut self) -> Owner {
        let next = self.firsts[1];
        let class = next as usize % CLASSES;
        let id = (next as u32 & self.owner_mask) >> CLASS_BITS;
        let ring = &mut self.rings[class];
        ring.begin = ring.begin.wrapping_add(1);
        let first = ring.first();
        self.set_first(class, first);
        if id < self.dies { Owner::Die(id) } else { Owner::Bus(id - self.dies) }
    }

    /// Sets the first key of a class.
    #[inline]
    fn set_first(&mut self, class: usize, key: u64) {
        let mut node = CLASSES + class % CLASSES;
        let mut least = key;
        self.firsts[node] = key;
        for _ in 0..CLASS_BITS {
            least = least.min(self.firsts[node ^ 1]);
            node /= 2;
            self.firsts[node] = least;
        }
    }

    /// Removes the event that was added with these arguments.
    pub(super) fn remove(&mut self, class: EventClass, at: u64, owner: Owner, now: u64) {
        let class = class.number();
        let key = self.key(class, at, owner, now);
        let ring = &mut self.rings[class];
        ring.remove(key);
        let first = ring.first();
        self.set_first(class, first);
    }

    #[inline]
    fn key(&mut self, class: usize, at: u64, owner: Owner, now: u64) -> u64 {
        let id = match owner {
            Owner::Die(die) => die,
            Owner::Bus(channel) => self.dies + channel,
        };
        if at >= self.horizon {
            self.rebase(at, now);
        }
        (at - self.base) << self.low_bits | u64::from(id) << CLASS_BITS | class as u64
    }

    /// Moves the base up to `now`, so that a key holds `at`.
    #[cold]
    fn rebase(&mut self, at: u64, now: u64) {
        assert!(at >= now, "an event at {at} in the past of {now}");
        let shift = (now - self.base) << self.low_bits;
        let entered = self
            .rings
            .iter_mut()
            .flat_map(|Ring { keys, last, .. }| keys.iter_mut().chain(std::iter::once(last)));
        for key in entered.chain(&mut self.firsts).filter(|key| **key != NEVER) {
            // Past events remain in the rings; their keys are not used.
            *key = key.saturating_sub(shift);
        }
        self.base = now;
        self.horizon = now.saturating_add(1 << (63 - self.low_bits));
        assert!(at < self.horizon, "an event beyond the span of keys");
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.rings.iter().map(|ring| size_of_val::<[u64]>(&ring.keys)).sum::<usize>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Owner::{Bus, Die};
    use super::*;
    use softflash_base::random::Rng;

    const DIES: u32 = 12;
    const CHANNELS: u32 = 4;

    fn drain(events: &mut EventQueue) -> Vec<(u64, Owner)> {
        std::iter::from_fn(|| {
            let at = events.next_at();
            (at != u64::MAX).then(|| (at, events.pop()))
        })
        .collect()
    }

    #[test]
    fn ties_go_to_dies_and_then_to_the_lower_number() {
        let mut events = EventQueue::new(DIES, CHANNELS);
        events.add(EventClass::Transfer, 10, Bus(3), 0);
        events.add(EventClass::Transfer, 10, Bus(1), 0);
        events.add(EventClass::Sense, 10, Die(11), 0);
        events.add(EventClass::Program(3), 10, Die(2), 0);
        events.add(EventClass::Other, 9, Die(5), 0);
        let expected = [(9, Die(5)), (10, Die(2)), (10, Die(11)), (10, Bus(1)), (10, Bus(3))];
        assert_eq!(drain(&mut events), expected);
    }

    #[test]
    fn events_come_in_order_whatever_class_they_are_in() {
        for seed in 0..200 {
            let mut rng = Rng::seeded(seed).fork("agenda");
            let mut events = EventQueue::new(DIES, CHANNELS);
            let (mut now, mut model) = (0, Vec::new());
            for _ in 0..400 {
                let id = rng.below(u64::from(DIES + CHANNELS)) as u32;
                let owner = if id < DIES { Die(id) } else { Bus(id - DIES) };
                let classes = [
                    EventClass::Transfer,
                    EventClass::Sense,
                    EventClass::Erase,
                    EventClass::Other,
                    EventClass::Program(1),
                ];
                let class = classes[rng.below(5) as usize];
                // Days ahead, so that the base moves now and then.
                let days = rng.chance(0.05);
                let at = now + rng.below(if days { 1 << 52 } else { 20 });
                match model.iter().position(|&(_, pending, _)| pending == id) {
                    Some(found) if rng.chance(0.3) => {
                        let (at, _, class) = model.swap_remove(found);
                        events.remove(class, at, owner, now);
                    }
                    Some(_) => {
                        model.sort_by_key(|&(at, id, _)| (at, id));
                        let (at, id, _) = model.remove(0);
                        assert_eq!(events.next_at(), at, "seed {seed}");
                        let owner = if id < DIES { Die(id) } else { Bus(id - DIES) };
                        assert_eq!(events.pop(), owner, "seed {seed}");
                        now = at;
                    }
                    None => {
                        model.push((at, id, class));
                        events.add(class, at, owner, now);
                    }
                }
            }
            assert_eq!(drain(&mut events).len(), model.len(), "seed {seed}");
        }
    }
}
