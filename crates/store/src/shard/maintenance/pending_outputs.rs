//! Pending outputs: patches of a flush or compaction that no tree lists yet.
//!
//! Every edit of a tree records the lowest block that a pending output may have. So after a crash
//! the readable part of the log alone shows that an unlisted patch of a lower block is dead, and
//! its space can be reused before any write.

use softflash_blocks::BlockLayer;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The running flush and compaction, each by a block id below the ids of its outputs.
#[derive(Default)]
pub struct PendingOutputs {
    first_ids: RefCell<BTreeSet<u64>>,
}

/// The outputs are pending until this is dropped.
pub struct PendingOutput<'a> {
    pending: &'a PendingOutputs,
    first_id: u64,
}

impl PendingOutputs {
    /// Marks the patches written from here on as pending. Drop the result in the step that lists
    /// them.
    pub fn begin(&self, blocks: &BlockLayer) -> PendingOutput<'_> {
        let first_id = blocks.new_id().0;
        self.first_ids.borrow_mut().insert(first_id);
        PendingOutput { pending: self, first_id }
    }

    /// The block id below which every unlisted patch is dead.
    pub fn unlisted_from(&self, blocks: &BlockLayer) -> u64 {
        self.first_ids.borrow().first().copied().unwrap_or_else(|| blocks.next_id())
    }
}

impl Drop for PendingOutput<'_> {
    fn drop(&mut self) {
        self.pending.first_ids.borrow_mut().remove(&self.first_id);
    }
}
