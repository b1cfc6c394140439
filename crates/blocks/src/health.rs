//! Blocks that need a refresh: hard to read, with fewer whole copies than they should have, or
//! behind in wear.

use crate::tag::BlockId;
use softflash_ftl::Origin;
use softflash_runtime::Notify;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The health of blocks.
#[derive(Default)]
pub(crate) struct Health {
    /// Blocks that their owner should rewrite, and why: the first reason found.
    needs_refresh: RefCell<BTreeMap<BlockId, Origin>>,
    /// Blocks with a missing or damaged copy, until they are deleted or whole.
    degraded: RefCell<BTreeSet<BlockId>>,
    /// Degraded blocks that can be reconstructed from their parity group.
    reconstructible: RefCell<BTreeSet<BlockId>>,
    /// Rings when a block is degraded.
    degraded_bell: Notify,
    /// Rings when a deleted block is pinned by its group.
    pinned_bell: Notify,
}

impl Health {
    pub(crate) fn note_needs_refresh(&self, id: BlockId, why: Origin) {
        self.needs_refresh.borrow_mut().entry(id).or_insert(why);
    }

    pub(crate) fn why_refresh(&self, id: BlockId) -> Option<Origin> {
        self.needs_refresh.borrow().get(&id).copied()
    }

    /// The block is being rewritten, or cannot be.
    pub(crate) fn clear_refresh(&self, id: BlockId) {
        self.needs_refresh.borrow_mut().remove(&id);
    }

    pub(crate) fn any_needs_refresh(&self) -> bool {
        !self.needs_refresh.borrow().is_empty() || !self.reconstructible.borrow().is_empty()
    }

    pub(crate) fn take_reconstructible(&self) -> Option<BlockId> {
        self.reconstructible.borrow_mut().pop_first()
    }

    pub(crate) fn is_degraded(&self, id: BlockId) -> bool {
        self.degraded.borrow().contains(&id)
    }

    pub(crate) fn degraded_blocks(&self) -> u64 {
        self.degraded.borrow().len() as u64
    }

    /// A copy of the block is missing or damaged; where `curable`, the block needs a refresh.
    pub(crate) fn note_degraded(&self, id: BlockId, curable: bool) {
        let is_new = self.degraded.borrow_mut().insert(id);
        if curable {
            self.note_needs_refresh(id, Origin::Rebuild);
            if is_new {
                self.degraded_bell.notify_one();
            }
        }
    }

    /// A block of a group is missing or damaged.
    pub(crate) fn note_reconstructible(&self, id: BlockId) {
        if self.degraded.borrow_mut().insert(id) {
            self.reconstructible.borrow_mut().insert(id);
            self.degraded_bell.notify_one();
        }
    }

    /// A whole block of a group has to be written elsewhere, which a reconstruction does.
    pub(crate) fn note_moving(&self, id: BlockId) {
        self.reconstructible.borrow_mut().insert(id);
    }

    /// The block stays where it is: it needs nothing that only a move asked for.
    pub(crate) fn note_staying(&self, id: BlockId) {
        if self.why_refresh(id) == Some(Origin::Levelling) {
            self.clear_refresh(id);
        }
        if !self.is_degraded(id) {
            self.reconstructible.borrow_mut().remove(&id);
        }
    }

    /// A block that is being written has lost a copy. It is not refreshed before
    /// [`try_again`](Health::try_again): its writer may be a rebuild, which would fail in a loop.
    pub(crate) fn note_failed_copy(&self, id: BlockId) {
        let is_first = self.degraded.borrow().is_empty();
        self.degraded.borrow_mut().insert(id);
        if is_first {
            self.degraded_bell.notify_one();
        }
    }

    /// A deleted block is pinned by its group.
    pub(crate) fn note_pinned(&self) {
        self.pinned_bell.notify_one();
    }

    pub(crate) fn try_again(&self, in_group: impl Fn(BlockId) -> bool) {
        for id in self.degraded.borrow().iter().copied() {
            match in_group(id) {
                true => drop(self.reconstructible.borrow_mut().insert(id)),
                false => self.note_needs_refresh(id, Origin::Rebuild),
            }
        }
    }

    /// The block is deleted, or whole.
    pub(crate) fn forget(&self, id: BlockId) {
        self.clear_refresh(id);
        self.degraded.borrow_mut().remove(&id);
        self.reconstructible.borrow_mut().remove(&id);
    }

    pub(crate) fn degraded_bell(&self) -> &Notify {
        &self.degraded_bell
    }

    pub(crate) fn pinned_bell(&self) -> &Notify {
        &self.pinned_bell
    }
}
