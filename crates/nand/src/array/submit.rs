//! The submission of commands: every rule of the flash is checked here, before any state changes.

use super::die::Slot;
use super::{Array, Core};
use crate::address::{BlockIndex, DieIndex};
use crate::block::{Health, NEEDS_ERASE};
use crate::command::{CommandKind, DieCommand, PageStatus, Refused, RuleBroken};
use crate::geometry::MAX_PLANES;
use softflash_base::Time;

impl Array {
    /// Accepts a command at `now`, or refuses it. `data` holds the pages of a program, in the order
    /// of its planes; it may be empty if the array stores no data.
    ///
    /// A die accepts one command, or two with a cache register, and executes them in order. If the
    /// die can suspend, it also accepts one read behind a program or erase. `now` must lie between
    /// the array's time and its next event: call [`advance`](Array::advance) first.
    #[inline]
    pub fn submit(&mut self, now: Time, command: &DieCommand, data: &[u8]) -> Result<(), Refused> {
        self.check_time(now)?;
        let Some(die) = self.dies.get_mut(command.die.index()) else {
            let dies = self.core.geometry.dies();
            return Err(RuleBroken::NoSuchDie { die: command.die, dies }.into());
        };
        let core = &mut self.core;
        let first_plane = core.check_address(command)?;
        core.check_blocks(command, first_plane).or_else(|rule| core.excuse(command.die, rule))?;
        if command.kind == CommandKind::Program {
            core.check_data(command, data)?;
        }
        let (depth, suspends) = (core.timing.die_queue_depth, core.timing.suspends);
        let slot = die.room(command.kind, depth, suspends).ok_or(Refused::Busy)?;

        core.now = now.0;
        core.counters.submitted += 1;
        if command.kind == CommandKind::Program && core.store.is_some() {
            let register = &mut core.registers[die.register(slot)];
            register.clear();
            register.extend_from_slice(data);
        }
        core.fill_slot(die.slot_mut(slot), command, first_plane);
        die.enqueue(slot, command.kind);
        core.dispatch(die, &mut self.channels[usize::from(die.channel)]);
        Ok(())
    }

    /// Whether a die would accept a command of this kind now.
    pub fn has_room(&self, die: DieIndex, kind: CommandKind) -> bool {
        let (depth, suspends) = (self.core.timing.die_queue_depth, self.core.timing.suspends);
        self.dies.get(die.index()).is_some_and(|die| die.room(kind, depth, suspends).is_some())
    }

    /// Whether the timeline accepts this kind of work in the same state: the die would begin the
    /// command now, or it is a read that passes a program or an erase.
    #[cfg(test)]
    pub(crate) fn would_begin(&self, die: DieIndex, kind: CommandKind) -> bool {
        use crate::array::die::{SUSPENDER, Stage};
        let timing = &self.core.timing;
        let die = &self.dies[die.index()];
        let room = die.room(kind, timing.die_queue_depth, timing.suspends);
        let front = die.stage(die.front());
        let alone = die.stage(die.second()) == Stage::Free;
        match kind {
            _ if die.load() == 0 => true,
            CommandKind::Read if room == Some(SUSPENDER) => true,
            CommandKind::Read => {
                let unloads = [front, die.stage(SUSPENDER)].contains(&Stage::Unloading);
                timing.cache_read && die.load() == 1 && unloads
            }
            CommandKind::Program => timing.cache_program && front == Stage::Programming && alone,
            CommandKind::Erase => false,
        }
    }

    #[inline]
    fn check_time(&self, now: Time) -> Result<(), RuleBroken> {
        let earliest = self.now();
        if now == earliest {
            return Ok(());
        }
        let latest = self.next_event_at().unwrap_or(Time::MAX);
        if now < earliest || now > latest {
            return Err(RuleBroken::WrongTime { now, earliest, latest });
        }
        Ok(())
    }
}

