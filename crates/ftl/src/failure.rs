//! Failed programs: the block is retired, and the superblock takes no more appends.

use crate::commands::Commands;
use crate::op::Op;
use crate::slots::State;
use crate::unit::Unit;
use softflash_base::Time;
use softflash_device::{DeviceError, QueuePair, Target};

/// Whether the error means a worn block, not a failed path to the flash.
pub(crate) fn blames_block(error: &DeviceError) -> bool {
    matches!(
        error,
        DeviceError::ProgramFailed | DeviceError::EraseFailed | DeviceError::BadBlock { .. }
    )
}

/// Handles a failed program. Pages appended before can still be read; the owner must write the rest
/// elsewhere.
pub(crate) fn program_failed(
    unit: &mut Unit,
    commands: &mut Commands,
    device: &dyn QueuePair,
    now: Time,
    op: &Op,
    error: &DeviceError,
) {
    if blames_block(error) {
        retire(unit, commands, device, now, op);
    }
    unit.slot_mut(op.index).fail();
    match unit.slot(op.index).state() {
        State::Open => unit.set_state(op.index, State::Live),
        State::Erasing => {
            if !blames_block(error) {
                unit.note_erase_failure(op.index, error.clone());
            }
            unit.abandon_erase_ahead(now, op.index);
        }
        _ => {}
    }
    commands.wake_dies(unit);
}

/// Marks the blocks of a command bad, in the FTL and on the device. Of a multi-plane command, the
/// blocks that the device has listed as bad are marked; if it has listed none, all of them.
pub(crate) fn retire(
    unit: &mut Unit,
    commands: &mut Commands,
    device: &dyn QueuePair,
    now: Time,
    op: &Op,
) {
    let first_column = unit.layout().column_of_block(op.target.die, op.target.plane);
    let recorded = device.bad_blocks(op.target.unit);
    let block_in = |plane: u8| op.target.blocks[usize::from(plane)];
    let listed =
        |plane: u8| recorded.contains(&(op.target.die, op.target.plane + plane, block_in(plane)));
    let any_listed = (0..op.target.planes).any(listed);
    for plane in (0..op.target.planes).filter(|plane| !any_listed || listed(*plane)) {
        let block = block_in(plane);
        unit.blocks.mark_bad(first_column + u32::from(plane), block);
        tracing::warn!(
            unit = unit.id().0,
            die = op.target.die,
            plane = op.target.plane + plane,
            block,
            "block retired"
        );
        let mut target =
            Target { plane: op.target.plane + plane, planes: 1, page: 0, rows: 1, ..op.target };
        target.blocks[0] = block;
        commands.queue_mark_bad(now, op.unit, target);
    }
}
