//! The times of an array alone: which die and which bus is busy until when. For drives whose firmware
//! knows the state of every block itself, and of which millions of requests a second are asked.
//!
//! [`Array`](crate::Array) is the whole flash: contents, rules, faults, power cuts. This is the part of
//! it that takes time, over the same `channel`, and the two agree on every end of every command
//! (`tests.rs` plays random commands on both). What it leaves to its caller are the rules
//! of the flash: pages in order, no program without erase. What it lacks is suspend.
//!
//! [`Timeline::start`] begins a piece of work on a die that [accepts](Timeline::accepts) it;
//! [`Timeline::step`] plays the next event and says which die may have room again and what ended there.

mod agenda;
mod bus;
mod die;
mod recorder;
#[cfg(test)]
mod tests;

pub use recorder::{Activity, Interval};

use crate::address::{ChannelIndex, DieIndex};
use crate::cell::PageTable;
use crate::channel::Direction;
use crate::config::{ArrayConfig, ConfigError};
use crate::timing::{MAX_LEVELS, Timing};
use agenda::{Agenda, Lane, Owner};
use bus::BusLine;
pub use die::Accepted;
use die::{Acceptance, CellArray, DieLine, Register};
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
    /// The work that it takes now.
    pub accepts: Accepted,
    /// What ended there, if anything did.
    pub ended: Option<Work>,
}

/// Dies and buses in virtual time.
pub struct Timeline {
    timing: Timing,
    pages: PageTable,
    /// Which levels take equally long to program: the first of them.
    program_lanes: [u8; MAX_LEVELS],
    copyback: bool,
    acceptance: Acceptance,
    dies: Vec<DieLine>,
    buses: Vec<BusLine>,
    agenda: Agenda,
    now: u64,
    recorder: Recorder,
}

