//! What happens on the bus of a channel: who gets it next, and what the end of a transfer leads to.
//!
//! Two ends are no events. That of a sense while the bus is busy: its page only wants the bus, and whoever
//! ends the transfer asks for what was sensed meanwhile. And that of a transfer to an idle die while nobody waits
//! behind it: the program that follows can be entered at once, with its end.

use super::agenda::{Lane, Owner};
use super::die::{CellArray, Register};
use super::recorder::Interval;
use super::{Timeline, Work, WorkKind};
use crate::channel::Direction;

/// How a transfer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferEnd {
    /// With an event.
    Event,
    /// Unheard, as nobody waits behind it: what it brings is being programmed from then on already.
    Unheard,
    /// As `Unheard`, but somebody has come to wait behind it, so that it is an event.
    Awaited,
}

impl Timeline {
    /// Whether the bus is busy, and will be heard of when it no longer is.
    #[inline]
    pub(super) fn ends_heard(&self, channel: usize) -> bool {
        self.channels[channel].carrying().is_some() && self.ends[channel].1 != TransferEnd::Unheard
    }

    #[inline(always)]
    pub(super) fn request_bus(&mut self, die: u32, direction: Direction) {
        let line = &self.dies[die as usize];
        let channel = line.channel as usize;
        let bus = &mut self.channels[channel];
        bus.request(line.place, direction, line.in_register.pages);
        if bus.carrying().is_none() {
            self.grant(channel);
        } else if self.ends[channel].1 == TransferEnd::Unheard {
            self.wait_behind(channel);
        }
    }

    /// Somebody wants a bus whose transfer was thought to end unheard, or has.
    #[inline]
    fn wait_behind(&mut self, channel: usize) {
        let (ends, how) = &mut self.ends[channel];
        if *ends < self.now {
            self.grant(channel);
        } else {
            *how = TransferEnd::Awaited;
            self.agenda.add(Lane::Transfer, *ends, Owner::Bus(channel as u32), self.now);
        }
    }

    /// Begins the next transfer of a bus whose last one has ended.
    #[inline]
    fn grant(&mut self, channel: usize) {
        let bus = &mut self.channels[channel];
        let Some(transfer) = bus.grant(self.timing.reads_ahead) else { return };
        let die = bus.first_die + u32::from(transfer.place);
        let work = self.dies[die as usize].in_register;
        let crossings = if work.kind == WorkKind::Move { 2 } else { 1 };
        let transfer_ns = crossings * self.timing.transfer_ns(transfer.planes);
        bus.busy_ns += transfer_ns;
        let ends = self.now + transfer_ns;
        self.recorder.note(|| Interval::of_bus(die, self.now, ends));
        // A die that can do nothing else before programs what comes, and its end is all that matters.
        let alone = !bus.is_wanted() && transfer.direction == Direction::In;
        let idle = self.dies[die as usize].array == CellArray::Idle || work.kind == WorkKind::Move;
        if alone && idle && !self.timing.cache_program {
            self.ends[channel] = (ends, TransferEnd::Unheard);
            self.program_loaded(die, ends);
        } else {
            self.ends[channel] = (ends, TransferEnd::Event);
            self.agenda.add(Lane::Transfer, ends, Owner::Bus(channel as u32), self.now);
        }
    }

    /// A transfer has ended: of which die, and what ended with it.
    #[inline(always)]
    pub(super) fn bus_done(&mut self, channel: usize, at: u64) -> (u32, Option<Work>) {
        let bus = &self.channels[channel];
        let Some(transfer) = bus.carrying() else { unreachable!("an event of an idle bus") };
        let die = bus.first_die + u32::from(transfer.place);
        let line = &mut self.dies[die as usize];
        let work = line.in_register;
        let ended = match transfer.direction {
            Direction::Out => {
                line.register = Register::Free;
                self.after_unload(die);
                Some(work)
            }
            // It was programmed at once, before somebody came to wait behind it.
            Direction::In if self.ends[channel].1 == TransferEnd::Awaited => None,
            Direction::In if line.array == CellArray::Idle || work.kind == WorkKind::Move => {
                self.program_loaded(die, at);
                None
            }
            Direction::In => {
                line.register = Register::Loaded;
                None
            }
        };
        self.sensed_meanwhile(channel);
        self.grant(channel);
        if !self.ends_heard(channel) {
            self.hear_senses(channel);
        }
        (die, ended)
    }

    /// Dies whose sense has ended while the bus was busy want it as well.
    #[inline(always)]
    fn sensed_meanwhile(&mut self, channel: usize) {
        while let Some(&(at, die)) = self.senses[channel].front()
            && at <= self.now
        {
            self.senses[channel].pop_front();
            self.array_ended(die);
        }
    }

    /// The bus is free, or will not be heard of when it is: the ends of senses are events again.
    #[inline]
    fn hear_senses(&mut self, channel: usize) {
        while let Some((at, die)) = self.senses[channel].pop_front() {
            self.agenda.add(Lane::Sense, at, Owner::Die(die), self.now);
        }
    }

    /// The register is free: for what the cell array holds, if anything.
    #[inline]
    fn after_unload(&mut self, die: u32) {
        let line = &mut self.dies[die as usize];
        if line.array != CellArray::Holding {
            return;
        }
        if self.timing.cache_read {
            let held = line.at_work;
            self.unload(die, held);
        } else {
            // It was kept by the page that has just gone.
            line.array = CellArray::Idle;
        }
    }
}
