//! Erases superblocks, and replaces blocks whose erase fails.

use crate::commands::Commands;
use crate::convert::to_u8;
use crate::failure::{blames_block, retire};
use crate::op::{Next, Op, Work};
use crate::scheduler::{OpKind, QueueClass};
use crate::slots::State;
use crate::unit::Unit;
use softflash_base::Time;
use softflash_device::{DeviceError, Hint, Priority, QueuePair, Target};

/// Begins a new life of a superblock: erases its blocks, all planes of a die at once.
pub(crate) fn start(
    unit: &mut Unit,
    commands: &mut Commands,
    now: Time,
    index: u32,
    class: QueueClass,
) {
    let (dies, planes) = (unit.layout().dies, unit.layout().planes);
    let generation = unit.take_generation();
    unit.slot_mut(index).begin_life(index, generation, dies);
    for die in 0..dies {
        add(unit, commands, now, index, die * planes, to_u8(planes), class);
    }
}

/// Queues the erase of the blocks that no superblock has: they may hold headers and data of one
/// that is out of service, because another one of its blocks is bad.
pub(crate) fn start_idle(unit: &mut Unit, commands: &mut Commands, now: Time) {
    let class = QueueClass::new(OpKind::Erase, Priority::Background);
    for (column, block) in unit.blocks.without_superblock() {
        let mut run = unit.layout().run(column, 1);
        (run.planes, run.page, run.rows) = (1, 0, 1);
        let mut target = unit.target(block, run);
        target.blocks[0] = block;
        unit.idle_under_erase += 1;
        queue(unit, commands, now, Work::EraseIdle, block, target, class);
    }
}

/// Handles the end of the erase of a block that no superblock has.
pub(crate) fn idle_ended(
    unit: &mut Unit,
    commands: &mut Commands,
    device: &dyn QueuePair,
    now: Time,
    op: &Op,
    result: Result<(), DeviceError>,
) {
    let column = unit.layout().column_of_block(op.target.die, op.target.plane);
    unit.blocks.erased(column, op.target.blocks[0]);
    unit.idle_under_erase -= 1;
    match result {
        Err(error) if blames_block(&error) => retire(unit, commands, device, now, op),
        Err(error) => unit.note_erase_failure(op.index, error),
        Ok(()) => {}
    }
}

/// Queues the erase of the blocks in `planes` neighbouring stripe columns of one die.
fn add(
    unit: &mut Unit,
    commands: &mut Commands,
    now: Time,
    index: u32,
    column: u32,
    planes: u8,
    class: QueueClass,
) {
    let mut run = unit.layout().run(column, 1);
    (run.planes, run.page, run.rows) = (planes, 0, 1);
    let target = unit.target(index, run);
    queue(unit, commands, now, Work::Erase, index, target, class);
}

fn queue(
    unit: &mut Unit,
    commands: &mut Commands,
    now: Time,
    work: Work,
    index: u32,
    target: Target,
    class: QueueClass,
) {
    let erase = Op {
        work,
        unit: unit.place(),
        index,
        target,
        data: None,
        durable: false,
        class,
        hint: Hint::HEADER.at(class.priority()),
        since: now,
    };
    commands.add(unit, erase);
}

/// Handles the end of an erase.
pub(crate) fn ended(
    unit: &mut Unit,
    commands: &mut Commands,
    device: &dyn QueuePair,
    now: Time,
    op: &Op,
    result: Result<(), DeviceError>,
) -> Next {
    let (index, target) = (op.index, op.target);
    let first_column = unit.layout().column_of_block(target.die, target.plane);
    if result.is_err() && target.planes > 1 {
        // Erases the blocks one by one, to find the worn one.
        let class = op.class.min(unit.slot(index).class());
        unit.slot_mut(index).add_erases(u32::from(target.planes) - 1);
        for plane in 0..u32::from(target.planes) {
            add(unit, commands, now, index, first_column + plane, 1, class);
        }
        return Next::Nothing;
    }
    for (column, block) in (first_column..).zip(&target.blocks[..usize::from(target.planes)]) {
        unit.blocks.erased(column, *block);
    }
    if let Err(error) = &result {
        if blames_block(error) {
            retire(unit, commands, device, now, op);
            if replace(unit, commands, now, op, first_column) {
                return Next::Nothing;
            }
        } else {
            unit.note_erase_failure(index, error.clone());
        }
        unit.slot_mut(index).fail();
    }
    let last = unit.slot_mut(index).erase_ended();
    match (last, unit.slot(index).has_failed()) {
        (true, false) => Next::WriteEraseHeader,
        (true, true) => failed(unit, now, index, result.err()),
        _ => Next::Nothing,
    }
}

/// Replaces a block whose erase failed by a spare, and erases the spare. Returns false if there is
/// no spare.
fn replace(unit: &mut Unit, commands: &mut Commands, now: Time, op: &Op, column: u32) -> bool {
    let spare = unit.blocks.replacement(op.index, column);
    let Some(spare) = spare.filter(|_| !unit.slot(op.index).has_failed()) else { return false };
    unit.blocks.vacate_lost(op.index);
    unit.blocks.assign(op.index, column, spare);
    let class = op.class.min(unit.slot(op.index).class());
    add(unit, commands, now, op.index, column, 1, class);
    true
}

/// Handles a superblock that cannot be erased, with no spare left to replace a block.
fn failed(unit: &mut Unit, now: Time, index: u32, error: Option<DeviceError>) -> Next {
    match unit.slot(index).state() {
        State::Erasing => {
            unit.abandon_erase_ahead(now, index);
            return Next::Nothing;
        }
        State::Open => unit.set_state(index, State::Live),
        _ => {}
    }
    Next::EraseFailed(error.unwrap_or(DeviceError::EraseFailed))
}
