//! The release of superblocks whose data have moved: after a flush, which one task makes for those
//! of all units while collection goes on, and after the next root if recovery still needs them.

use crate::classes::numbers::NO_HINT;
use crate::core::{Core, Shared};
use crate::error::VolumeError;
use crate::flusher::flush;
use crate::frontier;
use crate::stream::Stream;
use softflash_base::planted::{self, Bug};

/// Releases collected superblocks until the domain is stopped.
pub(crate) async fn run(core: Shared) {
    while !core.tasks.is_stopped() {
        core.retiring.asked().await;
        core.order.works().await;
        if let Err(error) = release_collected(&core).await {
            tracing::warn!(%error, "superblocks are not released: their copies are not durable");
        }
    }
}

/// Releases the superblocks whose data have moved: after a flush, so that the copies are durable.
/// Those that recovery still needs wait for the next root.
pub(crate) async fn release_collected(core: &Shared) -> Result<(), VolumeError> {
    let moved = core.retiring.moved();
    if !moved.is_empty() && !planted::bug(Bug::MovesNotFlushed) {
        let flushed = flush(core).await;
        core.retiring.note_flush(flushed.is_err());
        if flushed.is_err() {
            // Writers that wait for these superblocks may have to be refused.
            core.space.notify();
        }
        flushed?;
    }
    core.retiring.mark_durable(&moved);
    release_unneeded(core);
    ask_if_short(core);
    // Also if none was free: a checkpoint does not wait for those that only a root releases.
    core.space.notify();
    Ok(())
}

/// Asks for a checkpoint if superblocks of a unit wait for the next root in which clients may open
/// none, or only one more.
pub(crate) fn ask_if_short(core: &Core) {
    let mut units = core.geometry.numbers();
    let reserve = frontier::reserve(core, Stream::Host(NO_HINT));
    let is_short = |unit| {
        let free = core.free_superblocks(unit);
        let waiting = core.retiring.awaiting_root_in(&core.geometry, unit);
        free <= reserve + 1 && waiting > 0
    };
    if units.any(is_short) {
        core.tasks.ask_for_checkpoint();
    }
}

/// Releases the collected superblocks that recovery from the durable root does not need. All copies
/// of their data must be durable.
pub(crate) fn release_unneeded(core: &Core) {
    let root = core.roots.sequence();
    let free = core.retiring.take_unneeded(|block| !core.superblocks.is_unpinned(block, root));
    for block in free {
        release(core, block);
    }
}

/// Releases a superblock without data.
pub(crate) fn release(core: &Core, block: u32) {
    let valid = core.map.borrow().blocks.valid_in(block);
    assert!(valid == 0, "block {block} is released with {valid} valid slots");
    if let Some(superblock) = core.superblocks.take(block) {
        assert!(!core.frontiers.is_open(&superblock), "{superblock} is released and takes frames");
        core.flash.release(&superblock);
        core.count(|counters| counters.released += 1);
    }
    core.space.notify();
}
