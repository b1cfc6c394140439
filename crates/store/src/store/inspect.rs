//! This thread's shard, as tools and simulations examine and drive it.

use super::Store;
use crate::error::{Result, StoreError};
use crate::shard::values::Collection;
use softflash_base::SliceId;
use softflash_blocks::BlockLayer;

impl Store {
    /// The blocks of this thread's shard.
    pub fn blocks(&self) -> &BlockLayer {
        self.shard.blocks()
    }

    /// Free blocks below which this thread's shard refuses new data.
    pub fn reserve_blocks(&self) -> u32 {
        self.shard.reserve_blocks()
    }

    /// The error because of which this thread's shard refuses all writes.
    pub fn failure(&self) -> Option<StoreError> {
        self.shard.failure()
    }

    /// The number of tokens of watched keys of this thread's shard, including orphaned ones.
    pub fn watch_tokens(&self) -> usize {
        self.shard.watch_tokens()
    }

    /// The unit of each patch of a slice of this thread's shard, by run from the newest, in key
    /// order.
    pub fn patch_units(&self, slice: SliceId) -> Vec<Vec<u16>> {
        self.shard.patch_units(slice)
    }

    /// Flushes all memtables of this thread's shard.
    ///
    /// # Errors
    /// The error that stopped the shard.
    pub async fn flush(&self) -> Result<()> {
        self.shard.flush().await
    }

    /// Moves the live values of all blocks of this thread's shard that take no more values, and
    /// deletes the blocks.
    ///
    /// # Errors
    /// Errors of the flash and of the log.
    pub async fn collect_values(&self) -> Result<()> {
        Collection::of(&self.shard).collect_all().await
    }
}
