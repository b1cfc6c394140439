//! The progress of commands: sense, load, program, erase, transfer, suspend and resume.
//!
//! A die's event is the end of its cell array's operation; a channel's event is the end of a
//! transfer. If only one next step is possible, the event starts it directly; otherwise
//! [`Core::dispatch`] starts the operations that are possible on the die.

use super::die::{CellArray, Die, NONE, SUSPENDER, Stage};
use super::{Array, Core};
use crate::activity::Activity;
use crate::address::DieIndex;
use crate::channel::{Channel, Direction};
use crate::command::{CommandKind, Finished};
use crate::tournament::Owner;
use softflash_base::Time;

impl Array {
    /// Processes all events up to and including `until`, and appends the completed commands to
    /// `finished`, in the order of completion. With [`Time::MAX`] it runs until all dies are idle;
    /// otherwise the array's time is `until` afterwards.
    #[inline]
    pub fn advance(&mut self, until: Time, finished: &mut Vec<Finished>) {
        while let Some((at, owner)) = self.core.events.first()
            && at <= until.0
        {
            self.play(at, owner, finished);
        }
        if until != Time::MAX {
            self.core.now = self.core.now.max(until.0);
        }
    }

    /// Processes the next event and appends the command that it completed, if any; returns the time
    /// of the event, or `None` if all dies are idle. Cheaper than [`advance`](Array::advance) for a
    /// caller that submits a new command at every completion.
    #[inline]
    pub fn step(&mut self, finished: &mut Vec<Finished>) -> Option<Time> {
        let (at, owner) = self.core.events.first()?;
        self.play(at, owner, finished);
        Some(Time(at))
    }

    #[inline]
    fn play(&mut self, at: u64, owner: Owner, finished: &mut Vec<Finished>) {
        let core = &mut self.core;
        assert!(at >= core.now, "time ran back from {} to {at}", core.now);
        core.now = at;
        core.counters.events += 1;
        match owner {
            Owner::Die(die) => {
                let die = &mut self.dies[die];
                core.die_event(die, &mut self.channels[usize::from(die.channel)], finished);
            }
            Owner::Bus(channel) => {
                let bus = &mut self.channels[channel];
                let Some(transfer) = bus.carrying() else {
                    unreachable!("an event of an idle bus")
                };
                let die = &mut self.dies[bus.first_die as usize + usize::from(transfer.place)];
                core.bus_event(die, bus, transfer.direction, finished);
            }
        }
    }
}

impl Core {
    /// Handles the end of an operation of a die's cell array.
    #[inline]
    fn die_event(&mut self, die: &mut Die, bus: &mut Channel, finished: &mut Vec<Finished>) {
        self.events.clear_die(usize::from(die.channel), usize::from(die.place));
        match die.array {
            CellArray::Working => self.work_done(die, bus, finished),
            CellArray::Suspending => {
                die.suspended();
                self.dispatch(die, bus);
            }
            CellArray::Resuming => {
                self.resumed(die);
                self.dispatch(die, bus);
            }
            CellArray::Idle | CellArray::Holding => unreachable!("an event of an idle array"),
        }
    }

    #[inline]
    fn work_done(&mut self, die: &mut Die, bus: &mut Channel, finished: &mut Vec<Finished>) {
        let slot = die.array_slot;
        die.array = CellArray::Idle;
        match die.stage(slot) {
            Stage::Sensing => {
                let retries = self.look(die, slot);
                if retries > 0 {
                    self.start_retries(die, slot, retries);
                } else {
                    self.sensed(die, bus, slot);
                }
            }
            Stage::Retrying => self.sensed(die, bus, slot),
            Stage::Programming => {
                self.program_done(die, slot);
                self.finish(die, slot, finished);
                self.dispatch(die, bus);
            }
            Stage::Erasing => {
                self.erase_done(die, slot);
                self.finish(die, slot, finished);
                self.dispatch(die, bus);
            }
            stage => unreachable!("{stage:?} is no work of an array"),
        }
    }

    /// Handles a sensed page: its transfer is requested now, or when the cache register is free.
    #[inline]
    fn sensed(&mut self, die: &mut Die, bus: &mut Channel, slot: u8) {
        if die.output == NONE {
            self.unload(die, bus, slot);
        } else {
            die.set_stage(slot, Stage::Sensed);
            die.array = CellArray::Holding;
        }
        if self.timing.suspends {
            self.dispatch(die, bus);
        } else {
            self.sense_second(die);
        }
    }

