//! Blocks that should be written anew: hard to read, or with fewer whole copies than they should have.

use super::tag::BlockId;
use softflash_runtime::Notify;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The condition of blocks.
#[derive(Default)]
pub(super) struct Condition {
    /// To be written anew.
    strained: RefCell<BTreeSet<BlockId>>,
    /// Without one of their copies, or with one that is damaged, until they are no more or whole again.
    degraded: RefCell<BTreeSet<BlockId>>,
    /// Those of them that the others of their group can make whole.
    restorable: RefCell<BTreeSet<BlockId>>,
    /// Rings when a block is degraded.
    pub(super) bell: Notify,
    /// Rings when a block is given up that others of its group need.
    pub(super) pinned: Notify,
}

impl Condition {
    pub(super) fn note_strained(&self, id: BlockId) {
        self.strained.borrow_mut().insert(id);
    }

    /// A copy of the block is missing or damaged; where `curable`, it should be written anew.
    pub(super) fn note_degraded(&self, id: BlockId, curable: bool) {
        let is_new = self.degraded.borrow_mut().insert(id);
        if curable {
            self.note_strained(id);
            if is_new {
                self.bell.notify_one();
            }
        }
    }

    /// A block of a group is missing or damaged: it should be made of the others.
    pub(super) fn note_restorable(&self, id: BlockId) {
        if self.degraded.borrow_mut().insert(id) {
            self.restorable.borrow_mut().insert(id);
            self.bell.notify_one();
        }
    }

    /// One that should be made of others now.
    pub(super) fn take_restorable(&self) -> Option<BlockId> {
        self.restorable.borrow_mut().pop_first()
    }

    /// A block that is being written has lost a copy. It waits until degraded blocks are tried again: what writes it may be a
    /// rebuild that is no good.
    pub(super) fn note_failed_copy(&self, id: BlockId) {
        let is_first = self.degraded.borrow().is_empty();
        self.degraded.borrow_mut().insert(id);
        if is_first {
            self.bell.notify_one();
        }
    }

    /// All degraded blocks should be made whole: what kept them from it may be over.
    pub(super) fn try_again(&self, in_group: impl Fn(BlockId) -> bool) {
        for id in self.degraded.borrow().iter().copied() {
            match in_group(id) {
                true => self.restorable.borrow_mut().insert(id),
                false => self.strained.borrow_mut().insert(id),
            };
        }
    }

    pub(super) fn is_strained(&self, id: BlockId) -> bool {
        self.strained.borrow().contains(&id)
    }

    pub(super) fn is_degraded(&self, id: BlockId) -> bool {
        self.degraded.borrow().contains(&id)
    }

    pub(super) fn forget_strain(&self, id: BlockId) {
        self.strained.borrow_mut().remove(&id);
    }

    /// The block is no more.
    pub(super) fn forget(&self, id: BlockId) {
        self.forget_strain(id);
        self.degraded.borrow_mut().remove(&id);
        self.restorable.borrow_mut().remove(&id);
    }

    pub(super) fn any_strained(&self) -> bool {
        !self.strained.borrow().is_empty() || !self.restorable.borrow().is_empty()
    }

    pub(super) fn degraded(&self) -> u64 {
        self.degraded.borrow().len() as u64
    }
}
