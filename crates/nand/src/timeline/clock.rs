//! The durations of all operations, and their events. Callers pass dies and buses, so that each is
//! looked up once per event.

use super::bus::BusLine;
use super::die::{CellArray, DieLine, Passing, Register};
use super::event_queue::{EventClass, EventQueue, Owner};
use super::recorder::{Interval, Recorder};
use super::work::{Work, WorkKind};
use crate::channel::Direction;
use crate::timing::{LEVELS, SLC_LEVEL, Timing};

/// The current time, and the scheduled events.
pub(super) struct Clock {
    pub(super) now: u64,
    pub(super) events: EventQueue,
    pub(super) timing: Timing,
    /// The level of each page of a block, then of each in SLC mode.
    pub(super) levels: Box<[u8]>,
    /// For each level, the class of the ends of its programs.
    program_classes: [EventClass; LEVELS],
    /// The end of a transfer to an idle die needs no event if no other die waits: nothing can
    /// happen on the die before the end of the program.
    pub(super) silent_loads: bool,
    /// Moved pages stay inside their die.
    pub(super) copyback: bool,
    pub(super) recorder: Recorder,
}

impl Clock {
    /// A clock of dies whose pages have these [levels](crate::cell::PageTable::levels).
    pub(super) fn new(timing: Timing, levels: Box<[u8]>, dies: u32, channels: u32) -> Clock {
        Clock {
            now: 0,
            events: EventQueue::new(dies, channels),
            program_classes: EventClass::of_programs(&timing.program_ns),
            silent_loads: !timing.cache_program && !timing.suspends,
            timing,
            levels,
            copyback: false,
            recorder: Recorder::default(),
        }
    }

    /// The level of a page in its cells.
    #[inline]
    pub(super) fn level(&self, page: u16) -> usize {
        usize::from(self.levels[usize::from(page)]) % LEVELS
    }

    /// The level of the pages that a move senses.
    #[inline]
    fn level_moved(&self, work: Work) -> usize {
        if work.is_from_slc() { SLC_LEVEL.into() } else { self.level(work.page) }
    }

    #[inline(always)]
    pub(super) fn read(&mut self, line: &mut DieLine, bus: &mut BusLine, work: Work) {
        let sense_ns = self.timing.read_ns[self.level(work.page)];
        let ends = self.occupy(line, work, self.now, sense_ns, CellArray::Working);
        // Without a cache register the next page cannot be sensed before this one is transferred,
        // so the end of the sense has no effect while the bus is busy.
        if !self.timing.cache_read && bus.takes_sense(ends, line.place, work.pages) {
            (line.array, line.register) = (CellArray::Holding, Register::Out);
            line.outgoing = work;
        } else {
            self.events.add(EventClass::Sense, ends, Owner::Die(line.die), self.now);
        }
    }

    /// Senses the pages of a move one after the other, before they cross the bus.
    pub(super) fn sense_moved(&mut self, line: &mut DieLine, work: Work) {
        let sense_ns = self.timing.read_ns[self.level_moved(work)];
        let class = if work.pages == 1 { EventClass::Sense } else { EventClass::Other };
        let senses_ns = u64::from(work.pages) * sense_ns;
        self.run(line, work, self.now, senses_ns, class, CellArray::Working);
    }

    /// Senses the pages whose parts are packed into others.
    pub(super) fn sense_packed(&mut self, line: &mut DieLine, work: Work) {
        let (_, pages) = work.unpacked();
        let senses_ns = u64::from(pages) * self.timing.read_ns[self.level_moved(work)];
        self.run(line, work, self.now, senses_ns, EventClass::Other, CellArray::Working);
    }

    /// Bus time of parts that leave the die, and of the pages that return.
    pub(super) fn pack_ns(&self, work: Work) -> u64 {
        let (parts, pages) = work.unpacked();
        self.timing.parts_ns(parts, pages) + self.timing.transfer_ns(work.pages)
    }

    /// Moves pages inside the die. The bus is not used between the senses and the program, so they
    /// are one event.
    #[inline]
    pub(super) fn move_inside(&mut self, line: &mut DieLine, work: Work) {
        let level = self.level(work.page);
        line.moving = true;
        let senses_ns = u64::from(work.pages) * self.timing.read_ns[level];
        let work_ns = senses_ns + self.timing.program_ns[level];
        self.run(line, work, self.now, work_ns, EventClass::Other, CellArray::Working);
    }

