//! The times of an array alone: which die and which bus is busy until when. For drives whose firmware
//! knows the state of every block itself, and of which millions of requests a second are asked.
//!
//! [`Array`](crate::Array) is the whole flash: contents, rules, faults, power cuts. This is the part of
//! it that takes time, over the same `channel` and `tournament`, and the two agree on every end of
//! every command (`tests.rs` plays random commands on both). What it leaves to its caller are the rules
//! of the flash: pages in order, no program without erase. What it lacks is suspend.
//!
//! [`Timeline::start`] begins a piece of work on a die that [accepts](Timeline::accepts) it;
//! [`Timeline::step`] plays the next event and says which die may have room again and what ended there.

mod die;
mod recorder;
#[cfg(test)]
mod tests;

pub use recorder::{Activity, Interval};

use crate::address::{ChannelIndex, DieIndex};
use crate::cell::PageTable;
use crate::channel::{Channel, Direction};
use crate::config::{ArrayConfig, ConfigError};
use crate::timing::Timing;
use crate::tournament::{Owner, Tournament};
use die::{CellArray, DieLine, Register};
use recorder::Recorder;
use softflash_base::Time;

/// What a die is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// Sense pages and send them over the bus.
    Read,
    /// Take pages from the bus and program them.
    Program,
    /// Erase blocks.
    Erase,
    /// Sense pages one after the other and program them together elsewhere on the die. They cross the bus
    /// to the controller and back, unless the timeline [copies back](Timeline::set_copyback).
    Move,
    /// Sense and program pages elsewhere on the die, one page after the other from `page` on, without the bus.
    /// [`Timeline::cut`] ends it after the page at hand.
    CopyBack,
}

/// A piece of work for a die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Returned at the end.
    pub tag: u32,
    /// The page in its block that decides how long the cells take; of a move, the page that is programmed.
    pub page: u16,
    /// Pages: planes that work at once; of a copy-back, pages in all.
    pub pages: u8,
    /// What to do.
    pub kind: WorkKind,
}

/// What an event was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub at: u64,
    /// The die that moved on.
    pub die: u32,
    /// Whether it may accept work now.
    pub ready: bool,
    /// What ended there, if anything did.
    pub ended: Option<Work>,
}

/// The end of a transfer, if there is one, is an event.
const LOUD: u64 = u64::MAX;

/// Dies and buses in virtual time.
pub struct Timeline {
    timing: Timing,
    pages: PageTable,
    copyback: bool,
    dies: Vec<DieLine>,
    channels: Vec<Channel>,
    /// When a transfer ends that nobody waits behind, so that its end is no event; [`LOUD`] otherwise.
    free_at: Vec<u64>,
    events: Tournament,
    now: u64,
    recorder: Recorder,
}

impl Timeline {
    /// Idle dies.
    pub fn new(config: &ArrayConfig) -> Result<Timeline, ConfigError> {
        let (timing, pages) = config.compile()?;
        let geometry = &config.geometry;
        let (dies, per_channel) = (geometry.dies(), geometry.dies_per_channel());
        Ok(Timeline {
            timing,
            pages,
            copyback: false,
            dies: (0..dies).map(|die| DieLine::new(die / per_channel, die % per_channel)).collect(),
            channels: (0..dies).step_by(per_channel as usize).map(Channel::new).collect(),
            free_at: vec![LOUD; usize::from(geometry.channels)],
            events: Tournament::new(geometry.channels.into(), per_channel as usize),
            now: 0,
            recorder: Recorder::default(),
        })
    }

    /// Whether moved pages stay inside their die (copyback) or cross the bus twice.
    pub fn set_copyback(&mut self, copyback: bool) {
        self.copyback = copyback;
    }

    /// The time that has been reached.
    #[inline]
    pub fn now(&self) -> Time {
        Time(self.now)
    }

