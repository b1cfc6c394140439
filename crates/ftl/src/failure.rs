//! Failed programs and erases: the block is retired, and the superblock takes no more appends.

use crate::ftl::Ftl;
use crate::request::{Op, Work};
use crate::superblock::FtlError;
use crate::unit::{State, Unit};
use softflash_base::Time;
use softflash_device::{DeviceError, Target};

/// Time without erases ahead of need on a unit after one has failed.
const PAUSE_AFTER_FAILURE_NS: u64 = 1_000_000_000;

/// Whether the error means a worn block, not a failed path to the flash.
fn blames_block(error: &DeviceError) -> bool {
    matches!(
        error,
        DeviceError::ProgramFailed | DeviceError::EraseFailed | DeviceError::BadBlock { .. }
    )
}

impl Ftl {
    /// Handles a failed program. Pages appended before can still be read; the owner must write the
    /// rest elsewhere.
    pub(crate) fn program_failed(&mut self, now: Time, op: &Op, error: &DeviceError) {
        if blames_block(error) {
            self.retire(now, op);
        }
        let state = &mut self.units[op.unit];
        state.slot_mut(op.index).failed = true;
        match state.slot(op.index).state {
            State::Open => state.set_state(op.index, State::Live),
            State::Erasing => self.abandon_erase_ahead(now, op.unit, op.index),
            _ => {}
        }
        self.wake_dies(op.unit);
    }

    /// Handles the end of an erase.
    pub(crate) fn erase_ended(&mut self, now: Time, op: &Op, result: Result<(), DeviceError>) {
        let (unit, index, target) = (op.unit, op.index, op.target);
        let first_column = self.column_of(&target);
        if result.is_err() && target.planes > 1 {
            // Erases the blocks one by one, to find the worn one.
            let class = op.class.min(self.units[unit].slot(index).class);
            for plane in 0..u32::from(target.planes) {
                self.units[unit].slot_mut(index).erases_left += u32::from(plane > 0);
                self.queue_erase(now, unit, index, first_column + plane, 1, class);
            }
            return;
        }
        for (column, block) in (first_column..).zip(&target.blocks[..usize::from(target.planes)]) {
            self.units[unit].blocks.erased(column, *block);
        }
        if let Err(error) = &result {
            if blames_block(error) {
                self.retire(now, op);
                if self.replace(now, op, first_column) {
                    return;
                }
            }
            self.units[unit].slot_mut(index).failed = true;
        }
        let slot = self.units[unit].slot_mut(index);
        slot.erases_left -= 1;
        match (slot.erases_left, slot.failed) {
            (0, false) => self.all_blocks_erased(now, unit, index),
            (0, true) => self.erase_failed(now, unit, index, result.err()),
            _ => {}
        }
    }

    /// Replaces a block whose erase failed by a spare, and erases the spare. Returns false if there
    /// is no spare.
    fn replace(&mut self, now: Time, op: &Op, column: u32) -> bool {
        let state = &mut self.units[op.unit];
        let spare = state.blocks.replacement(op.index, column);
        let Some(spare) = spare.filter(|_| !state.slot(op.index).failed) else { return false };
        state.blocks.vacate_lost(op.index);
        state.blocks.assign(op.index, column, spare);
        let class = op.class.min(state.slot(op.index).class);
        self.queue_erase(now, op.unit, op.index, column, 1, class);
        true
    }

    /// Handles a superblock that cannot be erased, with no spare left to replace a block.
    fn erase_failed(&mut self, now: Time, unit: usize, index: u32, error: Option<DeviceError>) {
        let state = &mut self.units[unit];
        match state.slot(index).state {
            State::Erasing => return self.abandon_erase_ahead(now, unit, index),
            State::Open => state.set_state(index, State::Live),
            _ => {}
        }
        let error = error.unwrap_or(DeviceError::EraseFailed);
        let error = FtlError::Device { superblock: self.superblock(unit, index), error };
        self.fail_waiters(now, unit, index, &error);
    }

    /// Releases a superblock whose erase ahead of need failed, once its commands have ended.
    fn abandon_erase_ahead(&mut self, now: Time, unit: usize, index: u32) {
        let state = &mut self.units[unit];
        state.erase_ahead_not_before = now + PAUSE_AFTER_FAILURE_NS;
        state.set_state(index, State::Releasing);
    }

    /// Marks the blocks of a command bad, in the FTL and on the device. Of a multi-plane command,
    /// the blocks that the device has listed as bad are marked; if it has listed none, all of them.
    fn retire(&mut self, now: Time, op: &Op) {
        let first_column = self.column_of(&op.target);
        let recorded = self.queue.bad_blocks(op.target.unit);
        let block_in = |plane: u8| op.target.blocks[usize::from(plane)];
        let listed = |plane: u8| {
            recorded.contains(&(op.target.die, op.target.plane + plane, block_in(plane)))
        };
        let any_listed = (0..op.target.planes).any(listed);
        for plane in (0..op.target.planes).filter(|plane| !any_listed || listed(*plane)) {
            let block = block_in(plane);
            let state = &mut self.units[op.unit];
            state.blocks.mark_bad(first_column + u32::from(plane), block);
            tracing::warn!(
                unit = state.id.0,
                die = op.target.die,
                plane = op.target.plane + plane,
                block,
                "block retired"
            );
            let mut target =
                Target { plane: op.target.plane + plane, planes: 1, page: 0, rows: 1, ..op.target };
            target.blocks[0] = block;
            self.add_urgent(now, Work::MarkBad, op.unit, target);
        }
    }

    fn column_of(&self, target: &Target) -> u32 {
        u32::from(target.die) * self.layout.planes + u32::from(target.plane)
    }

    /// Marks all dies of a unit ready, so that queued commands of a failed superblock are
    /// cancelled.
    fn wake_dies(&mut self, unit: usize) {
        for die in 0..self.layout.dies as u8 {
            self.ready(unit, die);
        }
    }
}

impl Unit {
    /// Puts superblocks back into service if there are now enough spares.
    pub fn return_to_service(&mut self) {
        for index in 0..self.slots.len() as u32 {
            if self.slot(index).state == State::OutOfService && self.blocks.complete(index) {
                self.refresh_wear(index);
                self.set_state(index, State::ErasePending);
            }
        }
    }
}
