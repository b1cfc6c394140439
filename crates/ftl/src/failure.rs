//! Failed programs and erases: the block is retired, the superblock takes no more appends.

use crate::ftl::Ftl;
use crate::request::{Op, Work};
use crate::superblock::FtlError;
use crate::unit::{State, Unit};
use softflash_base::Time;
use softflash_device::{DeviceError, Target};

/// How long a unit is left alone after an erase ahead of need has failed.
const PAUSE_AFTER_FAILURE_NS: u64 = 1_000_000_000;

/// Whether the error says that the flash itself is worn, rather than that the way to it is disturbed.
fn blames_block(error: &DeviceError) -> bool {
    matches!(
        error,
        DeviceError::ProgramFailed | DeviceError::EraseFailed | DeviceError::BadBlock { .. }
    )
}

impl Ftl {
    /// A program failed. What was appended before can still be read; the rest is for its owner to write
    /// elsewhere.
    pub(crate) fn program_failed(&mut self, now: Time, op: &Op, error: &DeviceError) {
        if blames_block(error) {
            self.retire(now, op);
        }
        let state = &mut self.units[op.unit];
        state.slot_mut(op.index).failed = true;
        match state.slot(op.index).state {
            State::Open => state.set_state(op.index, State::Live),
            State::Preparing => self.give_up_preparation(now, op.unit, op.index),
            _ => {}
        }
        self.wake_dies(op.unit);
    }

    /// An erase ended, well or not.
    pub(crate) fn erase_ended(&mut self, now: Time, op: &Op, result: Result<(), DeviceError>) {
        let (unit, index, target) = (op.unit, op.index, op.target);
        let first_seat = self.seat_of(&target);
        if result.is_err() && target.planes > 1 {
            // One by one, to learn which of the blocks is worn.
            let lane = op.lane.min(self.units[unit].slot(index).lane);
            for plane in 0..u32::from(target.planes) {
                self.units[unit].slot_mut(index).erases_left += u32::from(plane > 0);
                self.queue_erase(now, unit, index, first_seat + plane, 1, lane);
            }
            return;
        }
        for (seat, block) in (first_seat..).zip(&target.blocks[..usize::from(target.planes)]) {
            self.units[unit].blocks.erased(seat, *block);
        }
        if let Err(error) = &result {
            if blames_block(error) {
                self.retire(now, op);
                if self.replace(now, op, first_seat) {
                    return;
                }
            }
            self.units[unit].slot_mut(index).failed = true;
        }
        let slot = self.units[unit].slot_mut(index);
        slot.erases_left -= 1;
        match (slot.erases_left, slot.failed) {
            (0, false) => self.erased(now, unit, index),
            (0, true) => self.erase_failed(now, unit, index, result.err()),
            _ => {}
        }
    }

    /// Puts a spare in the place of a block whose erase failed, and erases that.
    fn replace(&mut self, now: Time, op: &Op, seat: u32) -> bool {
        let state = &mut self.units[op.unit];
        let spare = state.blocks.stand_in(op.index, seat);
        let Some(spare) = spare.filter(|_| !state.slot(op.index).failed) else { return false };
        state.blocks.vacate_lost(op.index);
        state.blocks.assign(op.index, seat, spare);
        let lane = op.lane.min(state.slot(op.index).lane);
        self.queue_erase(now, op.unit, op.index, seat, 1, lane);
        true
    }

    /// A superblock could not be erased and nothing stands in.
    fn erase_failed(&mut self, now: Time, unit: usize, index: u32, error: Option<DeviceError>) {
        let state = &mut self.units[unit];
        match state.slot(index).state {
            State::Preparing => return self.give_up_preparation(now, unit, index),
            State::Open => state.set_state(index, State::Live),
            _ => {}
        }
        let error = error.unwrap_or(DeviceError::EraseFailed);
        let error = FtlError::Device { superblock: self.superblock(unit, index), error };
        self.fail_waiters(now, unit, index, &error);
    }

    /// Takes back a superblock that could not be prepared, once its commands have ended.
    fn give_up_preparation(&mut self, now: Time, unit: usize, index: u32) {
        let state = &mut self.units[unit];
        state.prepare_not_before = now + PAUSE_AFTER_FAILURE_NS;
        state.set_state(index, State::Releasing);
    }

    /// Marks the blocks of a command bad, here and on the device. Of a multi-plane command those are bad
    /// that the device has listed by now; where it says nothing, all of them.
    fn retire(&mut self, now: Time, op: &Op) {
        let first_seat = self.seat_of(&op.target);
        let recorded = self.queue.bad_blocks(op.target.unit);
        let block_in = |plane: u8| op.target.blocks[usize::from(plane)];
        let listed = |plane: u8| {
            recorded.contains(&(op.target.die, op.target.plane + plane, block_in(plane)))
        };
        let any_listed = (0..op.target.planes).any(listed);
        for plane in (0..op.target.planes).filter(|plane| !any_listed || listed(*plane)) {
            let block = block_in(plane);
            let state = &mut self.units[op.unit];
            state.blocks.mark_bad(first_seat + u32::from(plane), block);
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

    fn seat_of(&self, target: &Target) -> u32 {
        u32::from(target.die) * self.layout.planes + u32::from(target.plane)
    }

    /// Lets every die of a unit look at its queue: what belongs to a failed superblock can go.
    fn wake_dies(&mut self, unit: usize) {
        for die in 0..self.layout.dies as u8 {
            self.ready(unit, die);
        }
    }
}

impl Unit {
    /// Brings superblocks back into service for which there are spares now.
    pub fn revive(&mut self) {
        for index in 0..self.slots.len() as u32 {
            if self.slot(index).state == State::OutOfService && self.blocks.complete(index) {
                self.refresh_wear(index);
                self.set_state(index, State::Reclaimable);
            }
        }
    }
}
