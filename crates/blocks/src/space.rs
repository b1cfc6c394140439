//! Free space: the number of blocks that can be written, and the reserves of the log and of
//! flushes.

use crate::error::{BlockError, Result};
use crate::layer::BlockLayer;
use crate::tag::BlockId;
use softflash_ftl::{Hint, Priority, Superblock};

/// Blocks reserved for the log: the first segment of a start, and the segment that it announces.
pub const BLOCKS_OF_LOG: u32 = 2;
/// Free blocks that a start needs before its log begins: the blocks of the log, and as many spare
/// blocks for program failures.
pub const BLOCKS_OF_START: u32 = 2 * BLOCKS_OF_LOG;
/// Blocks that compaction reserves for a concurrent flush.
pub const BLOCKS_OF_FLUSH: u32 = 2;

impl BlockLayer {
    /// Blocks that can be written.
    pub fn free_blocks(&self) -> u32 {
        self.parts.pools.free_blocks()
    }

    /// As [`free_blocks`](BlockLayer::free_blocks), counted unit by unit, to verify the cached
    /// count.
    pub fn count_free_blocks(&self) -> u32 {
        self.parts.pools.main.free_blocks()
    }

    /// Blocks that empty flash can hold, without bad superblocks.
    pub fn total_blocks(&self) -> u32 {
        self.parts.pools.main.total_blocks()
    }

    /// Blocks that a compaction can write.
    pub fn room_of_compaction(&self) -> usize {
        self.free_blocks().saturating_sub(BLOCKS_OF_LOG + BLOCKS_OF_FLUSH) as usize
    }

    /// The error of a write that finds no free superblock: the flash is full, or worn out.
    pub fn lack_of_space(&self) -> BlockError {
        self.parts.pools.main.lack_of_space()
    }

    /// Checks that a patch leaves room for the writes that must follow it: a log without a block
    /// for its next segment fails, a start without one for its first segment can release nothing,
    /// and the inputs of a compaction stay until the flush that the log waits for is done.
    ///
    /// # Errors
    /// [`BlockError::OutOfSpace`] or [`BlockError::WornOut`] where the room does not suffice.
    pub fn leave_room(&self, hint: Hint) -> Result<()> {
        let kept = match hint.priority {
            Priority::Background => BLOCKS_OF_LOG + BLOCKS_OF_FLUSH,
            _ => BLOCKS_OF_LOG,
        };
        match self.free_blocks() > kept {
            true => Ok(()),
            false => Err(self.lack_of_space()),
        }
    }

    /// Frees superblocks until a starting log has room: first `torn` superblocks, then `unlisted`
    /// patches. Where there is room, both stay until the log has begun, because a frame that is
    /// temporarily unreadable may name them. Without room the log cannot begin, and the store
    /// cannot start.
    pub fn make_room_for_log<'a>(
        &self,
        torn: impl Iterator<Item = &'a Superblock>,
        unlisted: &[BlockId],
    ) {
        let lacks_room = || self.free_blocks() < BLOCKS_OF_START;
        torn.take_while(|_| lacks_room()).for_each(|torn| self.release_torn(torn));
        unlisted.iter().take_while(|_| lacks_room()).for_each(|patch| self.delete(*patch));
    }

    /// Releases a superblock that holds no block.
    pub fn release_torn(&self, torn: &Superblock) {
        self.flash().release(torn);
        self.parts.pools.note_change();
    }
}
