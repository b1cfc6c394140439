//! Patches that are being written and that no tree lists yet.
//!
//! Every edit of a tree says from which block on such patches may exist. So after a crash a patch below that is known
//! to be dead from what was read of the log alone, and its space can be used before anything is written.

use softflash_blocks::BlockLayer;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The flush and the compaction under way, by a block id below those of their patches.
#[derive(Default)]
pub struct Building {
    sites: RefCell<BTreeSet<u64>>,
}

/// Patches are being written as long as this lives.
pub struct Site<'a> {
    building: &'a Building,
    first: u64,
}

impl Building {
    /// Patches are about to be written. Drop the result in the step that lists them.
    pub fn begin(&self, blocks: &BlockLayer) -> Site<'_> {
        let first = blocks.new_id().0;
        self.sites.borrow_mut().insert(first);
        Site { building: self, first }
    }

    /// Every patch of a lower block is in a tree, or was and is no longer needed.
    pub fn unlisted_from(&self, blocks: &BlockLayer) -> u64 {
        self.sites.borrow().first().copied().unwrap_or_else(|| blocks.next_id())
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        self.building.sites.borrow_mut().remove(&self.first);
    }
}