impl Timeline {
    /// Idle dies.
    pub fn new(config: &ArrayConfig) -> Result<Timeline, ConfigError> {
        let (timing, pages) = config.compile()?;
        let geometry = &config.geometry;
        let (dies, per_channel) = (geometry.dies(), geometry.dies_per_channel());
        let program_ns = &timing.program_ns;
        let first_alike = |ns: &u64| program_ns.iter().position(|first| first == ns).unwrap_or(0);
        Ok(Timeline {
            program_lanes: std::array::from_fn(|level| first_alike(&program_ns[level]) as u8),
            acceptance: Acceptance::new(timing.cache_read, timing.cache_program),
            timing,
            pages,
            copyback: false,
            dies: (0..dies).map(|die| DieLine::new(die / per_channel, die % per_channel)).collect(),
            buses: (0..dies)
                .step_by(per_channel as usize)
                .map(|first_die| BusLine::new(first_die, per_channel))
                .collect(),
            agenda: Agenda::new(dies, geometry.channels.into()),
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
        let at = self.agenda.next_at();
        (at != u64::MAX).then_some(Time(at))
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

    /// The kinds of work that a die takes now.
    #[inline]
    pub fn accepts(&self, die: u32) -> Accepted {
        self.acceptance.of(&self.dies[die as usize])
    }

    /// Begins work on a die, now.
    ///
    /// # Panics
    /// In debug builds, if the die does not accept it.
    #[inline(always)]
    pub fn start(&mut self, die: u32, work: Work) {
        debug_assert!(
            self.accepts(die).has(work.kind),
            "die {die} was given work that it does not accept"
        );
        match work.kind {
            WorkKind::Read => self.sense(die, work, 1),
            WorkKind::Move if self.copyback => self.move_inside(die, work),
            WorkKind::CopyBack => self.copy_back(die, work),
            WorkKind::Move => self.sense(die, work, u64::from(work.pages)),
            WorkKind::Program => self.load(die, work),
            WorkKind::Erase => self.run(die, work, self.now, self.timing.erase_ns, Lane::Erase),
        }
    }

    /// Plays events up to the next one at which work ends or a die may accept some; `None` when all dies are idle.
    #[inline]
    pub fn step(&mut self) -> Option<Step> {
        self.step_before(u64::MAX)
    }

    /// As [`step`](Timeline::step), but plays nothing at `end` or later.
    #[inline(always)]
    pub fn step_before(&mut self, end: u64) -> Option<Step> {
        loop {
            let at = self.agenda.next_at();
            if at >= end {
                return None;
            }
            debug_assert!(at >= self.now, "time ran back from {} to {at}", self.now);
            self.now = at;
            let (die, ended) = match self.agenda.pop() {
                Owner::Die(die) => (die, self.array_ended(die)),
                Owner::Bus(channel) => self.bus_done(channel as usize, at),
            };
            let accepts = self.accepts(die);
            if accepts.any() || ended.is_some() {
                return Some(Step { at, die, accepts, ended });
            }
        }
    }

    /// Channels.
    pub fn channels(&self) -> u32 {
        self.buses.len() as u32
    }

    /// Time that a die's cell array has worked, in nanoseconds, what it has begun included.
    pub fn die_busy_ns(&self, die: DieIndex) -> u64 {
        self.dies.get(die.index()).map_or(0, |die| die.busy_ns)
    }

    /// Time that a channel's bus was taken, in nanoseconds, the transfer it has begun included.
    pub fn channel_busy_ns(&self, channel: ChannelIndex) -> u64 {
        self.buses.get(channel.index()).map_or(0, |bus| bus.channel.busy_ns)
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
        let buses = self.buses.capacity() * size_of::<BusLine>();
        (size_of::<Timeline>() + dies + buses) as u64
            + self.pages.memory_bytes()
            + self.agenda.memory_bytes()
    }

    #[inline(always)]
    fn sense(&mut self, die: u32, work: Work, times: u64) {
        let level = usize::from(self.pages.page(u32::from(work.page)).level);
        let sense_ns = times * self.timing.read_ns[level];
        let lane = if times == 1 { Lane::Sense } else { Lane::Other };
        let ends = self.occupy(die, work, self.now, sense_ns);
        let channel = self.dies[die as usize].channel as usize;
        // Where the next page cannot be sensed before this one is gone, nothing follows from its end while the bus is busy.
        let only_read = work.kind == WorkKind::Read && !self.timing.cache_read;
        if only_read && self.buses[channel].takes_sense(ends, die) {
            let line = &mut self.dies[die as usize];
            (line.array, line.register) = (CellArray::Holding, Register::Out);
            line.in_register = work;
            return;
        }
        self.agenda.add(lane, ends, Owner::Die(die), self.now);
    }

    /// Nothing happens on the bus between the senses of a move and its program, so they are one event.
    #[inline]
    fn move_inside(&mut self, die: u32, work: Work) {
        let level = usize::from(self.pages.page(u32::from(work.page)).level);
        self.dies[die as usize].moving = true;
        let senses_ns = u64::from(work.pages) * self.timing.read_ns[level];
        self.run(die, work, self.now, senses_ns + self.timing.program_ns[level], Lane::Other);
    }

    #[inline]
    fn copy_back(&mut self, die: u32, work: Work) {
        let pages = work.page..work.page + u16::from(work.pages);
        let work_ns = pages.map(|page| self.copy_back_ns(page)).sum();
        self.dies[die as usize].began_at = self.now;
        self.run(die, work, self.now, work_ns, Lane::Other);
    }

    #[inline]
    fn copy_back_ns(&self, page: u16) -> u64 {
        let level = usize::from(self.pages.page(u32::from(page)).level);
        self.timing.read_ns[level] + self.timing.program_ns[level]
    }

    /// Lets a copy-back end after the page that it is at; its end tells how many there were. Any other work is
    /// left alone.
    pub fn cut(&mut self, die: u32) {
        let DieLine { array, at_work, began_at, .. } = self.dies[die as usize];
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
        self.agenda.remove(Lane::Other, ends + left_ns, Owner::Die(die), self.now);
        self.agenda.add(Lane::Other, ends, Owner::Die(die), self.now);
    }

    #[inline(always)]
    fn program(&mut self, die: u32, work: Work, begin: u64) {
        let level = usize::from(self.pages.page(u32::from(work.page)).level);
        let lane = Lane::Program(self.program_lanes[level]);
        self.run(die, work, begin, self.timing.program_ns[level], lane);
    }

    /// The cell array works for a time from `begin` on.
    #[inline(always)]
    fn run(&mut self, die: u32, work: Work, begin: u64, work_ns: u64, lane: Lane) {
        let ends = self.occupy(die, work, begin, work_ns);
        self.agenda.add(lane, ends, Owner::Die(die), self.now);
    }

    /// Takes the cell array for a time; returns when it ends.
    #[inline]
    fn occupy(&mut self, die: u32, work: Work, begin: u64, work_ns: u64) -> u64 {
        let line = &mut self.dies[die as usize];
        let programs = work.kind == WorkKind::Program;
        line.array = if programs { CellArray::Programming } else { CellArray::Working };
        line.at_work = work;
        line.busy_ns += work_ns;
        let ends = begin + work_ns;
        self.recorder.note(|| Interval::of_array(die, work, line.moving, begin, ends));
        ends
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
    #[inline(always)]
    fn unload(&mut self, die: u32, work: Work) {
        let line = &mut self.dies[die as usize];
        line.register = Register::Out;
        line.in_register = work;
        line.array = if self.timing.cache_read { CellArray::Idle } else { CellArray::Holding };
        self.request_bus(die, Direction::Out);
    }

    /// What is in the register is programmed from `begin` on.
    #[inline(always)]
    fn program_loaded(&mut self, die: u32, begin: u64) {
        let line = &mut self.dies[die as usize];
        line.register = Register::Free;
        let work = line.in_register;
        line.moving = work.kind == WorkKind::Move;
        self.program(die, work, begin);
    }

    /// The cell array of a die has come to the end of its work.
    #[inline(always)]
    fn array_ended(&mut self, die: u32) -> Option<Work> {
        if self.dies[die as usize].at_work.kind == WorkKind::Read {
            self.sensed(die);
            return None;
        }
        self.worked(die)
    }

    /// A page has been sensed.
    #[inline(always)]
    fn sensed(&mut self, die: u32) {
        let line = &mut self.dies[die as usize];
        if line.register == Register::Free {
            let work = line.at_work;
            self.unload(die, work);
        } else {
            line.array = CellArray::Holding;
        }
    }

    /// The cell array has come to the end of anything but a read.
    #[inline(always)]
    fn worked(&mut self, die: u32) -> Option<Work> {
        let line = &mut self.dies[die as usize];
        let work = line.at_work;
        match work.kind {
            WorkKind::Move if !line.moving => {
                // Its pages cross the bus, and come back.
                line.array = CellArray::Holding;
                self.load(die, work);
                None
            }
            _ => {
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
}