    /// Handles the end of a transfer.
    #[inline]
    fn bus_event(
        &mut self,
        die: &mut Die,
        bus: &mut Channel,
        direction: Direction,
        finished: &mut Vec<Finished>,
    ) {
        match direction {
            Direction::Out => {
                let slot = std::mem::replace(&mut die.output, NONE);
                self.finish(die, slot, finished);
                if !self.timing.cache_read {
                    die.array = CellArray::Idle;
                }
                self.dispatch(die, bus);
            }
            Direction::In => {
                let slot = std::mem::replace(&mut die.input, NONE);
                die.set_stage(slot, Stage::Loaded);
                if self.timing.suspends {
                    self.dispatch(die, bus);
                } else if die.array == CellArray::Idle {
                    self.start_program(die, bus, slot);
                }
            }
        }
        self.events.clear_bus(usize::from(die.channel));
        self.grant(bus, die.channel);
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

    /// Starts the operations that are possible on a die.
    #[inline]
    pub(super) fn dispatch(&mut self, die: &mut Die, bus: &mut Channel) {
        if self.timing.suspends {
            self.serve_suspender(die, bus);
        }
        let front = die.front();
        let idle = die.array == CellArray::Idle;
        match die.stage(front) {
            Stage::ReadQueued if idle => self.start_sense(die, front),
            Stage::Sensed if die.output == NONE => {
                self.unload(die, bus, front);
                self.sense_second(die);
            }
            Stage::Unloading => self.sense_second(die),
            Stage::ProgramQueued => self.load(die, bus, front),
            Stage::Loaded if idle => self.start_program(die, bus, front),
            Stage::Programming => self.load_second(die, bus),
            Stage::EraseQueued if idle => self.start_erase(die, front),
            _ => {}
        }
    }

    /// With a cache register a die senses the next page during the transfer of the current one.
    #[inline]
    fn sense_second(&mut self, die: &mut Die) {
        let second = die.second();
        if die.array == CellArray::Idle && die.stage(second) == Stage::ReadQueued {
            self.start_sense(die, second);
        }
    }

    /// With a cache register a die loads the next page during the program of the current one.
    #[inline]
    fn load_second(&mut self, die: &mut Die, bus: &mut Channel) {
        let second = die.second();
        if self.timing.cache_program && die.stage(second) == Stage::ProgramQueued {
            self.load(die, bus, second);
        }
    }

    /// Requests the bus for the data of a program.
    #[inline]
    fn load(&mut self, die: &mut Die, bus: &mut Channel, slot: u8) {
        die.set_stage(slot, Stage::Loading);
        die.input = slot;
        self.request_bus(die, bus, Direction::In, slot);
    }

    /// Requests the bus for a sensed page. Without a cache register the page occupies the cell
    /// array until it is transferred.
    #[inline]
    pub(super) fn unload(&mut self, die: &mut Die, bus: &mut Channel, slot: u8) {
        die.set_stage(slot, Stage::Unloading);
        die.output = slot;
        die.array = if self.timing.cache_read { CellArray::Idle } else { CellArray::Holding };
        self.request_bus(die, bus, Direction::Out, slot);
    }

    #[inline]
    fn request_bus(&mut self, die: &Die, bus: &mut Channel, direction: Direction, slot: u8) {
        bus.request(die.place, direction, die.slot(slot).transferred());
        if bus.carrying().is_none() {
            self.grant(bus, die.channel);
        }
    }

    /// Starts the next requested transfer, if any, on a bus that is idle or whose transfer has
    /// ended.
    #[inline]
    fn grant(&mut self, bus: &mut Channel, channel: u16) {
        if let Some(transfer) = bus.grant(self.timing.reads_ahead) {
            let transfer_ns = self.bus_step_ns(channel, self.timing.transfer_ns(transfer.planes));
            bus.busy_ns += transfer_ns;
            let die = DieIndex(bus.first_die + u32::from(transfer.place));
            self.note(die, Activity::Transfer, transfer_ns);
            self.events.set_bus(usize::from(channel), self.now + transfer_ns, self.now);
        }
    }

    #[inline]
    pub(super) fn start_sense(&mut self, die: &mut Die, slot: u8) {
        let sense_ns = self.timing.read_ns[self.level(die, slot)];
        let sense_ns = self.die_step_ns(die.index, Some(CommandKind::Read), sense_ns);
        self.note(die.index, Activity::Sense, sense_ns);
        self.start_work(die, slot, Stage::Sensing, sense_ns);
    }

    #[cold]
    fn start_retries(&mut self, die: &mut Die, slot: u8, retries: u8) {
        let retry_ns = self.timing.retry_ns[self.level(die, slot)];
        let retries_ns = self.die_step_ns(die.index, None, u64::from(retries) * retry_ns);
        self.start_work(die, slot, Stage::Retrying, retries_ns);
    }

    #[inline]
    fn start_program(&mut self, die: &mut Die, bus: &mut Channel, slot: u8) {
        let program_ns = self.timing.program_ns[self.level(die, slot)];
        let program_ns = self.die_step_ns(die.index, Some(CommandKind::Program), program_ns);
        self.note(die.index, Activity::Program, program_ns);
        self.start_work(die, slot, Stage::Programming, program_ns);
        self.load_second(die, bus);
    }

    #[inline]
    fn start_erase(&mut self, die: &mut Die, slot: u8) {
        let erase_ns = self.die_step_ns(die.index, Some(CommandKind::Erase), self.timing.erase_ns);
        self.note(die.index, Activity::Erase, erase_ns);
        self.start_work(die, slot, Stage::Erasing, erase_ns);
    }

    #[inline]
    fn start_work(&mut self, die: &mut Die, slot: u8, stage: Stage, work_ns: u64) {
        die.set_stage(slot, stage);
        die.array = CellArray::Working;
        die.array_slot = slot;
        die.work_ends = self.now + work_ns;
        die.busy_ns += work_ns;
        if slot != SUSPENDER {
            die.work_ns = work_ns;
            die.suspends = 0;
        }
        self.wake_at(die, die.work_ends);
    }

    /// Schedules the next event of a die.
    #[inline]
    pub(super) fn wake_at(&mut self, die: &Die, at: u64) {
        self.events.set_die(usize::from(die.channel), usize::from(die.place), at, self.now);
    }

    /// The cell level of a command's pages.
    #[inline]
    fn level(&self, die: &Die, slot: u8) -> usize {
        usize::from(self.pages.page(die.slot(slot).page).level)
    }
}
