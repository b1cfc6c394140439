//! The pending events. A die and a channel's bus have at most one event each, so each has a fixed
//! place and nothing is ever inserted: the few events of a channel are scanned, and the earliest of
//! each channel compete in a tournament tree.
//!
//! Operations of a die change events of its channel only. The changes are stored, and the channel
//! is settled (one scan, one walk up the tree) when the next event is needed or another channel
//! changes: the completion of a command and the submission of the next one cost one walk. A new
//! event in an empty place that is not the first of its channel costs none.
//!
//! A key is `time << bits | id`, so keys compare by time; at equal times dies precede buses, then
//! the lower number comes first. So equal runs are equal event by event.

#![expect(unsafe_code, reason = "the walk up the tree is the hottest loop of the simulator")]

use std::cell::Cell;

/// The key of a place without an event.
const NEVER: u64 = u64::MAX;

/// No channel.
const NONE: usize = usize::MAX;

/// The owner of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// A die, counted through all channels.
    Die(usize),
    /// The bus of a channel.
    Bus(usize),
}

/// The events of channels of equally many dies.
pub(crate) struct Tournament {
    /// The keys of each channel: its bus, then its dies, in rows of four for a fast minimum.
    pending: Vec<u64>,
    /// The number of keys of a channel: whole rows.
    stride: usize,
    /// Node `i` holds the least key below it; its children are `2i` and `2i + 1`. The second half
    /// are the channels: a power of two, so that all walks are equally long and the processor
    /// predicts their ends.
    tree: Vec<Cell<u64>>,
    /// The one channel, if any, whose events may have changed since it was settled.
    unsettled: Cell<usize>,
    dies: usize,
    dies_per_channel: usize,
    id_bits: u32,
    /// The time of key 0: keys hold times relative to it, so that a 64-bit clock fits.
    base: u64,
    /// The first time that a key cannot hold.
    horizon: u64,
}

/// Keys in a row.
const ROW: usize = 4;

impl Tournament {
    pub(crate) fn new(channels: usize, dies_per_channel: usize) -> Tournament {
        let dies = channels * dies_per_channel;
        // With one leaf, the root would be the leaf.
        let leaves = channels.max(2).next_power_of_two();
        let stride = (1 + dies_per_channel).next_multiple_of(ROW);
        let id_bits = (dies + channels).next_power_of_two().trailing_zeros();
        Tournament {
            pending: vec![NEVER; channels * stride],
            stride,
            tree: vec![Cell::new(NEVER); 2 * leaves],
            unsettled: Cell::new(NONE),
            dies,
            dies_per_channel,
            id_bits,
            base: 0,
            horizon: 1 << (63 - id_bits),
        }
    }

