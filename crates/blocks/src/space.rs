//! Reserves of free space, for the log and for flushes.

use crate::error::Result;
use crate::lifecycle::Lifecycle;
use crate::pools::Pools;
use crate::tag::BlockId;
use softflash_ftl::{Hint, Priority, Superblock};
use std::slice;

/// Blocks reserved for the log: the first segment of a start, and the segment that it announces.
pub const BLOCKS_OF_LOG: u32 = 2;
/// Free blocks that a start needs before its log begins: the blocks of the log, and as many spare
/// blocks for program failures.
pub const BLOCKS_OF_START: u32 = 2 * BLOCKS_OF_LOG;
/// Blocks that compaction reserves for a concurrent flush.
pub const BLOCKS_OF_FLUSH: u32 = 2;

/// Blocks that a compaction can write.
pub(crate) fn room_of_compaction(pools: &Pools) -> usize {
    pools.free_blocks().saturating_sub(BLOCKS_OF_LOG + BLOCKS_OF_FLUSH) as usize
}

/// Checks that a patch leaves room for the writes that must follow it: a log without a block for
/// its next segment fails, a start without one for its first segment can release nothing, and the
/// inputs of a compaction stay until the flush that the log waits for is done.
pub(crate) fn leave_room(pools: &Pools, hint: Hint) -> Result<()> {
    let kept = match hint.priority {
        Priority::Background => BLOCKS_OF_LOG + BLOCKS_OF_FLUSH,
        _ => BLOCKS_OF_LOG,
    };
    match pools.free_blocks() > kept {
        true => Ok(()),
        false => Err(pools.main().lack_of_space()),
    }
}

/// Frees superblocks until a starting log has room: first `torn` superblocks, then `unlisted`
/// patches.
pub(crate) fn make_room_for_log<'a>(
    pools: &Pools,
    lifecycle: &Lifecycle,
    torn: impl Iterator<Item = &'a Superblock>,
    unlisted: &[BlockId],
) {
    let lacks_room = || pools.free_blocks() < BLOCKS_OF_START;
    let torn = torn.take_while(|_| lacks_room());
    torn.for_each(|torn| pools.release(slice::from_ref(torn), false));
    unlisted.iter().take_while(|_| lacks_room()).for_each(|patch| lifecycle.delete(*patch));
}
