//! Reserves of free space, for the log and for flushes.

use crate::error::Result;
use crate::lifecycle::Lifecycle;
use crate::pools::Pools;
use crate::tag::{BlockId, BlockKind};
use softflash_base::planted::{self, Bug};
use softflash_ftl::{Hint, Priority, Superblock};
use std::slice;

/// Blocks reserved for the log: its next segment, and the segment that this one announces.
pub const BLOCKS_OF_LOG: u32 = 2;
/// A spare block for the log: an opening that fails takes a superblock out of service.
pub const SPARES_OF_LOG: u32 = 1;
/// Free blocks that a start needs before its log begins: the blocks of the log, and as many spare
/// blocks for program failures.
pub const BLOCKS_OF_START: u32 = 2 * BLOCKS_OF_LOG;
/// Blocks that background work reserves for a concurrent flush.
pub const BLOCKS_OF_FLUSH: u32 = 2;
/// Blocks that background work (compaction, the collector, rebuilds, parity) leaves free.
pub const KEPT_BY_BACKGROUND: u32 = BLOCKS_OF_LOG + SPARES_OF_LOG + BLOCKS_OF_FLUSH;

/// Free blocks that a new block of this kind leaves to the writes that must follow it. A log
/// without a block for its next segment fails, a start without one for its first segment can
/// release nothing, and the inputs of a compaction stay until the flush that the log waits for is
/// done. So only the log takes the last blocks. A flush takes the spare, because it lets the log
/// release segments.
pub fn kept_from(kind: BlockKind, hint: Hint) -> u32 {
    match (kind, hint.priority) {
        // A user of blocks alone has no log.
        (BlockKind::Log { .. } | BlockKind::User, _) => 0,
        _ if planted::bug(Bug::LogRoomTaken) => 0,
        (_, Priority::Background) => KEPT_BY_BACKGROUND,
        _ => BLOCKS_OF_LOG,
    }
}

/// Blocks that a compaction can write.
pub(crate) fn room_of_compaction(pools: &Pools) -> usize {
    pools.free_blocks().saturating_sub(KEPT_BY_BACKGROUND) as usize
}

/// Checks that a new block leaves room for the writes that must follow it.
pub(crate) fn leave_room(pools: &Pools, kind: BlockKind, hint: Hint) -> Result<()> {
    let kept = kept_from(kind, hint);
    if kept > 0 {
        // Superblocks that have gone bad since the last count are not free any more.
        pools.note_change();
    }
    match kept == 0 || pools.free_blocks() > kept {
        true => Ok(()),
        false => Err(pools.main().lack_of_space()),
    }
}

/// Checks that a new block has left the log its blocks.
///
/// # Panics
/// If it has taken one of them. Not where blocks have redundancy: how many fit depends on which
/// units they are on.
pub(crate) fn check_room_of_log(pools: &Pools, kind: BlockKind) {
    let may_take_it = matches!(kind, BlockKind::Log { .. } | BlockKind::User);
    if pools.redundancy().is_some() || may_take_it {
        return;
    }
    let free = pools.free_blocks();
    assert!(free >= BLOCKS_OF_LOG, "a block ({kind:?}) leaves the log {free} free blocks");
}

/// Frees superblocks until a starting log has room: first `torn` superblocks, then these
/// `orphans`.
pub(crate) fn make_room_for_log<'a>(
    pools: &Pools,
    lifecycle: &Lifecycle,
    torn: impl Iterator<Item = &'a Superblock>,
    orphans: &[BlockId],
) {
    let lacks_room = || pools.free_blocks() < BLOCKS_OF_START;
    let torn = torn.take_while(|_| lacks_room());
    torn.for_each(|torn| pools.release(slice::from_ref(torn), false));
    orphans.iter().take_while(|_| lacks_room()).for_each(|orphan| lifecycle.delete(*orphan));
}