impl Core {
    /// Writes the command into its slot, field by field in place, and updates the reserved write
    /// pointers, against which later commands are checked.
    #[inline]
    fn fill_slot(&mut self, slot: &mut Slot, command: &DieCommand, first_plane: u32) {
        slot.tag = command.tag;
        slot.submitted_at = self.now;
        slot.status = [PageStatus::Good; MAX_PLANES];
        slot.page = command.page;
        slot.kind = command.kind;
        slot.planes = command.planes;
        slot.retries = 0;
        slot.head = command.head && command.kind == CommandKind::Read && command.planes == 1;
        for plane in 0..usize::from(command.planes) {
            let block = self.flat_block(command, first_plane, plane);
            slot.blocks[plane] = block.0;
            match command.kind {
                CommandKind::Read => self.blocks.prefetch(block),
                CommandKind::Program => {
                    self.blocks.get_mut(block).reserved = command.page as u16 + 1;
                }
                CommandKind::Erase => self.blocks.get_mut(block).reserved = 0,
            }
        }
    }

    /// Checks that the command's pages exist; returns the flat index of its first plane's first
    /// block.
    #[inline]
    fn check_address(&self, command: &DieCommand) -> Result<u32, RuleBroken> {
        let &DieCommand { die, plane, planes, page, .. } = command;
        let geometry = &self.geometry;
        let limit = geometry.planes_per_die;
        if planes == 0 || plane >= limit || planes > limit - plane {
            return Err(RuleBroken::NoSuchPlanes { plane, planes, limit });
        }
        if command.kind != CommandKind::Erase && page >= geometry.pages_per_block {
            return Err(RuleBroken::NoSuchPage { page, limit: geometry.pages_per_block });
        }
        let limit = geometry.blocks_per_plane;
        for &block in &command.blocks[..usize::from(planes)] {
            if block >= limit {
                return Err(RuleBroken::NoSuchBlock { block, limit });
            }
        }
        Ok((die.0 * u32::from(geometry.planes_per_die) + u32::from(plane)) * limit)
    }

    /// Checks the command against the states of its blocks. Every block may be read.
    #[inline]
    fn check_blocks(&self, command: &DieCommand, first_plane: u32) -> Result<(), RuleBroken> {
        if command.kind == CommandKind::Read {
            return Ok(());
        }
        for plane in 0..usize::from(command.planes) {
            let state = self.blocks.get(self.flat_block(command, first_plane, plane));
            let block = command.blocks[plane];
            if state.health != Health::Good {
                return Err(RuleBroken::BadBlock { block });
            }
            let in_order = u32::from(state.reserved) == command.page;
            if command.kind == CommandKind::Program && !in_order {
                return Err(misplaced(block, command.page, state.reserved));
            }
        }
        Ok(())
    }

    /// Excuses a broken rule on a dead die: its programs and erases have no effect, so the recorded
    /// states of its blocks prove nothing.
    #[cold]
    fn excuse(&self, die: DieIndex, rule: RuleBroken) -> Result<(), RuleBroken> {
        if self.is_dead(die) { Ok(()) } else { Err(rule) }
    }

    /// The flat index of the block in one of the command's planes.
    #[inline]
    fn flat_block(&self, command: &DieCommand, first_plane: u32, plane: usize) -> BlockIndex {
        let plane_start = first_plane + plane as u32 * self.geometry.blocks_per_plane;
        BlockIndex(plane_start + command.blocks[plane])
    }

    fn check_data(&self, command: &DieCommand, data: &[u8]) -> Result<(), RuleBroken> {
        let needed = usize::from(command.planes) * self.page_bytes();
        let none_kept = self.store.is_none() && data.is_empty();
        if data.len() != needed && !none_kept {
            return Err(RuleBroken::DataLength { given: data.len(), needed });
        }
        Ok(())
    }
}

/// The rule that a program of this page breaks.
#[cold]
fn misplaced(block: u32, page: u32, reserved: u16) -> RuleBroken {
    let next = u32::from(reserved);
    if reserved == NEEDS_ERASE {
        RuleBroken::PartlyErased { block }
    } else if page < next {
        RuleBroken::ProgramWithoutErase { block, page }
    } else {
        RuleBroken::OutOfOrder { block, page, next }
    }
}
