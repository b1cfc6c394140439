//! The order of the commands of a die.

use crate::drive::Drive;
use crate::map::NONE;
use crate::memory::prefetch;
use crate::policy::NOT_CLOSED;
use crate::spec::Schedule;
use crate::write_frontier::WriteFrontier;
use softflash_nand::timeline::Accepted;
use softflash_nand::{Work, WorkKind};

impl Drive {
    /// Starts work on a die as long as it accepts some.
    #[inline(always)]
    pub(crate) fn feed(&mut self, die: u32, accepts: Accepted) {
        let queue = &self.dies[die as usize];
        if queue.writes + queue.collecting == 0 {
            self.feed_reads(die, accepts);
        } else if accepts.any() {
            self.feed_all(die, accepts);
        }
    }

    /// As [`feed`](Drive::feed), for a die that has only reads.
    #[inline(always)]
    fn feed_reads(&mut self, die: u32, mut accepts: Accepted) {
        while accepts.has(WorkKind::Read)
            && let Some(read) = self.dies[die as usize].reads.pop(&self.pages)
        {
            accepts = self.read(die, read);
        }
    }

    /// A die reads a page.
    #[inline(always)]
    fn read(&mut self, die: u32, page: u32) -> Accepted {
        let row = self.pages.get(page).row;
        self.flash.start(die, Work { tag: page, page: row, pages: 1, kind: WorkKind::Read })
    }

    /// As [`feed`](Drive::feed), for a die that has writes or collection.
    #[inline(never)]
    fn feed_all(&mut self, die: u32, mut accepts: Accepted) {
        while accepts.any()
            && let Some(further) = self.start_next(die, accepts)
        {
            accepts = further;
        }
    }

    /// Starts the next work: reads before or after older writes, as the schedule requires;
    /// collection before writes if it has fallen behind, otherwise in idle time. Returns the kinds
    /// of work that the die still accepts; `None` if no work was started.
    #[inline(always)]
    fn start_next(&mut self, die: u32, accepts: Accepted) -> Option<Accepted> {
        let queue = &self.dies[die as usize];
        let read = queue.reads.first();
        if read == NONE {
            return self.write_or_collect(die, accepts);
        }
        let first = queue.writes == 0
            || self.layout.schedule == Schedule::ReadsFirst
            || self.is_oldest(die, read);
        if !first && let Some(further) = self.write_or_collect(die, accepts) {
            return Some(further);
        }
        self.start_read(die, accepts)
    }

    /// The write frontiers of a die.
    #[inline]
    fn frontiers_of(&self, die: u32) -> std::ops::Range<u32> {
        let frontiers = self.shape.frontiers_per_die;
        die * frontiers..(die + 1) * frontiers
    }

    /// Whether a read is older than every waiting write of its die.
    #[inline]
    fn is_oldest(&self, die: u32, read: u32) -> bool {
        let range = self.frontiers_of(die);
        let frontiers = &self.blocks.frontiers[range.start as usize..range.end as usize];
        let order = self.pages.get(read).order;
        let older = |write: u32| (self.pages.get(write).order.wrapping_sub(order) as i32) < 0;
        !frontiers
            .iter()
            .any(|frontier| !frontier.writes.is_empty() && older(frontier.writes.first()))
    }

    #[inline]
    fn start_read(&mut self, die: u32, accepts: Accepted) -> Option<Accepted> {
        if !accepts.has(WorkKind::Read) {
            return None;
        }
        let read = self.dies[die as usize].reads.pop(&self.pages)?;
        Some(self.read(die, read))
    }

    /// Starts work for one of the write frontiers of a die: those with waiting writes in turn, then
    /// those that only collect.
    #[inline(always)]
    fn write_or_collect(&mut self, die: u32, accepts: Accepted) -> Option<Accepted> {
        // A die that accepts other work than reads accepts programs.
        if !accepts.has(WorkKind::Program) {
            return None;
        }
        let frontiers = self.frontiers_of(die);
        let mut frontier = frontiers.start + self.dies[die as usize].turn;
        let mut collectable = NONE;
        for _ in 0..self.shape.frontiers_per_die {
            let next = if frontier + 1 == frontiers.end { frontiers.start } else { frontier + 1 };
            let state = &self.blocks.frontiers[frontier as usize];
            if !state.writes.is_empty() {
                if let Some(further) = self.advance_frontier(die, frontier, accepts) {
                    self.dies[die as usize].turn = next - frontiers.start;
                    return Some(further);
                }
            } else if collectable == NONE && state.collects() {
                collectable = frontier;
            }
            frontier = next;
        }
        if collectable == NONE { None } else { self.collect(die, collectable, accepts) }
    }

    /// Starts a program for the host, or collection if it is due.
    #[inline(always)]
    fn advance_frontier(&mut self, die: u32, frontier: u32, accepts: Accepted) -> Option<Accepted> {
        let state = &self.blocks.frontiers[frontier as usize];
        let mut most = u32::MAX;
        if state.collects() {
            let left = self.left_to_move(state);
            most = self.shape.data_pages_from(frontier, state.next).saturating_sub(left);
            if state.is_moving() || left == 0 || most == 0 || state.pace.owes() {
                return self.collect(die, frontier, accepts);
            }
        } else if state.open == NONE {
            return None;
        }
        self.program(die, frontier, most)
    }

