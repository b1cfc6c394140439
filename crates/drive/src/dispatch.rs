//! What a die does next.

use crate::drive::{Drive, MERGE, PendingRead};
use crate::gang::Gang;
use crate::map::NONE;
use crate::memory::prefetch;
use crate::policy::NOT_CLOSED;
use crate::spec::Schedule;
use softflash_nand::{Work, WorkKind};

impl Drive {
    /// Gives a die work for as long as it takes some.
    #[inline(always)]
    pub(crate) fn feed(&mut self, die: u32) {
        let queue = &self.dies[die as usize];
        if queue.writes + queue.collecting == 0 {
            self.feed_reads(die);
        } else if self.flash.may_accept(die) {
            self.feed_all(die);
        }
    }

    /// As [`feed`](Drive::feed), for a die that has nothing but reads.
    #[inline(always)]
    fn feed_reads(&mut self, die: u32) {
        while self.flash.accepts(die, WorkKind::Read)
            && let Some(read) = self.dies[die as usize].reads.pop_front()
        {
            let work = Work { tag: read.tag, page: read.row, pages: 1, kind: WorkKind::Read };
            self.flash.start(die, work);
        }
    }

    /// As [`feed`](Drive::feed), for a die that has something to write or to collect.
    #[inline(never)]
    fn feed_all(&mut self, die: u32) {
        while let Some(work) = self.next_work(die) {
            self.flash.start(die, work);
            if !self.flash.may_accept(die) {
                return;
            }
        }
    }

    /// Reads before or after older writes, as the schedule says; of the writes, collection where it has
    /// fallen behind; and collection in idle time.
    #[inline(always)]
    fn next_work(&mut self, die: u32) -> Option<Work> {
        let queue = &self.dies[die as usize];
        let Some(&read) = queue.reads.front() else { return self.write_or_collect(die) };
        let first = queue.writes == 0
            || self.layout.schedule == Schedule::ReadsFirst
            || self.is_oldest(die, &read);
        let write = if first { None } else { self.write_or_collect(die) };
        write.or_else(|| self.start_read(die, read))
    }

    /// The gangs of a die.
    #[inline]
    fn gangs_of(&self, die: u32) -> std::ops::Range<u32> {
        let gangs = self.shape.gangs_per_die;
        die * gangs..(die + 1) * gangs
    }

    /// Whether a read came before every write that waits on its die.
    #[inline]
    fn is_oldest(&self, die: u32, read: &PendingRead) -> bool {
        let range = self.gangs_of(die);
        let gangs = &self.gangs[range.start as usize..range.end as usize];
        let older = |write: u32| (write.wrapping_sub(read.order) as i32) < 0;
        !gangs.iter().any(|gang| gang.writes.front().is_some_and(|write| older(write.order)))
    }

    #[inline]
    fn start_read(&mut self, die: u32, read: PendingRead) -> Option<Work> {
        if !self.flash.accepts(die, WorkKind::Read) {
            return None;
        }
        self.dies[die as usize].reads.pop_front();
        Some(Work { tag: read.tag, page: read.row, pages: 1, kind: WorkKind::Read })
    }

    /// Work for one of the gangs of a die: those whose host waits take turns, then those that only have
    /// something to collect.
    #[inline(always)]
    fn write_or_collect(&mut self, die: u32) -> Option<Work> {
        // Whatever a die takes beside reads, it takes programs as well.
        if !self.flash.accepts(die, WorkKind::Program) {
            return None;
        }
        let gangs = self.gangs_of(die);
        let mut gang = gangs.start + self.dies[die as usize].turn;
        let mut collectable = NONE;
        for _ in 0..self.shape.gangs_per_die {
            let next = if gang + 1 == gangs.end { gangs.start } else { gang + 1 };
            let state = &self.gangs[gang as usize];
            if !state.writes.is_empty() {
                if let Some(work) = self.advance_gang(die, gang) {
                    self.dies[die as usize].turn = next - gangs.start;
                    return Some(work);
                }
            } else if collectable == NONE && state.collects() {
                collectable = gang;
            }
            gang = next;
        }
        if collectable == NONE { None } else { self.collect(die, collectable) }
    }