    #[inline]
    pub(super) fn copy_back(&mut self, line: &mut DieLine, work: Work) {
        let pages = work.page..work.page + u16::from(work.pages);
        let work_ns = pages.map(|page| self.copy_back_ns(page)).sum();
        self.run(line, work, self.now, work_ns, EventClass::Other, CellArray::Working);
    }

    #[inline]
    fn copy_back_ns(&self, page: u16) -> u64 {
        let level = self.level(page);
        self.timing.read_ns[level] + self.timing.program_ns[level]
    }

    /// Ends a copy-back after its current page.
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
        let erase_ns = self.timing.erase_ns;
        self.run(line, work, self.now, erase_ns, EventClass::Erase, CellArray::Rewriting);
    }

    /// Programs `work`, the contents of the die's register, from `begin` on.
    #[inline(always)]
    pub(super) fn program_loaded(&mut self, line: &mut DieLine, work: Work, begin: u64) {
        line.register = Register::Free;
        line.moving = work.moves();
        let level = self.level(work.page);
        let class = self.program_class(level);
        let array = if line.moving { CellArray::Rewriting } else { CellArray::Programming };
        if line.moving {
            // The next transfer of the die is that of a read, and crosses the bus once.
            line.incoming.kind = WorkKind::Read;
        }
        self.run(line, work, begin, self.timing.program_ns[level], class, array);
    }

    /// The class of the ends of programs of a level.
    #[inline]
    pub(super) fn program_class(&self, level: usize) -> EventClass {
        self.program_classes[level]
    }

    /// Occupies the cell array for `work_ns` from `begin` on, and adds the event of its end.
    #[inline(always)]
    fn run(
        &mut self,
        line: &mut DieLine,
        work: Work,
        begin: u64,
        work_ns: u64,
        class: EventClass,
        array: CellArray,
    ) {
        let ends = self.occupy(line, work, begin, work_ns, array);
        self.events.add(class, ends, Owner::Die(line.die), self.now);
    }

    /// Occupies the cell array for `work_ns` from `begin` on; returns the end.
    #[inline(always)]
    fn occupy(
        &mut self,
        line: &mut DieLine,
        work: Work,
        begin: u64,
        work_ns: u64,
        array: CellArray,
    ) -> u64 {
        line.array = array;
        line.at_work = work;
        line.busy_ns += work_ns;
        (line.began_at, line.suspensions) = (begin, 0);
        let ends = begin + work_ns;
        self.recorder.note(|| Interval::of_array(line.die, work, line.moving, begin, ends));
        ends
    }

    /// Requests the bus for the data of a program or for moved pages.
    #[inline(always)]
    pub(super) fn load(&mut self, line: &mut DieLine, bus: &mut BusLine, work: Work) {
        line.register = Register::In;
        line.incoming = work;
        self.request_bus(line, bus, work, Direction::In);
    }

    /// Requests the bus for sensed pages.
    #[inline]
    pub(super) fn unload(&mut self, line: &mut DieLine, bus: &mut BusLine, work: Work) {
        line.register = Register::Out;
        line.outgoing = work;
        line.array = if self.timing.cache_read { CellArray::Idle } else { CellArray::Holding };
        self.request_bus(line, bus, work, Direction::Out);
    }

    /// Handles the end of the work in a die's cell array; returns the work that is complete with
    /// it.
    #[inline(always)]
    pub(super) fn array_ended(&mut self, line: &mut DieLine, bus: &mut BusLine) -> Option<Work> {
        if line.passing != Passing::None {
            return self.array_ended_beside_read(line, bus);
        }
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
            WorkKind::Move | WorkKind::Pack if !line.moving => {
                // Its pages cross the bus and return.
                line.array = CellArray::Holding;
                self.load(line, bus, work);
                None
            }
            _ => {
                line.moving = false;
                line.array = CellArray::Idle;
                if line.register == Register::Loaded {
                    self.program_loaded(line, line.incoming, self.now);
                }
                Some(work)
            }
        }
    }
}
