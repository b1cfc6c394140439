//! How commands move on: sense, load, program, erase, transfer, suspend and resume.
//!
//! A die's event is the end of what its cell array does; a channel's event is the end of a transfer.
//! Both end in [`Core::dispatch`], which starts whatever can start on the die.

use super::{Array, Core};
use crate::channel::{Direction, Transfer};
use crate::command::{CommandKind, Finished};
use crate::die::{CellArray, Die, NONE, SUSPENDER, Stage};
use crate::timing::SuspendTiming;
use softflash_base::Time;

impl Array {
    /// Plays all events up to and including `until`, and appends the commands that ended, in the order
    /// of their ends. With [`Time::MAX`] it plays until all dies are idle; else the array's time is
    /// `until` afterwards.
    #[inline]
    pub fn advance(&mut self, until: Time, finished: &mut Vec<Finished>) {
        let core = &mut self.core;
        while let Some((at, slot)) = core.events.first() {
            if at > until.0 {
                break;
            }
            assert!(at >= core.now, "time ran back from {} to {at}", core.now);
            core.now = at;
            core.counters.events += 1;
            if slot < core.first_channel_event {
                core.die_event(&mut self.dies[slot], finished);
            } else {
                let channel = slot - core.first_channel_event;
                let bus = &core.channels[channel];
                let Some(transfer) = bus.carrying() else {
                    unreachable!("an event of an idle bus")
                };
                let die = bus.first_die as usize + usize::from(transfer.place);
                core.channel_event(channel, transfer, &mut self.dies[die], finished);
            }
        }
        if until != Time::MAX {
            core.now = core.now.max(until.0);
        }
    }
}

impl Core {
    /// The cell array of a die has come to the end of something.
    #[inline]
    fn die_event(&mut self, die: &mut Die, finished: &mut Vec<Finished>) {
        match die.array {
            CellArray::Working => self.work_done(die, finished),
            CellArray::Suspending => suspended(die),
            CellArray::Resuming => self.resumed(die),
            CellArray::Idle | CellArray::Holding => unreachable!("an event of an idle array"),
        }
        self.dispatch(die);
        if matches!(die.array, CellArray::Idle | CellArray::Holding) {
            self.events.clear(die.index.index());
        }
    }

    #[inline]
    fn work_done(&mut self, die: &mut Die, finished: &mut Vec<Finished>) {
        let slot = die.array_slot;
        die.array = CellArray::Idle;
        match die.slot(slot).kind {
            CommandKind::Read => self.sensed(die, slot),
            CommandKind::Program => {
                self.program_done(die, slot);
                self.finish(die, slot, finished);
            }
            CommandKind::Erase => {
                self.erase_done(die, slot);
                self.finish(die, slot, finished);
            }
        }
    }

    /// A sense has ended: the pages are good for transfer, or must be sensed again.
    #[inline]
    fn sensed(&mut self, die: &mut Die, slot: u8) {
        if die.slot(slot).stage == Stage::InArray {
            let retries = self.look(die, slot);
            if retries > 0 {
                let retry_ns = self.timing.retry_ns[self.level(die, slot)];
                self.start_work(die, slot, u64::from(retries) * retry_ns);
                die.slot_mut(slot).stage = Stage::Retrying;
                return;
            }
        }
        if die.output != NONE {
            die.slot_mut(slot).stage = Stage::Sensed;
            die.array = CellArray::Holding;
        } else {
            if !self.timing.cache_read {
                die.array = CellArray::Holding;
            }
            self.unload(die, slot);
        }
    }

    /// A transfer has ended.
    #[inline]
    fn channel_event(
        &mut self,
        channel: usize,
        transfer: Transfer,
        die: &mut Die,
        finished: &mut Vec<Finished>,
    ) {
        match transfer.direction {
            Direction::Out => {
                let slot = std::mem::replace(&mut die.output, NONE);
                self.finish(die, slot, finished);
                self.free_page_register(die, slot);
            }
            Direction::In => {
                let slot = std::mem::replace(&mut die.input, NONE);
                die.slot_mut(slot).stage = Stage::Loaded;
            }
        }
        self.dispatch(die);
        if !self.grant(channel) {
            self.events.clear(self.first_channel_event + channel);
        }
    }

    /// The data of `slot` have left the die; a page that waited for that moves on.
    #[inline]
    fn free_page_register(&mut self, die: &mut Die, slot: u8) {
        if die.array == CellArray::Holding {
            die.array = CellArray::Idle;
            if die.array_slot != slot {
                self.unload(die, die.array_slot);
            }
        }
    }

    #[inline]
    fn finish(&mut self, die: &mut Die, slot: u8, finished: &mut Vec<Finished>) {
        let done = die.slot(slot);
        finished.push(Finished {
            tag: done.tag,
            at: Time(self.now),
            submitted_at: Time(done.submitted_at),
            die: die.index,
            kind: done.kind,
            planes: done.planes,
            retries: done.retries,
            slot,
            status: done.status,
        });
        die.release(slot);
        self.counters.finished += 1;
    }

    /// Starts what can start on a die.
    #[inline]
    pub(super) fn dispatch(&mut self, die: &mut Die) {
        match die.array {
            CellArray::Idle => self.start_array(die),
            CellArray::Working => self.consider_suspending(die),
            _ => {}
        }
        self.start_load(die);
    }

