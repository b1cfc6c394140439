//! Blocks that need a refresh: hard to read, or with fewer whole copies than they should have.

use crate::layer::BlockLayer;
use crate::redundancy::Redundancy;
use crate::tag::BlockId;
use softflash_ftl::FtlError;
use softflash_runtime::Notify;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The health of blocks.
#[derive(Default)]
pub(crate) struct Health {
    /// Blocks that their owner should rewrite.
    needs_refresh: RefCell<BTreeSet<BlockId>>,
    /// Blocks with a missing or damaged copy, until they are deleted or whole.
    degraded: RefCell<BTreeSet<BlockId>>,
    /// Degraded blocks that can be reconstructed from their parity group.
    reconstructible: RefCell<BTreeSet<BlockId>>,
    /// Rings when a block is degraded.
    pub(crate) bell: Notify,
    /// Rings when a deleted block is pinned by its group.
    pub(crate) pinned: Notify,
}

impl Health {
    fn note_needs_refresh(&self, id: BlockId) {
        self.needs_refresh.borrow_mut().insert(id);
    }

    /// A copy of the block is missing or damaged; where `curable`, the block needs a refresh.
    pub(crate) fn note_degraded(&self, id: BlockId, curable: bool) {
        let is_new = self.degraded.borrow_mut().insert(id);
        if curable {
            self.note_needs_refresh(id);
            if is_new {
                self.bell.notify_one();
            }
        }
    }

    /// A block of a group is missing or damaged.
    pub(crate) fn note_reconstructible(&self, id: BlockId) {
        if self.degraded.borrow_mut().insert(id) {
            self.reconstructible.borrow_mut().insert(id);
            self.bell.notify_one();
        }
    }

    /// A block that is being written has lost a copy. It is not refreshed before
    /// [`try_again`](Health::try_again): its writer may be a rebuild, which would fail in a loop.
    fn note_failed_copy(&self, id: BlockId) {
        let is_first = self.degraded.borrow().is_empty();
        self.degraded.borrow_mut().insert(id);
        if is_first {
            self.bell.notify_one();
        }
    }

    fn try_again(&self, in_group: impl Fn(BlockId) -> bool) {
        for id in self.degraded.borrow().iter().copied() {
            match in_group(id) {
                true => self.reconstructible.borrow_mut().insert(id),
                false => self.needs_refresh.borrow_mut().insert(id),
            };
        }
    }

    fn clear_refresh(&self, id: BlockId) {
        self.needs_refresh.borrow_mut().remove(&id);
    }

    /// The block is deleted, or whole.
    pub(crate) fn forget(&self, id: BlockId) {
        self.clear_refresh(id);
        self.degraded.borrow_mut().remove(&id);
        self.reconstructible.borrow_mut().remove(&id);
    }
}

impl BlockLayer {
    /// The block needs a refresh while it can be read.
    pub fn note_needs_refresh(&self, id: BlockId) {
        if self.contains(id) {
            self.parts.health.note_needs_refresh(id);
        }
    }

    /// Whether the block should be rewritten: it is hard to read, or lacks a copy.
    pub fn needs_refresh(&self, id: BlockId) -> bool {
        self.parts.health.needs_refresh.borrow().contains(&id)
    }

    /// The block is being rewritten, or cannot be.
    pub fn clear_refresh(&self, id: BlockId) {
        self.parts.health.clear_refresh(id);
    }

    /// Whether any block needs a refresh.
    pub fn any_needs_refresh(&self) -> bool {
        let Health { needs_refresh, reconstructible, .. } = &self.parts.health;
        !needs_refresh.borrow().is_empty() || !reconstructible.borrow().is_empty()
    }

    /// A block to be reconstructed from its group now.
    pub fn take_reconstructible(&self) -> Option<BlockId> {
        self.parts.health.reconstructible.borrow_mut().pop_first()
    }

    /// A copy of the block is missing or damaged.
    pub fn note_degraded(&self, id: BlockId) {
        if self.in_group(id) {
            self.parts.health.note_reconstructible(id);
        } else if self.contains(id) {
            self.parts.health.note_degraded(id, self.is_redundant());
        }
    }

    pub(crate) fn note_failed_copy(&self, id: BlockId) {
        if self.contains(id) {
            self.parts.health.note_failed_copy(id);
        }
    }

    /// Whether a copy of the block is known to be missing or damaged.
    pub fn is_degraded(&self, id: BlockId) -> bool {
        self.parts.health.degraded.borrow().contains(&id)
    }

    /// Blocks of which a copy is known to be missing or damaged.
    pub fn degraded_blocks(&self) -> u64 {
        self.parts.health.degraded.borrow().len() as u64
    }

    /// Requests a refresh of all degraded blocks, if a refresh can make them whole: the cause of an
    /// earlier failure may be gone.
    pub fn retry_degraded(&self) {
        if self.is_redundant() {
            self.parts.health.try_again(|id| self.in_group(id));
        }
    }

    /// Rings when a block is degraded that a refresh can make whole.
    pub fn degraded_bell(&self) -> &Notify {
        &self.parts.health.bell
    }

    /// Rings when a deleted block is pinned by its group. The last reader of a patch may delete it
    /// long after it was replaced.
    pub fn pinned_bell(&self) -> &Notify {
        &self.parts.health.pinned
    }

    /// The damage of a block's copies, for reports. `None` where there is none, or where a refresh
    /// would not help, as a single unit is left.
    pub fn copy_problem(&self, id: BlockId) -> Option<String> {
        if !self.is_degraded(id) || !self.is_redundant() {
            return None;
        }
        let in_group = self.in_group(id);
        Some(match &self.superblocks(id)[..] {
            [] if in_group => {
                "it is missing and can be reconstructed from its parity group".to_owned()
            }
            [only] if in_group => {
                format!("it is damaged in {only} and can be reconstructed from its parity group")
            }
            [only] if matches!(self.parts.redundancy, Redundancy::Parity { .. }) => {
                format!("it has no redundancy: the loss of {only} loses it")
            }
            [] => "it is missing".to_owned(),
            [only] => format!("one of its copies is missing; the other is in {only}"),
            [one, other, ..] => format!("a copy in {one} or {other} is damaged"),
        })
    }

    /// Units that were lost since the mount, where their blocks have other copies.
    pub fn lost_units(&self) -> u64 {
        self.parts.pools.main.lost_units()
    }

    /// Records the outcome of a command to a unit. All blocks of a lost unit are degraded.
    pub(crate) fn note_outcome(&self, unit: u16, on_log: bool, error: Option<&FtlError>) {
        if !self.parts.pools.of(on_log).note_outcome(unit, error) {
            return;
        }
        self.parts.pools.note_change();
        self.distrust(unit, on_log);
    }

    /// Marks all blocks of the unit as degraded.
    pub fn distrust_unit(&self, unit: u16) {
        self.distrust(unit, false);
    }

    fn distrust(&self, unit: u16, on_log: bool) {
        let curable = self.is_redundant();
        for id in self.parts.directory.ids_on(unit, on_log) {
            match self.in_group(id) {
                true => self.parts.health.note_reconstructible(id),
                false => self.parts.health.note_degraded(id, curable),
            }
        }
    }
}
