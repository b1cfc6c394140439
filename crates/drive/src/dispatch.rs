//! The order of the commands of a die.

use crate::buffer::Buffer;
use crate::collect;
use crate::dies::Dies;
use crate::mapping::Mapping;
use crate::pages::{Pages, Purpose};
use crate::space::Space;
use crate::write_frontier::Due;
use softflash_base::AccessKind;
use softflash_mapping::NONE;
use softflash_nand::timeline::WorkKinds;
use softflash_nand::{Work, WorkKind};
use softflash_policy::order::{Decides, read_is_older};

/// The parts of a drive that the start of a command uses.
pub(crate) struct Dispatch<'a, M> {
    space: &'a mut Space<M>,
    dies: &'a mut Dies,
    pages: &'a mut Pages,
    buffer: &'a mut Option<Buffer>,
}

impl<'a, M: Mapping> Dispatch<'a, M> {
    #[inline(always)]
    pub(crate) fn new(
        space: &'a mut Space<M>,
        dies: &'a mut Dies,
        pages: &'a mut Pages,
        buffer: &'a mut Option<Buffer>,
    ) -> Dispatch<'a, M> {
        Dispatch { space, dies, pages, buffer }
    }

    /// Starts work on a die as long as it accepts some. Returns whether something may follow from
    /// it, as [`Space::has_follow_ups`] says.
    #[inline(always)]
    pub(crate) fn dispatch(self, die: u32, accepts: WorkKinds) -> bool {
        if !self.space.has_work(die) {
            self.dispatch_reads(die, accepts);
            return false;
        }
        if accepts.any() {
            let Dispatch { space, dies, pages, buffer } = self;
            dispatch_all(space, dies, pages, buffer, die, accepts);
        }
        true
    }

    /// As [`dispatch`](Dispatch::dispatch), for a die that has only reads.
    #[inline(always)]
    fn dispatch_reads(self, die: u32, mut accepts: WorkKinds) {
        while let Some(further) = self.dies.begin_read(die, accepts, self.pages, M::GATHERS) {
            accepts = further;
        }
    }

    /// Starts the next work: reads before or after older writes, as the schedule requires, but
    /// always before those that the die does not accept; collection before writes if it has fallen
    /// behind, otherwise in idle time. Returns the kinds
    /// of work that the die still accepts; `None` if no work was started.
    #[inline(always)]
    fn begin_next(&mut self, die: u32, accepts: WorkKinds) -> Option<WorkKinds> {
        let read = self.dies.first_read(die);
        if read == NONE {
            return self.write_or_collect(die, accepts);
        }
        let reclaims = self.space.next_reclaim(die);
        if reclaims != NONE {
            // A die that goes from read to read accepts nothing else: it has to come to its end.
            if !accepts.has(WorkKind::Program) {
                return None;
            }
            if let Some(further) = self.collect_or_write(die, reclaims, accepts) {
                self.space.reclaim_took_turn(reclaims);
                return Some(further);
            }
        }
        let first = !self.space.has_writes(die) || self.read_is_first(die, read);
        if !first && let Some(further) = self.write_or_collect(die, accepts) {
            return Some(further);
        }
        self.dies.begin_read(die, accepts, self.pages, M::GATHERS)
    }

    /// Goes on with a frontier that collects: with its collection, or with waiting writes if these
    /// are due before.
    fn collect_or_write(
        &mut self,
        die: u32,
        frontier: u32,
        accepts: WorkKinds,
    ) -> Option<WorkKinds> {
        match self.space.frontier(frontier).writes().is_empty() {
            true => self.collect_from(die, frontier, accepts),
            false => self.advance_frontier(die, frontier, accepts),
        }
    }

    /// Whether the oldest read of a die goes before its waiting writes.
    #[inline(always)]
    fn read_is_first(&self, die: u32, read: u32) -> bool {
        match self.dies.order() {
            Decides::Arrival => self.is_oldest(die, read),
            Decides::ReadsFirst => true,
            Decides::Deadline | Decides::Share => self.dies.read_ranks_first(die),
        }
    }

    /// Whether a read is older than every waiting write of its die.
    #[inline]
    fn is_oldest(&self, die: u32, read: u32) -> bool {
        let queues = self.space.frontiers_of(die).iter().map(|frontier| frontier.writes());
        let firsts = queues.filter(|writes| !writes.is_empty()).map(|writes| writes.first());
        read_is_older(self.pages.order(read), firsts.map(|write| self.pages.order(write)))
    }

    /// Starts work for one of the write frontiers of a die: those with waiting writes in turn, then
    /// those that only collect.
    #[inline(always)]
    fn write_or_collect(&mut self, die: u32, accepts: WorkKinds) -> Option<WorkKinds> {
        // A die that accepts other work than reads accepts programs.
        if !accepts.has(WorkKind::Program) {
            return None;
        }
        if M::BANDED && self.space.has_erase(die) {
            return self.erase(die, accepts);
        }
        if self.space.has_map_on_flash()
            && let Some(further) = self.write_map(die, accepts)
        {
            return Some(further);
        }
        let frontiers = self.space.shape().frontiers_of(die);
        let mut frontier = frontiers.start + self.space.cursor(die);
        let mut collectable = NONE;
        for _ in frontiers.clone() {
            let next = if frontier + 1 == frontiers.end { frontiers.start } else { frontier + 1 };
            let state = self.space.frontier(frontier);
            if !state.writes().is_empty() {
                if let Some(further) = self.advance_frontier(die, frontier, accepts) {
                    self.space.set_cursor(die, next - frontiers.start);
                    return Some(further);
                }
            } else if collectable == NONE
                && state.collects()
                && self.space.can_collect(frontier)
                && !self.space.holds_collection()
            {
                collectable = frontier;
            }
            frontier = next;
        }
        if collectable == NONE {
            return None;
        }
        self.space.collects_in_idle_time(collectable, true);
        self.collect_from(die, collectable, accepts)
    }

    /// Starts the erase of a block whose pages have moved to other bands: the host may wait for it.
    #[inline(never)]
    fn erase(&mut self, die: u32, accepts: WorkKinds) -> Option<WorkKinds> {
        if !accepts.has(WorkKind::Erase) {
            return None;
        }
        let block = self.space.take_erase(die)?;
        Some(collect::erase(self.space, self.dies, die, block))
    }

    /// Starts work for the frontiers of the map's pages, which go before others: otherwise changes
    /// would come faster than they are programmed.
    #[inline(never)]
    fn write_map(&mut self, die: u32, accepts: WorkKinds) -> Option<WorkKinds> {
        let streams = self.space.streams();
        let of_map = self.space.shape().frontiers_of(die).skip(streams as usize - 1);
        for frontier in of_map.step_by(streams as usize) {
            if !self.space.frontier(frontier).writes().is_empty()
                && let Some(further) = self.advance_frontier(die, frontier, accepts)
            {
                return Some(further);
            }
        }
        None
    }

    /// Starts a program for the host, or collection if it is due.
    #[inline(always)]
    fn advance_frontier(
        &mut self,
        die: u32,
        frontier: u32,
        accepts: WorkKinds,
    ) -> Option<WorkKinds> {
        match self.space.due(frontier) {
            Due::Collection => {
                let collector = self.space.collector_for(frontier);
                if collector == NONE {
                    return None;
                }
                self.space.collects_in_idle_time(collector, false);
                self.collect_from(die, collector, accepts)
            }
            Due::Program { most } if self.space.fills_row(frontier, most) => {
                self.program(die, frontier, most)
            }
            Due::Program { .. } => None,
            Due::Nothing => None,
        }
    }

    #[inline(always)]
    fn collect_from(&mut self, die: u32, frontier: u32, accepts: WorkKinds) -> Option<WorkKinds> {
        collect::step(self.space, self.dies, die, frontier, accepts)
    }

    /// Programs the host's next pages, up to the end of the row. At least one must wait.
    #[inline(always)]
    fn program(&mut self, die: u32, frontier: u32, most: u32) -> Option<WorkKinds> {
        if self.space.shape().is_row_a_page() {
            let page = self.space.frontier(frontier).next();
            let block = self.space.frontier(frontier).open_block();
            let write = self.place_next_write(die, frontier, page)?;
            self.pages.end_queue(write);
            self.frontier_went_on(frontier, page + 1, 1);
            let row = self.space.shape().timed_row(frontier, page as u16);
            let work = Work { tag: write, page: row, pages: 1, kind: WorkKind::Program };
            return Some(self.dies.begin_on(die, block, work));
        }
        let Dispatch { space, dies, pages, buffer } = self;
        Some(Dispatch::new(space, dies, pages, buffer).program_row(die, frontier, most))
    }

    /// As [`program`](Dispatch::program), if several pages are programmed together, or some are
    /// parity.
    #[inline(never)]
    fn program_row(mut self, die: u32, frontier: u32, most: u32) -> WorkKinds {
        let (begin, mut page) = {
            let state = self.space.frontier(frontier);
            (state.programmed(), state.next())
        };
        let block = self.space.frontier(frontier).open_block();
        let row = self.space.shape().row_of(page);
        let row_ends = self.space.shape().row_end(row);
        let mut data = 0;
        let (mut first, mut last) = (NONE, NONE);
        while page < row_ends {
            if self.space.shape().is_parity(frontier, page) {
                self.space.count_parity(1);
            } else if data < most
                && let Some(write) = self.place_next_write(die, frontier, page)
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
        if M::GATHERS && self.space.shape().is_packed() {
            page = self.space.pad(frontier, page);
        }
        self.frontier_went_on(frontier, page, data);
        let pages = self.space.shape().flash_page_of(page - begin) as u8;
        let row = self.space.shape().timed_row(frontier, row);
        let work = Work { tag: first, page: row, pages, kind: WorkKind::Program };
        self.dies.begin_on(die, block, work)
    }

    /// Takes the oldest waiting page of a write frontier, and maps it to this page of the
    /// frontier's block.
    #[inline(always)]
    fn place_next_write(&mut self, die: u32, frontier: u32, page: u32) -> Option<u32> {
        let write = self.space.take_write(die, frontier, self.pages)?;
        self.dies.begins(die, AccessKind::Write);
        let logical = self.pages.logical(write);
        if M::BANDED && self.pages.purpose(write) == Purpose::Move {
            let from = self.pages.flash_page(write);
            self.space.place_moved_at(frontier, page, (logical, from));
            return Some(write);
        }
        self.space.place_at(frontier, page, logical);
        self.space.entry_changes(logical);
        if let Some(buffer) = self.buffer {
            buffer.begin_program(logical);
        }
        Some(write)
    }

    /// Advances a write frontier to this page, by `data` pages of the host.
    #[inline(always)]
    fn frontier_went_on(&mut self, frontier: u32, page: u32, data: u32) {
        self.space.prefetch_next_writes(frontier, self.pages);
        match M::BANDED {
            true => self.space.advance_in_band(frontier, page, data),
            false => self.space.advance(frontier, page, data),
        }
    }
}

/// As [`Dispatch::dispatch`], for a die that has writes or collection. The parts are separate
/// arguments because those are passed in registers.
#[inline(never)]
fn dispatch_all<M: Mapping>(
    space: &mut Space<M>,
    dies: &mut Dies,
    pages: &mut Pages,
    buffer: &mut Option<Buffer>,
    die: u32,
    mut accepts: WorkKinds,
) {
    let mut dispatch = Dispatch::new(space, dies, pages, buffer);
    while accepts.any()
        && let Some(further) = dispatch.begin_next(die, accepts)
    {
        accepts = further;
    }
}
