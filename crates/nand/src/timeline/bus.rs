//! The bus of a channel: arbitration, and the effects of the end of a transfer.
//!
//! Two kinds of ends need no event. A sense that ends while the bus is busy: its page only waits
//! for the bus, and the end of the transfer collects the pages sensed meanwhile. A transfer to an
//! idle die while no other die waits: its program is scheduled at once, with its end.

use super::Timeline;
use super::clock::Clock;
use super::die::{CellArray, DieLine, Passing, Register};
use super::event_queue::{EventClass, Owner};
use super::recorder::Interval;
use super::senses::{Sense, Senses};
use super::work::{Work, WorkKind};
use crate::channel::{Channel, Direction, Transfer};

/// How a transfer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferEnd {
    /// With an event.
    Event,
    /// Without an event, as no other die waits: the program of its data is scheduled already.
    Silent,
    /// As `Silent`, but another die has requested the bus since, so that its end is an event.
    Awaited,
}

/// A channel's bus, and its scheduled future.
#[derive(Debug)]
pub(super) struct BusLine {
    pub(super) channel: Channel,
    /// Its number.
    number: u32,
    /// When its last transfer ends or has ended, and how.
    ends_at: u64,
    end: TransferEnd,
    /// Senses that end while the bus is busy: their pages only wait for the bus. The dies'
    /// registers are reserved for them from the start of the sense.
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

    /// Whether the bus is busy with a transfer that ends with an event.
    #[inline]
    fn ends_with_event(&self) -> bool {
        self.channel.carrying().is_some() && self.end != TransferEnd::Silent
    }

    /// Whether the bus is free: it carries nothing, or its last transfer has ended silently.
    #[inline]
    fn is_free(&self, now: u64) -> bool {
        let over = self.end == TransferEnd::Silent && self.ends_at < now;
        self.channel.carrying().is_none() || over
    }

    /// Queues a sense whose end needs no event; returns false if its end needs one.
    #[inline]
    pub(super) fn takes_sense(&mut self, ends_at: u64, place: u8, pages: u8) -> bool {
        let silent = self.ends_with_event() && self.senses.is_last(ends_at);
        if silent {
            self.senses.push(Sense { ends_at, place, pages });
        }
        silent
    }

    /// Requests the bus for the dies whose senses have ended while the bus was busy.
    #[inline]
    fn sensed_meanwhile(&mut self, now: u64) {
        while let Some(sense) = self.senses.pop_due(now) {
            self.channel.request(sense.place, Direction::Out, sense.pages);
        }
    }

    /// The die of a transfer.
    #[inline]
    fn die_of(&self, transfer: Transfer) -> u32 {
        self.channel.first_die + u32::from(transfer.place)
    }
}

impl Timeline {
    /// Handles the end of a transfer; returns its die, and the work that ended with it.
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
            clock.carry(line, bus, line.incoming, next);
        }
        if !bus.ends_with_event() && !bus.senses.is_empty() {
            clock.schedule_senses(dies, bus);
        }
        (die, ended)
    }
}

impl Clock {
    /// Completes the transfer of a die; returns the work that ends with it.
    #[inline(always)]
    fn transferred(
        &mut self,
        line: &mut DieLine,
        bus: &mut BusLine,
        direction: Direction,
    ) -> Option<Work> {
        match direction {
            Direction::Out => {
                let read = line.outgoing;
                if line.passing == Passing::Unloads {
                    self.passing_unloaded(line);
                } else {
                    line.register = Register::Free;
                    self.after_unload(line, bus);
                }
                return Some(read);
            }
            // Its program was scheduled at the start of the transfer, before another die waited.
            Direction::In if bus.end == TransferEnd::Awaited => {}
            Direction::In if line.array == CellArray::Idle || line.incoming.moves() => {
                self.program_loaded(line, line.incoming, self.now);
            }
            Direction::In => line.register = Register::Loaded,
        }
        None
    }

    /// Requests the bus for the work in the register of a die.
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
        if bus.end == TransferEnd::Silent {
            // The transfer was to end without an event.
            bus.end = TransferEnd::Awaited;
            self.events.add(EventClass::Transfer, bus.ends_at, Owner::Bus(bus.number), self.now);
        }
    }

    /// Starts a transfer of a die, whose last program or move from the bus is `work`.
    #[inline(always)]
    fn carry(&mut self, line: &mut DieLine, bus: &mut BusLine, work: Work, transfer: Transfer) {
        let is_move = work.moves();
        let crossings = if is_move { 2 } else { 1 };
        let transfer_ns = match work.kind {
            WorkKind::Pack => self.pack_ns(work),
            _ => crossings * self.timing.transfer_ns(transfer.planes),
        };
        bus.channel.busy_ns += transfer_ns;
        let ends = self.now + transfer_ns;
        bus.ends_at = ends;
        self.recorder.note(|| Interval::of_bus(line.die, self.now, ends));
        // The only next step of this die is the program of the data, so only the end of the program
        // needs an event.
        let alone = !bus.channel.is_wanted() && transfer.direction == Direction::In;
        let idle = line.array == CellArray::Idle || is_move;
        if alone && idle && self.silent_loads {
            bus.end = TransferEnd::Silent;
            self.program_loaded(line, work, ends);
        } else {
            bus.end = TransferEnd::Event;
            self.events.add(EventClass::Transfer, ends, Owner::Bus(bus.number), self.now);
        }
    }

    /// Adds events for the ends of the queued senses: the bus is free, or its transfer ends without
    /// an event.
    #[inline(never)]
    fn schedule_senses(&mut self, dies: &mut [DieLine], bus: &mut BusLine) {
        while let Some(sense) = bus.senses.pop() {
            let die = bus.channel.first_die + u32::from(sense.place);
            let line = &mut dies[die as usize];
            (line.array, line.register) = (CellArray::Working, Register::Free);
            self.events.add(EventClass::Sense, sense.ends_at, Owner::Die(die), self.now);
        }
    }

    /// Handles a free register: a page that the cell array holds, if any, moves into it.
    #[inline(always)]
    fn after_unload(&mut self, line: &mut DieLine, bus: &mut BusLine) {
        if line.array != CellArray::Holding {
            return;
        }
        if self.timing.cache_read {
            self.unload(line, bus, line.at_work);
        } else {
            // The transferred page occupied the cell array.
            line.array = CellArray::Idle;
        }
    }
}