    /// When something happens next, unless work is started before.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        self.events.first_at().map(Time)
    }

    /// Lets time pass to `now`, before which nothing happens.
    ///
    /// # Panics
    /// If something happens before `now`.
    #[inline]
    pub fn pass_to(&mut self, now: Time) {
        assert!(now.0 >= self.now, "time ran back from {} to {}", self.now, now.0);
        self.now = now.0;
    }

    /// Whether a die takes work of this kind now.
    #[inline]
    pub fn accepts(&self, die: u32, kind: WorkKind) -> bool {
        self.dies[die as usize].accepts(kind, self.timing.cache_read, self.timing.cache_program)
    }

    /// Begins work on a die, now.
    ///
    /// # Panics
    /// In debug builds, if the die does not accept it.
    #[inline]
    pub fn start(&mut self, die: u32, work: Work) {
        debug_assert!(
            self.accepts(die, work.kind),
            "die {die} was given work that it does not accept"
        );
        match work.kind {
            WorkKind::Read => self.sense(die, work, 1),
            WorkKind::Move if self.copyback => self.move_inside(die, work),
            WorkKind::CopyBack => self.copy_back(die, work),
            WorkKind::Move => self.sense(die, work, u64::from(work.pages)),
            WorkKind::Program => self.load(die, work),
            WorkKind::Erase => self.run(die, work, self.now, self.timing.erase_ns),
        }
    }

    /// Plays the next event; `None` when all dies are idle.
    #[inline]
    pub fn step(&mut self) -> Option<Step> {
        self.step_before(u64::MAX)
    }

    /// Plays the next event, unless it is at `end` or later.
    #[inline]
    pub fn step_before(&mut self, end: u64) -> Option<Step> {
        let (at, owner) = self.events.first_before(end)?;
        assert!(at >= self.now, "time ran back from {} to {at}", self.now);
        self.now = at;
        Some(match owner {
            Owner::Die(die) => {
                let ended = self.array_done(die as u32);
                Step { at, die: die as u32, ready: self.may_accept(die as u32), ended }
            }
            Owner::Bus(channel) => self.bus_done(channel, at),
        })
    }

    /// Channels.
    pub fn channels(&self) -> u32 {
        self.channels.len() as u32
    }

    /// Time that a die's cell array has worked, in nanoseconds, what it has begun included.
    pub fn die_busy_ns(&self, die: DieIndex) -> u64 {
        self.dies.get(die.index()).map_or(0, |die| die.busy_ns)
    }

    /// Time that a channel's bus was taken, in nanoseconds, the transfer it has begun included.
    pub fn channel_busy_ns(&self, channel: ChannelIndex) -> u64 {
        self.channels.get(channel.index()).map_or(0, |channel| channel.busy_ns)
    }

    /// Writes down what dies and buses do, up to `most` intervals; see [`Timeline::recorded`].
    pub fn record(&mut self, most: usize) {
        self.recorder = Recorder::of(most);
    }

    /// What was written down, each as soon as it was known.
    pub fn recorded(&self) -> &[Interval] {
        self.recorder.intervals()
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let dies = self.dies.capacity() * size_of::<DieLine>();
        let channels = self.channels.capacity() * (size_of::<Channel>() + size_of::<u64>());
        (size_of::<Timeline>() + dies + channels) as u64
            + self.pages.memory_bytes()
            + self.events.memory_bytes()
    }

    #[inline]
    fn sense(&mut self, die: u32, work: Work, times: u64) {
        let level = usize::from(self.pages.page(u32::from(work.page)).level);
        let sense_ns = times * self.timing.read_ns[level];
        let (channel, place, ends) = self.occupy(die, work, self.now, sense_ns);
        // Where the next page cannot be sensed before this one is gone, its end changes nothing while the bus is busy.
        if self.timing.cache_read {
            self.events.set_die(channel, place, ends, self.now);
        } else {
            self.events.set_quiet(channel, place, ends, self.now);
        }
    }

    /// Nothing happens on the bus between the senses of a move and its program, so they are one event.
    #[inline]
    fn move_inside(&mut self, die: u32, work: Work) {
        let level = usize::from(self.pages.page(u32::from(work.page)).level);
        self.dies[die as usize].moving = true;
        let senses_ns = u64::from(work.pages) * self.timing.read_ns[level];
        self.run(die, work, self.now, senses_ns + self.timing.program_ns[level]);
    }

    #[inline]
    fn copy_back(&mut self, die: u32, work: Work) {
        let pages = work.page..work.page + u16::from(work.pages);
        let work_ns = pages.map(|page| self.copy_back_ns(page)).sum();
        self.dies[die as usize].began_at = self.now;
        self.run(die, work, self.now, work_ns);
    }

    #[inline]
    fn copy_back_ns(&self, page: u16) -> u64 {
        let level = usize::from(self.pages.page(u32::from(page)).level);
        self.timing.read_ns[level] + self.timing.program_ns[level]
    }

    /// Lets a copy-back end after the page that it is at; its end tells how many there were. Any other work is
    /// left alone.
    pub fn cut(&mut self, die: u32) {
        let DieLine { array, at_work, began_at, channel, place, .. } = self.dies[die as usize];
        if array != CellArray::Working || at_work.kind != WorkKind::CopyBack {
            return;
        }
        let (mut ends, mut pages, mut left_ns) = (began_at, 0, 0);
        for page in at_work.page..at_work.page + u16::from(at_work.pages) {
            let page_ns = self.copy_back_ns(page);
            if pages > 0 && ends >= self.now {
                left_ns += page_ns;
            } else {
                (ends, pages) = (ends + page_ns, pages + 1);
            }
        }
        let line = &mut self.dies[die as usize];
        line.at_work.pages = pages;
        line.busy_ns -= left_ns;
        self.recorder.shorten(die, began_at, ends);
        self.events.set_die(channel as usize, usize::from(place), ends, self.now);
    }

    #[inline]
    fn program(&mut self, die: u32, work: Work, begin: u64) {
        let level = usize::from(self.pages.page(u32::from(work.page)).level);
        self.run(die, work, begin, self.timing.program_ns[level]);
    }

    /// The cell array works for a time from `begin` on.
    #[inline]
    fn run(&mut self, die: u32, work: Work, begin: u64, work_ns: u64) {
        let (channel, place, ends) = self.occupy(die, work, begin, work_ns);
        self.events.set_die(channel, place, ends, self.now);
    }

    /// Takes the cell array for a time; returns whose end is when.
    #[inline]
    fn occupy(&mut self, die: u32, work: Work, begin: u64, work_ns: u64) -> (usize, usize, u64) {
        let line = &mut self.dies[die as usize];
        line.array = CellArray::Working;
        line.at_work = work;
        line.busy_ns += work_ns;
        let ends = begin + work_ns;
        self.recorder.note(|| Interval::of_array(die, work, line.moving, begin, ends));
        (line.channel as usize, usize::from(line.place), ends)
    }

    /// A program's data, or moved pages, want to cross the bus.
    #[inline]
    fn load(&mut self, die: u32, work: Work) {
        let line = &mut self.dies[die as usize];
        line.register = Register::In;
        line.in_register = work;
        self.request_bus(die, Direction::In);
    }

    /// Pages that were sensed want to cross the bus.
    #[inline]
    fn unload(&mut self, die: u32, work: Work) {
        let line = &mut self.dies[die as usize];
        line.register = Register::Out;
        line.in_register = work;
        line.array = if self.timing.cache_read { CellArray::Idle } else { CellArray::Holding };
        self.request_bus(die, Direction::Out);
    }

    #[inline]
    fn request_bus(&mut self, die: u32, direction: Direction) {
        let line = &self.dies[die as usize];
        let channel = line.channel as usize;
        let bus = &mut self.channels[channel];
        bus.request(line.place, direction, line.in_register.pages);
        if bus.carrying().is_none() {
            self.grant(channel);
        } else if self.free_at[channel] != LOUD {
            self.wait_behind(channel);
        }
    }

    /// Somebody wants a bus whose transfer was thought to end unheard, or has.
    #[inline]
    fn wait_behind(&mut self, channel: usize) {
        let free_at = self.free_at[channel];
        if free_at < self.now {
            self.grant(channel);
        } else {
            self.events.set_bus(channel, free_at, self.now);
        }
    }

    /// Begins the next transfer of a bus whose last one has ended.
    #[inline]
    fn grant(&mut self, channel: usize) {
        let bus = &mut self.channels[channel];
        let Some(transfer) = bus.grant(self.timing.reads_ahead) else {
            return self.events.clear_bus(channel);
        };
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
            self.free_at[channel] = ends;
            self.events.clear_bus(channel);
            self.program_loaded(die, ends);
        } else {
            self.free_at[channel] = LOUD;
            self.events.set_bus(channel, ends, self.now);
        }
    }

    /// What is in the register is programmed from `begin` on.
    #[inline]
    fn program_loaded(&mut self, die: u32, begin: u64) {
        let line = &mut self.dies[die as usize];
        line.register = Register::Free;
        let work = line.in_register;
        line.moving = work.kind == WorkKind::Move;
        self.program(die, work, begin);
    }

    /// The cell array of a die has come to the end of its work.
    #[inline]
    fn array_done(&mut self, die: u32) -> Option<Work> {
        let line = &self.dies[die as usize];
        self.events.clear_die(line.channel as usize, usize::from(line.place));
        self.array_ended(die)
    }

    #[inline]
    fn array_ended(&mut self, die: u32) -> Option<Work> {
        let line = &mut self.dies[die as usize];
        let work = line.at_work;
        match work.kind {
            WorkKind::Read if line.register == Register::Free => {
                self.unload(die, work);
                None
            }
            WorkKind::Read => {
                line.array = CellArray::Holding;
                None
            }
            WorkKind::Move if !line.moving => {
                // Its pages cross the bus, and come back.
                line.array = CellArray::Holding;
                self.load(die, work);
                None
            }
            WorkKind::Program | WorkKind::Erase | WorkKind::Move | WorkKind::CopyBack => {
                line.moving = false;
                line.array = CellArray::Idle;
                if line.register == Register::Loaded {
                    line.register = Register::Free;
                    let loaded = line.in_register;
                    self.program(die, loaded, self.now);
                }
                Some(work)
            }
        }
    }

    /// A transfer has ended.
    #[inline]
    fn bus_done(&mut self, channel: usize, at: u64) -> Step {
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
            Direction::In if self.free_at[channel] != LOUD => None,
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
        Step { at, die, ready: self.may_accept(die), ended }
    }

    /// Dies whose sense has ended while the bus was busy want it as well.
    #[inline]
    fn sensed_meanwhile(&mut self, channel: usize) {
        let mut due = self.events.take_due_quiet(channel, self.now);
        while due != 0 {
            let place = due.trailing_zeros();
            due &= due - 1;
            let die = self.channels[channel].first_die + place;
            self.array_ended(die);
        }
    }

    /// Whether there is any kind of work that a die accepts now.
    #[inline]
    pub fn may_accept(&self, die: u32) -> bool {
        let line = &self.dies[die as usize];
        line.accepts_any(self.timing.cache_read, self.timing.cache_program)
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