    /// The next event: its time and owner.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u64, Owner)> {
        self.first_before(u64::MAX)
    }

    /// The next event, if it is before `end`.
    #[inline]
    pub(crate) fn first_before(&self, end: u64) -> Option<(u64, Owner)> {
        self.turn_to(NONE);
        let key = self.tree[1].get();
        if key == NEVER || self.base + (key >> self.id_bits) >= end {
            return None;
        }
        let id = (key & ((1 << self.id_bits) - 1)) as usize;
        let owner = if id < self.dies { Owner::Die(id) } else { Owner::Bus(id - self.dies) };
        Some((self.base + (key >> self.id_bits), owner))
    }

    /// The time of the next event.
    #[inline]
    pub(crate) fn first_at(&self) -> Option<u64> {
        self.turn_to(NONE);
        let key = self.tree[1].get();
        (key != NEVER).then_some(self.base + (key >> self.id_bits))
    }

    /// Sets the event of the die at this place of a channel to `at`. No pending or later event is
    /// before `now`.
    #[inline]
    pub(crate) fn set_die(&mut self, channel: usize, place: usize, at: u64, now: u64) {
        let key = self.key(channel * self.dies_per_channel + place, at, now);
        let index = channel * self.stride + 1 + place;
        let settled = self.unsettled.get() != channel;
        if settled && self.pending[index] == NEVER && key > self.tree[self.leaf(channel)].get() {
            self.pending[index] = key;
            return;
        }
        self.change(channel, index, key);
    }

    /// Removes the event of a die.
    #[inline]
    pub(crate) fn clear_die(&mut self, channel: usize, place: usize) {
        self.change(channel, channel * self.stride + 1 + place, NEVER);
    }

    /// As [`set_die`](Tournament::set_die), for the bus of a channel.
    #[inline]
    pub(crate) fn set_bus(&mut self, channel: usize, at: u64, now: u64) {
        let key = self.key(self.dies + channel, at, now);
        self.change(channel, channel * self.stride, key);
    }

    /// Removes the event of a channel's bus.
    #[inline]
    pub(crate) fn clear_bus(&mut self, channel: usize) {
        self.change(channel, channel * self.stride, NEVER);
    }

    #[inline]
    fn change(&mut self, channel: usize, index: usize, key: u64) {
        if self.unsettled.get() != channel {
            self.turn_to(channel);
        }
        self.pending[index] = key;
    }

    #[inline]
    fn leaf(&self, channel: usize) -> usize {
        self.tree.len() / 2 + channel
    }

    /// Removes all events.
    pub(crate) fn clear_all(&mut self) {
        self.pending.fill(NEVER);
        self.tree.fill(Cell::new(NEVER));
        self.unsettled.set(NONE);
    }

    /// Settles the changed channel, if any, before `channel` changes.
    #[inline]
    fn turn_to(&self, channel: usize) {
        let last = self.unsettled.replace(channel);
        if last != NONE {
            self.settle(last);
        }
    }

    /// Finds the earliest event of a channel and updates the tree from its leaf to the root.
    #[inline(never)]
    fn settle(&self, channel: usize) {
        let keys = &self.pending[channel * self.stride..][..self.stride];
        let mut least = keys[0];
        for row in keys.chunks_exact(ROW) {
            least = least.min(row[0].min(row[1]).min(row[2].min(row[3])));
        }
        let tree = self.tree.as_slice();
        let mut node = self.leaf(channel);
        tree[node].set(least);
        while node > 1 {
            // SAFETY: `node` was a valid index above, in a tree whose length is a power of two, and
            // is halved; above 1 it, its sibling and its parent are all inside.
            unsafe {
                least = least.min(tree.get_unchecked(node ^ 1).get());
                node >>= 1;
                tree.get_unchecked(node).set(least);
            }
        }
    }

    #[inline]
    fn key(&mut self, id: usize, at: u64, now: u64) -> u64 {
        if at >= self.horizon {
            self.rebase(now);
            assert!(at >= now, "an event at {at} in the past of {now}");
            assert!(at < self.horizon, "an event beyond the span of keys");
        }
        (at - self.base) << self.id_bits | id as u64
    }

    /// Moves the base up to `now`.
    #[cold]
    fn rebase(&mut self, now: u64) {
        self.turn_to(NONE);
        let shift = (now - self.base) << self.id_bits;
        let nodes = self.tree.iter_mut().map(Cell::get_mut);
        for key in self.pending.iter_mut().chain(nodes).filter(|key| **key != NEVER) {
            assert!(*key >= shift, "an event is pending in the past of {now}");
            *key -= shift;
        }
        self.base = now;
        self.horizon = now.saturating_add(1 << (63 - self.id_bits));
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        ((self.pending.capacity() + self.tree.capacity()) * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Owner::{Bus, Die};
    use super::*;
    use proptest::prelude::*;

    const DIES_PER_CHANNEL: usize = 3;

    fn channel_of(owner: Owner) -> usize {
        match owner {
            Die(die) => die / DIES_PER_CHANNEL,
            Bus(channel) => channel,
        }
    }

    fn put(tree: &mut Tournament, owner: Owner, at: Option<u64>, now: u64) {
        let channel = channel_of(owner);
        match (owner, at) {
            (Die(die), Some(at)) => tree.set_die(channel, die % DIES_PER_CHANNEL, at, now),
            (Die(die), None) => tree.clear_die(channel, die % DIES_PER_CHANNEL),
            (Bus(_), Some(at)) => tree.set_bus(channel, at, now),
            (Bus(_), None) => tree.clear_bus(channel),
        }
    }

    fn drain(tree: &mut Tournament) -> Vec<(u64, Owner)> {
        let next = |tree: &mut Tournament| {
            let first = tree.first();
            first.inspect(|&(_, owner)| put(tree, owner, None, 0))
        };
        std::iter::from_fn(|| next(tree)).collect()
    }

    #[test]
    fn ties_go_to_dies_and_then_to_the_lower_number() {
        let mut tree = Tournament::new(5, DIES_PER_CHANNEL);
        for owner in [Bus(0), Die(14), Bus(4), Die(1), Die(3)] {
            put(&mut tree, owner, Some(10), 0);
        }
        put(&mut tree, Die(2), Some(9), 0);
        let ties = [Die(1), Die(3), Die(14), Bus(0), Bus(4)].map(|owner| (10, owner));
        let drained = drain(&mut tree);
        assert_eq!((drained[0], &drained[1..]), ((9, Die(2)), &ties[..]));
    }

    #[test]
    fn a_clock_of_centuries_fits() {
        const CENTURY: u64 = 100 * 365 * 86_400 * 1_000_000_000;
        const HOUR: u64 = 3_600_000_000_000;
        let mut tree = Tournament::new(1 << 14, DIES_PER_CHANNEL);
        put(&mut tree, Die(7), Some(5), 0);
        assert_eq!(drain(&mut tree), [(5, Die(7))]);
        put(&mut tree, Bus(16_383), Some(CENTURY + 10), CENTURY);
        put(&mut tree, Die(3), Some(CENTURY), CENTURY);
        put(&mut tree, Die(0), Some(CENTURY + HOUR), CENTURY);
        put(&mut tree, Die(1), Some(CENTURY + 30 * HOUR), CENTURY);
        put(&mut tree, Die(3), None, CENTURY);
        // Beyond the span of keys from the base set at the century.
        put(&mut tree, Die(2), Some(CENTURY + (1 << 47) + 5), CENTURY + 10);
        let expected = [
            (CENTURY + 10, Bus(16_383)),
            (CENTURY + HOUR, Die(0)),
            (CENTURY + 30 * HOUR, Die(1)),
            (CENTURY + (1 << 47) + 5, Die(2)),
        ];
        assert_eq!(drain(&mut tree), expected);
    }

    proptest! {
        #[test]
        fn events_come_in_order_of_time_and_owner(
            channels in 1_usize..20,
            sets in prop::collection::vec((0_usize..80, prop::option::of(0_u64..1000)), 0..200),
        ) {
            let dies = channels * DIES_PER_CHANNEL;
            let owner = |id| if id < dies { Die(id) } else { Bus(id - dies) };
            let mut tree = Tournament::new(channels, DIES_PER_CHANNEL);
            let mut model = vec![None; dies + channels];
            for (id, at) in sets.into_iter().filter(|&(id, _)| id < dies + channels) {
                model[id] = at;
                put(&mut tree, owner(id), at, 0);
            }
            let pending = model.iter().enumerate();
            let mut expected: Vec<(u64, Owner)> =
                pending.filter_map(|(id, at)| at.map(|at| (at, owner(id)))).collect();
            expected.sort_unstable();
            prop_assert_eq!(drain(&mut tree), expected);
        }
    }
}
