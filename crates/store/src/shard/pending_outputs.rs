//! Pending outputs: patches that are being written and that no tree lists yet.
//!
//! Every edit of a tree records from which block on such patches may exist. So after a crash a patch
//! below that is known to be dead from the readable part of the log alone, and its space can be used
//! before anything is written.

use softflash_blocks::BlockLayer;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The flush and the compaction under way, each by a block id below those of its outputs.
#[derive(Default)]
pub struct PendingOutputs {
    first_ids: RefCell<BTreeSet<u64>>,
}

/// Outputs are pending as long as this lives.
pub struct PendingOutput<'a> {
    pending: &'a PendingOutputs,
    first_id: u64,
}

impl PendingOutputs {
    /// Patches are about to be written. Drop the result in the step that lists them.
    pub fn begin(&self, blocks: &BlockLayer) -> PendingOutput<'_> {
        let first_id = blocks.new_id().0;
        self.first_ids.borrow_mut().insert(first_id);
        PendingOutput { pending: self, first_id }
    }

    /// Every patch of a lower block is in a tree, or was and is no longer needed.
    pub fn unlisted_from(&self, blocks: &BlockLayer) -> u64 {
        self.first_ids.borrow().first().copied().unwrap_or_else(|| blocks.next_id())
    }
}

impl Drop for PendingOutput<'_> {
    fn drop(&mut self) {
        self.pending.first_ids.borrow_mut().remove(&self.first_id);
    }
}
