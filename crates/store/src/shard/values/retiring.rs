//! The state of the collector: blocks that it empties, and empty blocks on their way to deletion.

use super::ledger::{Empty, Ledger};
use softflash_base::ShardId;
use softflash_base::cast::wide;
use softflash_base::random::Rng;
use softflash_policy::VictimPolicy;
use std::cell::{Cell, RefCell, RefMut};
use std::collections::{BTreeSet, VecDeque};

/// The collector's state.
pub struct Collector {
    /// The policy that chooses blocks, and the random numbers that it draws.
    policies: RefCell<(VictimPolicy, Rng)>,
    /// Blocks to delete, each with the last sequence number before it was empty.
    retiring: RefCell<VecDeque<(u64, Empty)>>,
    /// Blocks whose values are being moved.
    victims: RefCell<BTreeSet<u64>>,
    /// Bytes of the largest value that a writer waits with.
    wanted: Cell<u64>,
    /// It has no work.
    is_idle: Cell<bool>,
}

/// A block whose values are being moved, until this is dropped.
pub(super) struct Victim<'a> {
    collector: &'a Collector,
    pub(super) block: u64,
}

impl Drop for Victim<'_> {
    fn drop(&mut self) {
        self.collector.victims.borrow_mut().remove(&self.block);
    }
}

impl Collector {
    /// The collector of a shard, which chooses blocks by a policy.
    pub fn new(policy: VictimPolicy, shard: ShardId) -> Collector {
        Collector {
            policies: RefCell::new((policy, Rng::seeded(shard.0.into()))),
            retiring: RefCell::default(),
            victims: RefCell::default(),
            wanted: Cell::default(),
            is_idle: Cell::default(),
        }
    }

    /// The policy, and its random numbers.
    pub(super) fn policies(&self) -> RefMut<'_, (VictimPolicy, Rng)> {
        self.policies.borrow_mut()
    }

    /// The collector has no work, or may have some.
    pub fn set_idle(&self, is_idle: bool) {
        self.is_idle.set(is_idle);
    }

    /// A writer waits for space for a value of so many bytes.
    pub fn note_wanted(&self, bytes: usize) {
        self.wanted.set(self.wanted.get().max(wide(bytes)));
    }

    /// Bytes of the largest value that a writer waits with.
    pub fn wanted(&self) -> u64 {
        self.wanted.get()
    }

    /// The space suffices. Writers that wait nevertheless note so again.
    pub(super) fn forget_wanted(&self) {
        self.wanted.set(0);
    }

    /// The values of a block are going to be moved.
    pub(super) fn begin(&self, block: u64) -> Victim<'_> {
        self.victims.borrow_mut().insert(block);
        Victim { collector: self, block }
    }

    /// Whether the values of a block are being moved.
    pub(super) fn is_victim(&self, block: u64) -> bool {
        self.victims.borrow().contains(&block)
    }

    /// A block is empty after the write with this sequence number.
    pub(super) fn note_empty(&self, seq: u64, empty: Empty) {
        self.retiring.borrow_mut().push_back((seq, empty));
    }

    /// Of the next block to delete: the last sequence number before it was empty, and the time at
    /// which its last expired value did, 0 if none has.
    pub(super) fn next_to_delete(&self) -> Option<(u64, u64)> {
        let retiring = self.retiring.borrow();
        retiring.front().map(|(seq, empty)| (*seq, empty.expired_ms))
    }

    /// The number of blocks to delete.
    pub fn retiring(&self) -> usize {
        self.retiring.borrow().len()
    }

    /// Takes the next block to delete.
    pub(super) fn take_next(&self) -> Option<Empty> {
        self.retiring.borrow_mut().pop_front().map(|(_, empty)| empty)
    }

    /// Whether it has no work.
    pub fn is_idle(&self) -> bool {
        self.is_idle.get()
    }

    /// Whether something can be taken back: blocks wait for their deletion, are worth collecting,
    /// or expire by this time.
    pub fn has_garbage(&self, ledger: &Ledger, by_ms: u64) -> bool {
        !self.retiring.borrow().is_empty()
            || !self.is_idle.get() && !ledger.is_empty()
            || ledger.next_expiry_ms().is_some_and(|expires_ms| expires_ms <= by_ms)
    }
}