    /// Valid pages that the victim of a write frontier still has.
    #[inline]
    pub(crate) fn left_to_move(&self, frontier: &WriteFrontier) -> u32 {
        u32::from(self.blocks.valid[frontier.victim as usize] & !NOT_CLOSED)
    }

    /// Programs the host's next pages, up to the end of the row. At least one must wait.
    #[inline(always)]
    fn program(&mut self, die: u32, frontier: u32, most: u32) -> Option<Accepted> {
        if self.shape.is_row_a_page() {
            let page = self.blocks.frontiers[frontier as usize].next;
            let write = self.place_next_write(frontier, page)?;
            self.pages.end_queue(write);
            self.frontier_went_on(die, frontier, page + 1, 1);
            let work = Work { tag: write, page: page as u16, pages: 1, kind: WorkKind::Program };
            return Some(self.flash.start(die, work));
        }
        Some(self.program_row(die, frontier, most))
    }

    /// As [`program`](Drive::program), if several pages are programmed together, or some are
    /// parity.
    #[inline(never)]
    fn program_row(&mut self, die: u32, frontier: u32, most: u32) -> Accepted {
        let row_begins = self.blocks.frontiers[frontier as usize].next;
        let row = self.shape.row_of(row_begins);
        let row_ends = (u32::from(row) + 1) * self.shape.row_pages;
        let (mut page, mut data) = (row_begins, 0);
        let (mut first, mut last) = (NONE, NONE);
        while page < row_ends {
            if self.shape.is_parity(frontier, page) {
                self.counters.programmed_for_parity += 1;
            } else if data < most
                && let Some(write) = self.place_next_write(frontier, page)
            {
                first = if data == 0 { write } else { first };
                (last, data) = (write, data + 1);
            } else {
                break;
            }
            page += 1;
        }
        if last != NONE {
            self.pages.end_queue(last);
        }
        self.frontier_went_on(die, frontier, page, data);
        let pages = (page - row_begins) as u8;
        self.flash.start(die, Work { tag: first, page: row, pages, kind: WorkKind::Program })
    }

    /// Takes the oldest waiting page of a write frontier, and maps it to this page of the
    /// frontier's block.
    #[inline(always)]
    fn place_next_write(&mut self, frontier: u32, page: u32) -> Option<u32> {
        let write = self.blocks.frontiers[frontier as usize].writes.pop(&self.pages)?;
        let logical = self.pages.get(write).logical;
        self.place_at(frontier, page, logical);
        if let Some(buffer) = &mut self.buffer {
            buffer.begin(logical);
        }
        Some(write)
    }

    /// Advances a write frontier to this page, by `data` pages of the host.
    #[inline(always)]
    fn frontier_went_on(&mut self, die: u32, frontier: u32, page: u32, data: u32) {
        self.dies[die as usize].writes -= data;
        self.counters.programmed_for_host += u64::from(data);
        let state = &mut self.blocks.frontiers[frontier as usize];
        (state.next, state.programmed) = (page, page);
        state.pace.written += data;
        self.expect_next_writes(frontier);
        if page == self.shape.pages_per_block {
            self.close(frontier);
        }
    }

    /// Prefetches the map entries of the next programs of a write frontier: their requests may have
    /// arrived long ago. The number of waiting writes is unpredictable, so no branch depends on it:
    /// if one is missing, the one before it is prefetched again.
    #[inline(always)]
    fn expect_next_writes(&self, frontier: u32) {
        let next = self.blocks.frontiers[frontier as usize].writes.first_or_last();
        self.expect_old_page(self.pages.get(next).logical);
        let after = self.pages.behind(next);
        let after = if after == NONE { next } else { after };
        self.map.expect(self.pages.get(after).logical);
    }

    /// Prefetches the state that changes when a logical page is replaced.
    #[inline]
    pub(crate) fn expect_old_page(&self, logical: u32) {
        let physical = self.map.physical_of(logical);
        self.map.expect_change(physical);
        prefetch(&self.blocks.valid, self.shape.block_of(physical) as usize);
    }

    /// Work on a die has completed.
    #[inline(always)]
    pub(crate) fn work_completed(&mut self, die: u32, work: Work) {
        match work.kind {
            WorkKind::Read if self.pages.get(work.tag).merges => self.old_page_read(work.tag),
            WorkKind::Read => self.complete_read(work.tag),
            WorkKind::Program => self.programmed(work.tag),
            _ => self.collected(die, work),
        }
    }

    /// Collection work on a die has completed.
    #[inline(never)]
    fn collected(&mut self, die: u32, work: Work) {
        match work.kind {
            WorkKind::Erase => self.erased(work.tag),
            WorkKind::CopyBack => self.copied_back(die, work),
            _ => {}
        }
    }

    /// The page that a partial write changes has been read.
    #[cold]
    fn old_page_read(&mut self, page: u32) {
        let read = self.pages.get_mut(page);
        read.merges = false;
        let logical = read.logical;
        self.write_page(page, logical);
        self.front_changed();
    }

    /// A queue of the host's pages has been programmed.
    #[inline(always)]
    fn programmed(&mut self, mut page: u32) {
        while page != NONE {
            let behind = self.pages.behind(page);
            match &mut self.buffer {
                Some(buffer) => {
                    buffer.end(self.pages.get(page).logical);
                    self.pages.complete_page(page);
                }
                None => self.complete_write(page),
            }
            page = behind;
        }
        if self.buffer.is_some() {
            self.front_changed();
        }
    }
}