    /// Gives the idle cell array its next work: a read that was let past first, then what it
    /// interrupted, then the queue in order.
    #[inline]
    fn start_array(&mut self, die: &mut Die) {
        if die.slot(SUSPENDER).stage == Stage::Queued {
            return self.start_sense(die, SUSPENDER);
        }
        if die.parked != NONE {
            return self.resume(die);
        }
        let Some(front) = die.front() else { return };
        match (die.slot(front).kind, die.slot(front).stage) {
            (CommandKind::Read, Stage::Queued) => self.start_sense(die, front),
            (CommandKind::Program, Stage::Loaded) => self.start_program(die, front),
            (CommandKind::Erase, Stage::Queued) => {
                self.start_work(die, front, self.timing.erase_ns);
            }
            // Only a cache read leaves the array idle while its data go out.
            (CommandKind::Read, Stage::Unloading) => {
                if let Some(next) = die.second()
                    && die.slot(next).kind == CommandKind::Read
                    && die.slot(next).stage == Stage::Queued
                {
                    self.start_sense(die, next);
                }
            }
            _ => {}
        }
    }

    /// Asks for the bus for the next program's data, once a register is free for them.
    #[inline]
    fn start_load(&mut self, die: &mut Die) {
        let Some(front) = die.front() else { return };
        if die.slot(front).kind != CommandKind::Program || die.input != NONE {
            return;
        }
        match die.slot(front).stage {
            Stage::Queued => self.load(die, front),
            Stage::InArray if self.timing.cache_program => {
                if let Some(next) = die.second()
                    && die.slot(next).kind == CommandKind::Program
                    && die.slot(next).stage == Stage::Queued
                {
                    self.load(die, next);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn load(&mut self, die: &mut Die, slot: u8) {
        die.slot_mut(slot).stage = Stage::Loading;
        die.input = slot;
        self.request_bus(die, Direction::In, die.slot(slot).planes);
    }

    #[inline]
    fn unload(&mut self, die: &mut Die, slot: u8) {
        die.slot_mut(slot).stage = Stage::Unloading;
        die.output = slot;
        self.request_bus(die, Direction::Out, die.slot(slot).planes);
    }

    #[inline]
    fn request_bus(&mut self, die: &Die, direction: Direction, planes: u8) {
        let channel = usize::from(die.channel);
        let bus = &mut self.channels[channel];
        bus.request(die.place, direction, planes);
        if bus.carrying().is_none() {
            self.grant(channel);
        }
    }

    /// Begins the next transfer on a bus that has none, or whose transfer has ended; says whether
    /// there is one.
    #[inline]
    fn grant(&mut self, channel: usize) -> bool {
        let bus = &mut self.channels[channel];
        let Some(transfer) = bus.grant(self.timing.reads_ahead) else { return false };
        let transfer_ns = self.timing.transfer_ns(transfer.planes);
        bus.busy_ns += transfer_ns;
        self.events.set(self.first_channel_event + channel, self.now + transfer_ns, self.now);
        true
    }

    #[inline]
    fn start_sense(&mut self, die: &mut Die, slot: u8) {
        let level = self.level(die, slot);
        self.start_work(die, slot, self.timing.read_ns[level]);
    }

    #[inline]
    fn start_program(&mut self, die: &mut Die, slot: u8) {
        let level = self.level(die, slot);
        self.start_work(die, slot, self.timing.program_ns[level]);
    }

    #[inline]
    fn start_work(&mut self, die: &mut Die, slot: u8, work_ns: u64) {
        die.slot_mut(slot).stage = Stage::InArray;
        die.array = CellArray::Working;
        die.array_slot = slot;
        die.work_ends = self.now + work_ns;
        die.busy_ns += work_ns;
        if slot != SUSPENDER {
            die.work_ns = work_ns;
            die.suspends = 0;
        }
        self.events.set(die.index.index(), die.work_ends, self.now);
    }

    /// The level of a command's pages in their cells.
    #[inline]
    fn level(&self, die: &Die, slot: u8) -> usize {
        usize::from(self.pages.page(die.slot(slot).page).level)
    }

    /// Interrupts the program or erase in the array if a read waits for it and may do so.
    #[inline]
    fn consider_suspending(&mut self, die: &mut Die) {
        if die.slot(SUSPENDER).stage != Stage::Queued {
            return;
        }
        let rules = match die.slot(die.array_slot).kind {
            CommandKind::Read => None,
            CommandKind::Program => self.timing.program_suspend,
            CommandKind::Erase => self.timing.erase_suspend,
        };
        let Some(SuspendTiming { suspend_ns, at_most, .. }) = rules else { return };
        let left_ns = die.work_ends - self.now;
        let worth_it = left_ns > suspend_ns && die.suspends < at_most;
        if !worth_it || die.suspender_conflicts(die.array_slot) {
            return;
        }
        die.suspends += 1;
        die.parked_left_ns = left_ns;
        die.array = CellArray::Suspending;
        self.counters.suspensions += 1;
        self.events.set(die.index.index(), self.now + suspend_ns, self.now);
    }

    fn resume(&mut self, die: &mut Die) {
        let slot = std::mem::replace(&mut die.parked, NONE);
        let rules = match die.slot(slot).kind {
            CommandKind::Erase => self.timing.erase_suspend,
            _ => self.timing.program_suspend,
        };
        die.array = CellArray::Resuming;
        die.array_slot = slot;
        self.events.set(
            die.index.index(),
            self.now + rules.map_or(0, |rules| rules.resume_ns),
            self.now,
        );
    }

    fn resumed(&mut self, die: &mut Die) {
        die.array = CellArray::Working;
        die.work_ends = self.now + die.parked_left_ns;
        self.events.set(die.index.index(), die.work_ends, self.now);
    }
}

fn suspended(die: &mut Die) {
    die.parked = die.array_slot;
    die.array = CellArray::Idle;
}
