//! What happens on the bus of a channel: who gets it next, and what the end of a transfer leads to.
//!
//! Two ends are no events. That of a sense while the bus is busy: its page only wants the bus, and whoever
//! ends the transfer asks for what was sensed meanwhile. And that of a transfer to an idle die while nobody waits
//! behind it: the program that follows can be entered at once, with its end.

use super::Timeline;
use super::agenda::{Lane, Owner};
use super::clock::Clock;
use super::die::{CellArray, DieLine, Register};
use super::recorder::Interval;
use super::senses::{Sense, Senses};
use super::work::{Work, WorkKind};
use crate::channel::{Channel, Direction, Transfer};

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
    /// Its number.
    number: u32,
    /// When its last transfer ends, or has, and how.
    ends_at: u64,
    end: TransferEnd,
    /// Senses that end while the bus is busy: they only want the bus. The dies' registers are taken for them from the
    /// beginning.
    senses: Senses,
}

impl BusLine {
    pub(super) fn new(number: u32, dies: u32) -> BusLine {
        BusLine {
            channel: Channel::new(number * dies),
            number,
            ends_at: 0,
            end: TransferEnd::Event,
            senses: Senses::new(),
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
    pub(super) fn takes_sense(&mut self, ends_at: u64, place: u8, pages: u8) -> bool {
        let unheard = self.ends_heard() && self.senses.is_last(ends_at);
        if unheard {
            self.senses.push(Sense { ends_at, place, pages });
        }
        unheard
    }

    /// Dies whose sense has ended while the bus was busy want it as well.
    #[inline]
    fn sensed_meanwhile(&mut self, now: u64) {
        while let Some(sense) = self.senses.pop_due(now) {
            self.channel.request(sense.place, Direction::Out, sense.pages);
        }
    }

    /// The die that a transfer is of.
    #[inline]
    fn die_of(&self, transfer: Transfer) -> u32 {
        self.channel.first_die + u32::from(transfer.place)
    }
}

impl Timeline {
    /// A transfer has ended: of which die, and what ended with it.
    #[inline(always)]
    pub(super) fn bus_done(&mut self, channel: u32) -> (u32, Option<Work>) {
        let Timeline { clock, dies, buses, .. } = self;
        let bus = &mut buses[channel as usize];
        let Some(transfer) = bus.channel.carrying() else {
            unreachable!("an event of an idle bus")
        };
        let die = bus.die_of(transfer);
        let ended = clock.transferred(&mut dies[die as usize], bus, transfer.direction);
        bus.sensed_meanwhile(clock.now);
        if let Some(next) = bus.channel.grant(clock.timing.reads_ahead) {
            let line = &mut dies[bus.die_of(next) as usize];
            clock.carry(line, bus, line.in_register, next);
        }
        if !bus.ends_heard() && !bus.senses.is_empty() {
            clock.hear_senses(dies, bus);
        }
        (die, ended)
    }
}

impl Clock {
    /// What a die has on the bus is through; returns the work that ends with it.
    #[inline(always)]
    fn transferred(
        &mut self,
        line: &mut DieLine,
        bus: &mut BusLine,
        direction: Direction,
    ) -> Option<Work> {
        let work = line.in_register;
        match direction {
            Direction::Out => {
                line.register = Register::Free;
                self.after_unload(line, bus);
                return Some(work);
            }
            // It was programmed at once, before somebody came to wait behind it.
            Direction::In if bus.end == TransferEnd::Awaited => {}
            Direction::In if line.array == CellArray::Idle || work.kind == WorkKind::Move => {
                self.program_loaded(line, work, self.now);
            }
            Direction::In => line.register = Register::Loaded,
        }
        None
    }

    /// What is in the register of a die, which is this, wants to cross the bus.
    #[inline(always)]
    pub(super) fn request_bus(
        &mut self,
        line: &mut DieLine,
        bus: &mut BusLine,
        work: Work,
        direction: Direction,
    ) {
        if bus.is_free(self.now) {
            let transfer = bus.channel.take(line.place, direction, work.pages);
            return self.carry(line, bus, work, transfer);
        }
        bus.channel.request(line.place, direction, work.pages);
        if bus.end == TransferEnd::Unheard {
            // The end of the transfer was to go unheard.
            bus.end = TransferEnd::Awaited;
            self.agenda.add(Lane::Transfer, bus.ends_at, Owner::Bus(bus.number), self.now);
        }
    }

    /// Begins a transfer of what is in the register of a die, which is this.
    #[inline(always)]
    fn carry(&mut self, line: &mut DieLine, bus: &mut BusLine, work: Work, transfer: Transfer) {
        let is_move = work.kind == WorkKind::Move;
        let crossings = if is_move { 2 } else { 1 };
        let transfer_ns = crossings * self.timing.transfer_ns(transfer.planes);
        bus.channel.busy_ns += transfer_ns;
        let ends = self.now + transfer_ns;
        bus.ends_at = ends;
        self.recorder.note(|| Interval::of_bus(line.die, self.now, ends));
        // A die that can do nothing else before programs what comes, and its end is all that matters.
        let alone = !bus.channel.is_wanted() && transfer.direction == Direction::In;
        let idle = line.array == CellArray::Idle || is_move;
        if alone && idle && !self.timing.cache_program {
            bus.end = TransferEnd::Unheard;
            self.program_loaded(line, work, ends);
        } else {
            bus.end = TransferEnd::Event;
            self.agenda.add(Lane::Transfer, ends, Owner::Bus(bus.number), self.now);
        }
    }

    /// The bus is free, or will not be heard of when it is: the ends of senses are events again.
    #[inline(never)]
    fn hear_senses(&mut self, dies: &mut [DieLine], bus: &mut BusLine) {
        while let Some(sense) = bus.senses.pop() {
            let die = bus.channel.first_die + u32::from(sense.place);
            let line = &mut dies[die as usize];
            (line.array, line.register) = (CellArray::Working, Register::Free);
            self.agenda.add(Lane::Sense, sense.ends_at, Owner::Die(die), self.now);
        }
    }

    /// The register is free: for what the cell array holds, if anything.
    #[inline(always)]
    fn after_unload(&mut self, line: &mut DieLine, bus: &mut BusLine) {
        if line.array != CellArray::Holding {
            return;
        }
        if self.timing.cache_read {
            self.unload(line, bus, line.at_work);
        } else {
            // It was kept by the page that has just gone.
            line.array = CellArray::Idle;
        }
    }
}