    /// A program for the host, or collection if that is due.
    #[inline(always)]
    fn advance_gang(&mut self, die: u32, gang: u32) -> Option<Work> {
        let state = &self.gangs[gang as usize];
        if !state.collects() {
            return if state.open == NONE { None } else { self.program(die, gang, u32::MAX) };
        }
        let left = self.left_to_move(state);
        let room = self.shape.data_pages_from(gang, state.next).saturating_sub(left);
        if state.is_moving() || left == 0 || room == 0 || state.pace.owes() {
            return self.collect(die, gang);
        }
        self.program(die, gang, room)
    }

    /// Valid pages of the block that a gang collects.
    #[inline]
    pub(crate) fn left_to_move(&self, gang: &Gang) -> u32 {
        u32::from(self.valid[gang.victim as usize] & !NOT_CLOSED)
    }

    /// Programs the host's next pages, up to the end of the row.
    #[inline(always)]
    fn program(&mut self, die: u32, gang: u32, most: u32) -> Option<Work> {
        let mut page = self.gangs[gang as usize].next;
        let row = self.shape.row_of(page);
        let row_begins = page;
        let row_ends = (u32::from(row) + 1) * self.shape.row_pages;
        let mut data = 0;
        while page < row_ends {
            if self.shape.is_parity(gang, page) {
                self.counters.programmed_for_parity += 1;
            } else if data < most
                && let Some(write) = self.gangs[gang as usize].writes.pop_front()
            {
                self.place_at(gang, page, write.logical);
                data += 1;
                let programming = &mut self.dies[die as usize].programming;
                match &mut self.buffer {
                    Some(buffer) => {
                        buffer.begin(write.logical);
                        programming.push_back(write.logical);
                    }
                    None => programming.push_back(write.request),
                }
            } else {
                break;
            }
            page += 1;
        }
        self.dies[die as usize].writes -= data;
        self.counters.programmed_for_host += u64::from(data);
        let state = &mut self.gangs[gang as usize];
        (state.next, state.programmed) = (page, page);
        state.pace.written += data;
        self.expect_next_writes(gang);
        if page == self.shape.pages_per_block {
            self.close(gang);
        }
        let pages = (page - row_begins) as u8;
        Some(Work { tag: data, page: row, pages, kind: WorkKind::Program })
    }

    /// Makes ready for the next programs of a gang: it may be long since their requests came in.
    #[inline]
    fn expect_next_writes(&self, gang: u32) {
        let writes = &self.gangs[gang as usize].writes;
        if let Some(next) = writes.front() {
            self.expect_old_page(next.logical);
        }
        if let Some(after) = writes.get(self.shape.row_pages as usize) {
            self.map.expect(after.logical);
        }
    }

    /// Makes ready for the replacement of a logical page.
    #[inline]
    pub(crate) fn expect_old_page(&self, logical: u32) {
        let physical = self.map.physical_of(logical);
        self.map.expect_change(physical);
        prefetch(&self.valid, self.shape.block_of(physical) as usize);
    }

    /// Work on a die has ended.
    #[inline(always)]
    pub(crate) fn work_ended(&mut self, die: u32, work: Work) {
        match work.kind {
            WorkKind::Read if work.tag & MERGE == 0 => self.end_read(work.tag),
            WorkKind::Read => self.old_page_read(work.tag & !MERGE),
            WorkKind::Program => self.programmed(die, work.tag),
            WorkKind::Erase => self.erased(work.tag),
            WorkKind::CopyBack => self.copied_back(die, work),
            WorkKind::Move => {}
        }
    }

    /// The page that a partial write changes has been read.
    #[cold]
    fn old_page_read(&mut self, place: u32) {
        self.merging_free.push(place);
        self.write_page(self.merging[place as usize]);
        self.front_changed();
    }

    /// A die has programmed so many of the host's pages.
    #[inline]
    fn programmed(&mut self, die: u32, pages: u32) {
        for _ in 0..pages {
            let Some(page) = self.dies[die as usize].programming.pop_front() else {
                unreachable!("more pages programmed than were begun")
            };
            match &mut self.buffer {
                Some(buffer) => buffer.end(page),
                None => self.end_write(page),
            }
        }
        if self.buffer.is_some() {
            self.front_changed();
        }
    }
}
