//! The pending events: a tournament tree with a fixed slot for each die and each channel.
//!
//! A die and a channel have at most one pending event each, so nothing is ever inserted: a slot's key
//! is replaced and its few matches up the tree are played again. A key is `time << bits | id`, so a
//! comparison of keys is one of times with ties going to the lower id, and equal runs are equal event
//! by event.

#![expect(unsafe_code, reason = "the walk up the tree is the hottest loop of the simulator")]

/// The key of a slot without an event.
const NEVER: u64 = u64::MAX;

/// Slots numbered from 0, each with an event or none.
pub(crate) struct Tournament {
    /// Node `i` holds the least key below it; its children are `2i` and `2i + 1`; the slots are the
    /// last half, a power of two, so that all walks are equally long and the processor knows when
    /// they end.
    keys: Vec<u64>,
    slots: usize,
    /// Bits of an id, and levels below the root.
    id_bits: u32,
    /// The time of key 0: keys hold times since then, so that a clock of 64 bits fits.
    base: u64,
}

impl Tournament {
    pub(crate) fn new(slots: usize) -> Tournament {
        // One slot would be a root without matches.
        let slots = slots.max(2).next_power_of_two();
        Tournament { keys: vec![NEVER; 2 * slots], slots, id_bits: slots.trailing_zeros(), base: 0 }
    }

    /// The next event: its time and slot.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u64, usize)> {
        let key = self.keys[1];
        if key == NEVER {
            return None;
        }
        let id = key & ((1 << self.id_bits) - 1);
        Some((self.base + (key >> self.id_bits), id as usize))
    }

    /// Gives `slot` an event at `at`, in place of the one it had. It is `now`: no pending or later event
    /// is before that.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, at: u64, now: u64) {
        if at.wrapping_sub(self.base) >> (63 - self.id_bits) != 0 {
            self.rebase(now);
            assert!(at >= now, "an event at {at} in the past of {now}");
            assert!((at - now) >> (63 - self.id_bits) == 0, "an event beyond the span of keys");
        }
        self.replace(slot, (at - self.base) << self.id_bits | slot as u64);
    }

    /// Takes the event of `slot` away.
    #[inline]
    pub(crate) fn clear(&mut self, slot: usize) {
        self.replace(slot, NEVER);
    }

    /// Takes all events away.
    pub(crate) fn clear_all(&mut self) {
        self.keys.fill(NEVER);
    }

    /// Replaces a slot's key and plays its matches again, all the way up.
    #[inline]
    fn replace(&mut self, slot: usize, key: u64) {
        assert!(slot < self.slots, "no slot {slot}");
        let keys = self.keys.as_mut_slice();
        let mut node = self.slots + slot;
        let mut least = key;
        keys[node] = key;
        while node > 1 {
            // SAFETY: `node` starts below `2 * slots`, the length of `keys`, and is halved; above 1 it,
            // its sibling and its parent are all inside.
            unsafe {
                least = least.min(*keys.get_unchecked(node ^ 1));
                node >>= 1;
                *keys.get_unchecked_mut(node) = least;
            }
        }
    }

    /// Moves the base up to `now`.
    #[cold]
    fn rebase(&mut self, now: u64) {
        if let Some((first, _)) = self.first() {
            assert!(first >= now, "an event at {first} is pending in the past of {now}");
            let shift = (now - self.base) << self.id_bits;
            for key in self.keys.iter_mut().filter(|key| **key != NEVER) {
                *key -= shift;
            }
        }
        self.base = now;
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.keys.capacity() * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(tree: &mut Tournament) -> Vec<(u64, usize)> {
        let next = |tree: &mut Tournament| {
            let first = tree.first();
            first.inspect(|&(_, slot)| tree.clear(slot))
        };
        std::iter::from_fn(|| next(tree)).collect()
    }

    #[test]
    fn ties_go_to_the_lower_slot() {
        let mut tree = Tournament::new(5);
        [4, 1, 3].into_iter().for_each(|slot| tree.set(slot, 10, 0));
        tree.set(2, 9, 0);
        assert_eq!(drain(&mut tree), [(9, 2), (10, 1), (10, 3), (10, 4)]);
    }

    #[test]
    fn a_clock_of_centuries_fits() {
        const CENTURY: u64 = 100 * 365 * 86_400 * 1_000_000_000;
        const HOUR: u64 = 3_600_000_000_000;
        let mut tree = Tournament::new(1 << 16);
        tree.set(7, 5, 0);
        assert_eq!(drain(&mut tree), [(5, 7)]);
        tree.set(65_535, CENTURY + 10, CENTURY);
        tree.set(3, CENTURY, CENTURY);
        tree.set(0, CENTURY + HOUR, CENTURY);
        tree.set(1, CENTURY + 30 * HOUR, CENTURY);
        tree.clear(3);
        // Beyond what keys hold from the base that the century set.
        tree.set(2, CENTURY + (1 << 47) + 5, CENTURY + 10);
        let expected = [
            (CENTURY + 10, 65_535),
            (CENTURY + HOUR, 0),
            (CENTURY + 30 * HOUR, 1),
            (CENTURY + (1 << 47) + 5, 2),
        ];
        assert_eq!(drain(&mut tree), expected);
    }

    proptest! {
        #[test]
        fn events_come_in_order_of_time_and_slot(
            slots in 1_usize..70,
            sets in prop::collection::vec((0_usize..70, prop::option::of(0_u64..1000)), 0..200),
        ) {
            let mut tree = Tournament::new(slots);
            let mut model = vec![None; slots];
            for (slot, at) in sets.into_iter().filter(|&(slot, _)| slot < slots) {
                model[slot] = at;
                match at {
                    Some(at) => tree.set(slot, at, 0),
                    None => tree.clear(slot),
                }
            }
            let pending = model.iter().enumerate();
            let mut expected: Vec<(u64, usize)> =
                pending.filter_map(|(slot, at)| at.map(|at| (at, slot))).collect();
            expected.sort_unstable();
            prop_assert_eq!(drain(&mut tree), expected);
        }
    }
}
