//! The durations of all operations, and their events. Callers hand in dies and buses: each is
//! looked up once an event.

use super::bus::BusLine;
use super::die::{CellArray, DieLine, Register};
use super::event_queue::{EventClass, EventQueue, Owner};
use super::recorder::{Interval, Recorder};
use super::work::{Work, WorkKind};
use crate::cell::PageTable;
use crate::channel::Direction;
use crate::timing::{MAX_LEVELS, Timing};

/// The time that has been reached, and what is known of the time to come.
pub(super) struct Clock {
    pub(super) now: u64,
    pub(super) events: EventQueue,
    pub(super) timing: Timing,
    pub(super) pages: PageTable,
    /// Which levels take equally long to program: the first of them.
    program_classes: [u8; MAX_LEVELS],
    /// Moved pages stay inside their die.
    pub(super) copyback: bool,
    pub(super) recorder: Recorder,
}

impl Clock {
    pub(super) fn new(timing: Timing, pages: PageTable, dies: u32, channels: u32) -> Clock {
        let program_ns = &timing.program_ns;
        let first_alike = |ns: &u64| program_ns.iter().position(|first| first == ns).unwrap_or(0);
        Clock {
            now: 0,
            events: EventQueue::new(dies, channels),
            program_classes: std::array::from_fn(|level| first_alike(&program_ns[level]) as u8),
            timing,
            pages,
            copyback: false,
            recorder: Recorder::default(),
        }
    }

    /// The level of a page in its cells.
    #[inline]
    fn level(&self, page: u16) -> usize {
        usize::from(self.pages.page(u32::from(page)).level) % MAX_LEVELS
    }

    #[inline(always)]
    pub(super) fn read(&mut self, line: &mut DieLine, bus: &mut BusLine, work: Work) {
        let sense_ns = self.timing.read_ns[self.level(work.page)];
        let ends = self.occupy(line, work, self.now, sense_ns);
        // Where the next page cannot be sensed before this one is gone, nothing follows from its
        // end while the bus is busy.
        if !self.timing.cache_read && bus.takes_sense(ends, line.place, work.pages) {
            (line.array, line.register) = (CellArray::Holding, Register::Out);
            line.in_register = work;
        } else {
            self.events.add(EventClass::Sense, ends, Owner::Die(line.die), self.now);
        }
    }

    /// The pages of a move are sensed one after the other, before they cross the bus.
    pub(super) fn sense_moved(&mut self, line: &mut DieLine, work: Work) {
        let sense_ns = self.timing.read_ns[self.level(work.page)];
        let class = if work.pages == 1 { EventClass::Sense } else { EventClass::Other };
        self.run(line, work, self.now, u64::from(work.pages) * sense_ns, class);
    }

    /// Nothing happens on the bus between the senses of a move and its program, so they are one
    /// event.
    #[inline]
    pub(super) fn move_inside(&mut self, line: &mut DieLine, work: Work) {
        let level = self.level(work.page);
        line.moving = true;
        let senses_ns = u64::from(work.pages) * self.timing.read_ns[level];
        self.run(
            line,
            work,
            self.now,
            senses_ns + self.timing.program_ns[level],
            EventClass::Other,
        );
    }

    #[inline]
    pub(super) fn copy_back(&mut self, line: &mut DieLine, work: Work) {
        let pages = work.page..work.page + u16::from(work.pages);
        let work_ns = pages.map(|page| self.copy_back_ns(page)).sum();
        line.began_at = self.now;
        self.run(line, work, self.now, work_ns, EventClass::Other);
    }

    #[inline]
    fn copy_back_ns(&self, page: u16) -> u64 {
        let level = self.level(page);
        self.timing.read_ns[level] + self.timing.program_ns[level]
    }

    /// Lets a copy-back end after the page that it is at.
    pub(super) fn cut(&mut self, line: &mut DieLine) {
        let DieLine { die, array, at_work, began_at, .. } = *line;
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
        line.at_work.pages = pages;
        line.busy_ns -= left_ns;
        self.recorder.shorten(die, began_at, ends);
        self.events.remove(EventClass::Other, ends + left_ns, Owner::Die(die), self.now);
        self.events.add(EventClass::Other, ends, Owner::Die(die), self.now);
    }

    #[inline]
    pub(super) fn erase(&mut self, line: &mut DieLine, work: Work) {
        self.run(line, work, self.now, self.timing.erase_ns, EventClass::Erase);
    }

    /// Programs what is in the register, which is this, from `begin` on.
    #[inline(always)]
    pub(super) fn program_loaded(&mut self, line: &mut DieLine, work: Work, begin: u64) {
        line.register = Register::Free;
        line.moving = work.kind == WorkKind::Move;
        let level = self.level(work.page);
        let class = EventClass::Program(self.program_classes[level]);
        self.run(line, work, begin, self.timing.program_ns[level], class);
    }

    /// The cell array works for a time from `begin` on.
    #[inline(always)]
    fn run(&mut self, line: &mut DieLine, work: Work, begin: u64, work_ns: u64, class: EventClass) {
        let ends = self.occupy(line, work, begin, work_ns);
        self.events.add(class, ends, Owner::Die(line.die), self.now);
    }

    /// Takes the cell array for a time; returns when it ends.
    #[inline(always)]
    fn occupy(&mut self, line: &mut DieLine, work: Work, begin: u64, work_ns: u64) -> u64 {
        let programs = work.kind == WorkKind::Program;
        line.array = if programs { CellArray::Programming } else { CellArray::Working };
        line.at_work = work;
        line.busy_ns += work_ns;
        let ends = begin + work_ns;
        self.recorder.note(|| Interval::of_array(line.die, work, line.moving, begin, ends));
        ends
    }

    /// A program's data, or moved pages, want to cross the bus.
    #[inline(always)]
    pub(super) fn load(&mut self, line: &mut DieLine, bus: &mut BusLine, work: Work) {
        line.register = Register::In;
        line.in_register = work;
        self.request_bus(line, bus, work, Direction::In);
    }

    /// Pages that were sensed want to cross the bus.
    #[inline]
    pub(super) fn unload(&mut self, line: &mut DieLine, bus: &mut BusLine, work: Work) {
        line.register = Register::Out;
        line.in_register = work;
        line.array = if self.timing.cache_read { CellArray::Idle } else { CellArray::Holding };
        self.request_bus(line, bus, work, Direction::Out);
    }

    /// The cell array of a die has finished its work.
    #[inline(always)]
    pub(super) fn array_ended(&mut self, line: &mut DieLine, bus: &mut BusLine) -> Option<Work> {
        let work = line.at_work;
        match work.kind {
            WorkKind::Read => {
                if line.register == Register::Free {
                    self.unload(line, bus, work);
                } else {
                    line.array = CellArray::Holding;
                }
                None
            }
            WorkKind::Move if !line.moving => {
                // Its pages cross the bus, and come back.
                line.array = CellArray::Holding;
                self.load(line, bus, work);
                None
            }
            _ => {
                line.moving = false;
                line.array = CellArray::Idle;
                if line.register == Register::Loaded {
                    self.program_loaded(line, line.in_register, self.now);
                }
                Some(work)
            }
        }
    }
}
