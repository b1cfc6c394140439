//! Data that a mount writes again before anything is served: those whose program the power cut may
//! have interrupted, and those of sparse superblocks where few are free. Their frames count from
//! the next root on only, so a mount that is interrupted leaves nothing but superblocks that the
//! next one releases: power cuts in a row use up no space.

use crate::classes::numbers::NO_HINT;
use crate::collector::{self, choose, collect};
use crate::core::Shared;
use crate::error::VolumeError;
use crate::frontier::{self, reserve};
use crate::moving::{self, Moving};
use crate::stream::Stream;
use crate::writer::unit_for;

/// Writes data that were read from these slots again, as clients do: for frames that the next
/// recovery may not find, with their effects on snapshots.
pub(crate) async fn write_again(
    core: &Shared,
    data: Vec<(u32, Vec<u8>)>,
) -> Result<(), VolumeError> {
    let mut left = data.into_iter().peekable();
    while left.peek().is_some() {
        let (unit, stream) = unit_for(core, Stream::Recovery, 2, None).await?;
        let mut frame = Moving::to(core, unit, stream);
        while !frame.is_full()
            && let Some((slot, data)) = left.next()
        {
            frame.add_one(core, slot, Some(&data));
        }
        moving::append(core, frame).await?;
    }
    Ok(())
}

/// The moves of a mount.
pub(crate) struct Moves {
    /// Superblocks that have no data any more: the next root releases them.
    pub emptied: Vec<u32>,
    /// Whether the map names any new slot, also one of a superblock that was moved in part.
    pub are_some: bool,
}

/// Moves the data of the sparsest superblocks of each unit together, until as many are free, with
/// those, as writers need to go on. The moves count from the next root on.
pub(crate) async fn make_room(core: &Shared) -> Moves {
    let mut moves = Moves { emptied: Vec::new(), are_some: false };
    for unit in core.geometry.numbers() {
        let mut policies = collector::policies(core, unit);
        let mut coming = 0;
        let is_short = |coming| {
            let free = core.free_superblocks(unit);
            // Those of the checkpoint of the mount, and one more if one of them fails.
            free > reserve(core, Stream::Recovery) + 1
                && free + coming <= reserve(core, Stream::Host(NO_HINT))
        };
        while is_short(coming) {
            let Some(victim) = choose(core, unit, &mut policies) else { break };
            moves.are_some = true;
            if let Err(error) = collect(core, victim, Stream::Recovery).await {
                tracing::warn!(%error, unit, "a mount leaves a sparse superblock to collection");
                core.map.borrow_mut().blocks.close(victim.block, core.frontiers.closed(unit));
                break;
            }
            moves.emptied.push(victim.block);
            coming += 1;
        }
    }
    moves
}

/// Closes the superblocks of data that were written again: later frames in them would not count.
pub(crate) fn close(core: &Shared) {
    let units = core.geometry.numbers();
    units.for_each(|unit| frontier::close(core, unit, Stream::Recovery));
}
