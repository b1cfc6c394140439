//! What happens on the bus of a channel: who gets it next, and what the end of a transfer leads to.
//!
//! Two ends are no events. That of a sense while the bus is busy: its page only wants the bus, and whoever
//! ends the transfer asks for what was sensed meanwhile. And that of a transfer to an idle die while nobody waits
//! behind it: the program that follows can be entered at once, with its end.

use super::agenda::{Lane, Owner};
use super::die::{CellArray, Register};
use super::recorder::Interval;
use super::{Timeline, Work, WorkKind};
use crate::channel::{Channel, Direction, Transfer};
use std::collections::VecDeque;

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

/// A channel's bus, and what is known of its future.
#[derive(Debug)]
pub(super) struct BusLine {
    pub(super) channel: Channel,
    /// When its last transfer ends, or has, and how.
    ends_at: u64,
    end: TransferEnd,
    /// Senses that end while the bus is busy, in order of time: when, and of which of its dies. They only want the bus, so
    /// that their ends are no events: whoever ends a transfer asks for those that are due. The dies' registers are
    /// taken for them from the beginning.
    senses: VecDeque<(u64, u32)>,
}

impl BusLine {
    pub(super) fn new(first_die: u32, dies: u32) -> BusLine {
        BusLine {
            channel: Channel::new(first_die),
            ends_at: 0,
            end: TransferEnd::Event,
            senses: VecDeque::with_capacity(dies as usize),
        }
    }

    /// Whether the bus is busy, and will be heard of when it no longer is.
    #[inline]
    fn ends_heard(&self) -> bool {
        self.channel.carrying().is_some() && self.end != TransferEnd::Unheard
    }

    /// Whether nobody has it, or waits for it: the last transfer ended unheard, or before nobody.
    #[inline]
    fn is_free(&self, now: u64) -> bool {
        let over = self.end == TransferEnd::Unheard && self.ends_at < now;
        self.channel.carrying().is_none() || over
    }

    /// Takes note of a sense that nobody need hear of, if it is one.
    #[inline]
    pub(super) fn takes_sense(&mut self, ends: u64, die: u32) -> bool {
        let unheard = self.ends_heard() && self.senses.back().is_none_or(|&(last, _)| last <= ends);
        if unheard {
            self.senses.push_back((ends, die));
        }
        unheard
    }
}

impl Timeline {
    #[inline(always)]
    pub(super) fn request_bus(&mut self, die: u32, direction: Direction) {
        let line = &self.dies[die as usize];
        let channel = line.channel as usize;
        let (place, pages) = (line.place, line.in_register.pages);
        let bus = &mut self.buses[channel];
        if bus.is_free(self.now) {
            let transfer = bus.channel.take(place, direction, pages);
            return self.carry(channel, transfer);
        }
        bus.channel.request(place, direction, pages);
        if bus.end == TransferEnd::Unheard {
            self.wait_behind(channel);
        }
    }

    /// Somebody wants a bus whose transfer was thought to end unheard.
    #[inline]
    fn wait_behind(&mut self, channel: usize) {
        let bus = &mut self.buses[channel];
        bus.end = TransferEnd::Awaited;
        self.agenda.add(Lane::Transfer, bus.ends_at, Owner::Bus(channel as u32), self.now);
    }

    /// Begins the next transfer of a bus whose last one has ended.
    #[inline]
    fn grant(&mut self, channel: usize) {
        if let Some(transfer) = self.buses[channel].channel.grant(self.timing.reads_ahead) {
            self.carry(channel, transfer);
        }
    }

    /// Begins a transfer.
    #[inline(always)]
    fn carry(&mut self, channel: usize, transfer: Transfer) {
        let bus = &mut self.buses[channel];
        let die = bus.channel.first_die + u32::from(transfer.place);
        let line = &self.dies[die as usize];
        let is_move = line.in_register.kind == WorkKind::Move;
        let crossings = if is_move { 2 } else { 1 };
        let transfer_ns = crossings * self.timing.transfer_ns(transfer.planes);
        bus.channel.busy_ns += transfer_ns;
        let ends = self.now + transfer_ns;
        bus.ends_at = ends;
        self.recorder.note(|| Interval::of_bus(die, self.now, ends));
        // A die that can do nothing else before programs what comes, and its end is all that matters.
        let alone = !bus.channel.is_wanted() && transfer.direction == Direction::In;
        let idle = line.array == CellArray::Idle || is_move;
        if alone && idle && !self.timing.cache_program {
            bus.end = TransferEnd::Unheard;
            self.program_loaded(die, ends);
        } else {
            bus.end = TransferEnd::Event;
            self.agenda.add(Lane::Transfer, ends, Owner::Bus(channel as u32), self.now);
        }
    }

    /// A transfer has ended: of which die, and what ended with it.
    #[inline(always)]
    pub(super) fn bus_done(&mut self, channel: usize, at: u64) -> (u32, Option<Work>) {
        let bus = &self.buses[channel];
        let Some(transfer) = bus.channel.carrying() else {
            unreachable!("an event of an idle bus")
        };
        let die = bus.channel.first_die + u32::from(transfer.place);
        let line = &mut self.dies[die as usize];
        let work = line.in_register;
        let ended = match transfer.direction {
            Direction::Out => {
                line.register = Register::Free;
                self.after_unload(die);
                Some(work)
            }
            // It was programmed at once, before somebody came to wait behind it.
            Direction::In if bus.end == TransferEnd::Awaited => None,
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
        if !self.buses[channel].ends_heard() {
            self.hear_senses(channel);
        }
        (die, ended)
    }

    /// Dies whose sense has ended while the bus was busy want it as well.
    #[inline(always)]
    fn sensed_meanwhile(&mut self, channel: usize) {
        let bus = &mut self.buses[channel];
        while let Some(&(at, die)) = bus.senses.front()
            && at <= self.now
        {
            bus.senses.pop_front();
            let line = &self.dies[die as usize];
            bus.channel.request(line.place, Direction::Out, line.in_register.pages);
        }
    }

    /// The bus is free, or will not be heard of when it is: the ends of senses are events again.
    #[inline]
    fn hear_senses(&mut self, channel: usize) {
        while let Some((at, die)) = self.buses[channel].senses.pop_front() {
            let line = &mut self.dies[die as usize];
            (line.array, line.register) = (CellArray::Working, Register::Free);
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
