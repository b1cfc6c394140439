//! Superblocks whose data have moved, until they are released.

use crate::geometry::Geometry;
use softflash_base::cast;
use softflash_runtime::Notify;
use std::cell::{Cell, RefCell};

/// A superblock whose data have moved, in frames below `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collected {
    pub block: u32,
    pub end: u64,
}

/// Superblocks whose data have moved, until they are released.
#[derive(Default)]
pub(crate) struct Retiring {
    wake: Notify,
    /// Whether the flush before their release has failed.
    flush_has_failed: Cell<bool>,
    /// Those whose copies may not be durable yet.
    collected: RefCell<Vec<Collected>>,
    /// Those whose copies are durable, of which recovery needs some until the next root.
    for_root: RefCell<Vec<u32>>,
}

impl Retiring {
    /// The data of a superblock have moved: it is released after a flush.
    ///
    /// # Panics
    /// If it waits already: it would be released twice.
    pub fn add(&self, collected: Collected) {
        let block = collected.block;
        assert!(!self.waits(block), "block {block} is collected twice");
        self.collected.borrow_mut().push(collected);
        self.ask();
    }

    /// The copies of the data of superblocks are durable: recovery may need them until the next
    /// root.
    pub fn add_for_root(&self, blocks: impl Iterator<Item = u32>) {
        self.for_root.borrow_mut().extend(blocks);
    }

    fn waits(&self, block: u32) -> bool {
        self.collected.borrow().iter().any(|one| one.block == block)
            || self.for_root.borrow().contains(&block)
    }

    /// Wakes the task that releases them.
    pub fn ask(&self) {
        self.wake.notify_one();
    }

    /// Waits until the task that releases them is woken.
    pub async fn asked(&self) {
        self.wake.notified().await;
    }

    /// Those that the next flush releases.
    pub fn moved(&self) -> Vec<Collected> {
        self.collected.borrow().clone()
    }

    /// The flush before a release has ended.
    pub fn note_flush(&self, has_failed: bool) {
        self.flush_has_failed.set(has_failed);
    }

    /// Whether some wait for a flush.
    pub fn any_waits_for_flush(&self) -> bool {
        !self.collected.borrow().is_empty()
    }

    /// Whether some wait for the next root.
    pub fn any_waits_for_root(&self) -> bool {
        !self.for_root.borrow().is_empty()
    }

    /// Whether the flush before the last release has failed.
    pub fn flush_has_failed(&self) -> bool {
        self.flush_has_failed.get()
    }

    /// Superblocks of a unit that the next flush releases.
    pub fn awaiting_flush_in(&self, geometry: &Geometry, unit: u32) -> u32 {
        let collected = self.collected.borrow();
        let inside = collected.iter().filter(|one| geometry.unit_of(one.block) == unit);
        cast::saturating_u32(inside.count())
    }

    /// Superblocks of a unit that the next root releases.
    pub fn awaiting_root_in(&self, geometry: &Geometry, unit: u32) -> u32 {
        let waiting = self.for_root.borrow();
        let inside = waiting.iter().filter(|&&block| geometry.unit_of(block) == unit);
        cast::saturating_u32(inside.count())
    }

    /// The copies of the data of these are durable. Another task may have taken some meanwhile.
    pub fn mark_durable(&self, moved: &[Collected]) {
        let (durable, rest): (Vec<Collected>, Vec<Collected>) =
            self.collected.take().into_iter().partition(|one| moved.contains(one));
        self.collected.replace(rest);
        self.add_for_root(durable.into_iter().map(|one| one.block));
    }

    /// Takes those that recovery does not need.
    pub fn take_unneeded(&self, is_needed: impl Fn(u32) -> bool) -> Vec<u32> {
        let (kept, free) = self.for_root.take().into_iter().partition(|&block| is_needed(block));
        self.for_root.replace(kept);
        free
    }
}
