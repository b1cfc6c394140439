//! A value block in use. It is deleted when it is obsolete and its last reader is done.

use softflash_blocks::{BlockId, BlockLayer};
use std::cell::Cell;

/// A value block. Readers hold it, so that it is not deleted under them.
pub struct ValueBlock {
    id: BlockId,
    blocks: BlockLayer,
    is_obsolete: Cell<bool>,
}

impl ValueBlock {
    /// A handle of a block.
    pub fn new(id: BlockId, blocks: BlockLayer) -> ValueBlock {
        ValueBlock { id, blocks, is_obsolete: Cell::new(false) }
    }

    /// Its id.
    pub fn id(&self) -> BlockId {
        self.id
    }

    /// No recovery and no new reader needs the block.
    pub fn retire(&self) {
        self.is_obsolete.set(true);
    }
}

impl Drop for ValueBlock {
    fn drop(&mut self) {
        if self.is_obsolete.get() {
            self.blocks.delete(self.id);
        }
    }
}
