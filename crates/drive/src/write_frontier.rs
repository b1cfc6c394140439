//! The write frontier of the blocks that are written and collected together: it takes the host's
//! pages and those that collection moves, and has at most one victim at a time.

use crate::pages::{Pages, Queue};
use crate::shape::Shape;
use softflash_mapping::{Blocks, NONE, Pace, PageMap};
use softflash_policy::Policies;

/// Pages that collection moves in the map at once.
const CHUNK_PAGES: u32 = 16;

/// A write frontier: one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct WriteFrontier {
    /// Pages that wait to be programmed.
    writes: Queue,
    /// Its number.
    number: u32,
    /// The block being written; [`NONE`] while there is none to write.
    open: u32,
    /// The next page of it to be mapped.
    next: u32,
    /// The next page of it to be programmed: moved pages are mapped in chunks, and programmed row
    /// by row.
    programmed: u32,
    /// Blocks closed so far in the group; of several frontiers, the first counts.
    closed: u32,
    /// The block being collected; [`NONE`] while none is.
    victim: u32,
    /// The page from which on its valid pages are still to be moved.
    cursor: u32,
    /// The progress of the host and of collection since the victim was chosen.
    pace: Pace,
    /// Where several pages fill a flash page: the pages that wait to be programmed, and the pages
    /// and flash pages that collection has read since its last program.
    waiting: u32,
    read: Gathered,
    /// Whether the collection of the victim began before the run, and whether it goes on in idle
    /// time.
    begun_before: bool,
    in_idle_time: bool,
}

/// Pages that collection has read since its last program, and the flash pages that they came from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gathered {
    pub(crate) pages: u16,
    pub(crate) flash_pages: u16,
    /// Whether they came from an SLC cache.
    pub(crate) from_slc: bool,
}

/// The next operation of a write frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Collection.
    Collection,
    /// The program of so many pages of the host, at most.
    Program { most: u32 },
    /// Nothing: no block is open.
    Nothing,
}

/// Moved pages that are programmed together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MovedRow {
    /// The row in the block.
    pub(crate) row: u16,
    /// Pages with data.
    pub(crate) data: u32,
    /// What was read for them, where several pages fill a flash page.
    pub(crate) read: Gathered,
    /// Pages with parity.
    pub(crate) parity: u32,
}

impl WriteFrontier {
    /// A write frontier that writes its first block.
    pub(crate) fn new(number: u32, first_block: u32) -> WriteFrontier {
        WriteFrontier {
            writes: Queue::EMPTY,
            number,
            open: first_block,
            next: 0,
            programmed: 0,
            closed: 0,
            victim: NONE,
            cursor: 0,
            pace: Pace::default(),
            waiting: 0,
            read: Gathered::default(),
            begun_before: false,
            in_idle_time: false,
        }
    }

    /// A run begins.
    pub(crate) fn begin_run(&mut self) {
        self.begun_before = self.collects();
    }

    /// The next step of its collection is in idle time, or not.
    #[inline]
    pub(crate) fn set_in_idle_time(&mut self, in_idle_time: bool) {
        self.in_idle_time = in_idle_time && self.begun_before;
    }

    /// Whether the pages that it moves are not counted: an idle die has moved them before the run.
    #[inline]
    pub(crate) fn moves_uncounted(&self) -> bool {
        self.in_idle_time
    }

    /// Pages that wait to be programmed.
    #[inline]
    pub(crate) fn writes(&self) -> Queue {
        self.writes
    }

    /// Adds a page to be programmed.
    #[inline]
    pub(crate) fn queue_write(&mut self, page: u32, pages: &mut Pages) {
        self.writes.push(pages, page);
        self.waiting += 1;
    }

    /// Takes the oldest page that waits to be programmed.
    #[inline]
    pub(crate) fn take_write(&mut self, pages: &Pages) -> Option<u32> {
        let page = self.writes.pop(pages)?;
        self.waiting -= 1;
        Some(page)
    }

    /// The number of pages that wait to be programmed.
    #[inline]
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting
    }

    /// The next page of the open block to be mapped.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// The block being written; [`NONE`] while there is none to write.
    #[inline]
    pub(crate) fn open_block(&self) -> u32 {
        self.open
    }

    /// The next page of it to be programmed. Pages up to the next to be mapped are in the
    /// controller: those of collection, or the first of a flash page that others will fill.
    #[inline]
    pub(crate) fn programmed(&self) -> u32 {
        self.programmed
    }

    /// Pages after those that wait, up to the end of their row; those of a whole row if they end
    /// with one.
    #[inline]
    pub(crate) fn to_row_end(&self, shape: &Shape) -> u32 {
        let end = self.next + self.waiting;
        shape.row_end(shape.row_of(end)) - end
    }

    /// Whether mapped flash pages of moved data are still to be programmed.
    #[inline]
    pub(crate) fn is_moving(&self, shape: &Shape) -> bool {
        self.programmed < shape.flash_page_begin(self.next)
    }

    #[inline]
    pub(crate) fn collects(&self) -> bool {
        self.victim != NONE
    }

    /// Valid pages that the victim still has. There must be one.
    #[inline]
    pub(crate) fn left_to_move(&self, blocks: &Blocks) -> u32 {
        blocks.valid_in(self.victim)
    }

    /// The next operation of a write frontier: collection, if the host's writes have left it behind
    /// or leave it no room.
    #[inline(always)]
    pub(crate) fn due(&self, shape: &Shape, blocks: &Blocks) -> Due {
        if self.collects() {
            let left = self.left_to_move(blocks);
            let most = self.room_beside(left, shape);
            if self.is_moving(shape) || left == 0 || most == 0 || self.pace.owes() {
                return Due::Collection;
            }
            return Due::Program { most };
        }
        if self.open == NONE { Due::Nothing } else { Due::Program { most: u32::MAX } }
    }

    /// Pages that the host can write beside `left` pages that are still to be moved, in flash pages
    /// of its own or the rest of one.
    #[inline(always)]
    pub(crate) fn room_beside(&self, left: u32, shape: &Shape) -> u32 {
        let free = shape.data_pages_from(self.number, self.next);
        let most = free.saturating_sub(left);
        if !shape.is_packed() {
            return most;
        }
        // What is unused of the host's last flash page is lost to collection.
        let begun = self.next - shape.flash_page_begin(self.next);
        shape.flash_page_begin(begun + most).saturating_sub(begun)
    }

    /// Advances to this page of the open block, by `data` pages of the host.
    #[inline(always)]
    pub(crate) fn advance(&mut self, page: u32, data: u32, shape: &Shape) {
        assert!(page > self.next, "frontier {} goes back to page {page}", self.number);
        (self.next, self.programmed) = (page, shape.flash_page_begin(page));
        self.pace.wrote(data);
    }

    /// So many pages of the group's room are taken: by the host in another frontier, or unused.
    pub(crate) fn wrote_elsewhere(&mut self, data: u32) {
        self.pace.wrote(data);
    }

    /// Whether collection has fallen behind the host.
    pub(crate) fn owes(&self) -> bool {
        self.pace.owes()
    }

    /// Returns the open block, which is full.
    pub(crate) fn take_open(&mut self) -> u32 {
        assert_ne!(self.open, NONE, "frontier {} closes no block", self.number);
        std::mem::replace(&mut self.open, NONE)
    }

    /// Counts a block of the group that is closed; returns its number.
    pub(crate) fn count_closed(&mut self) -> u32 {
        let number = self.closed;
        self.closed = number.wrapping_add(1);
        number
    }

    /// Opens a free block of the group; false if there is none.
    pub(crate) fn open_next(
        &mut self,
        group: u32,
        blocks: &mut Blocks,
        policies: &Policies,
    ) -> bool {
        assert_eq!(self.open, NONE, "frontier {} opens a second block", self.number);
        let Some(block) = blocks.take_free(group, policies) else { return false };
        (self.open, self.next, self.programmed) = (block, 0, 0);
        true
    }

    /// Writes this block from now on, whose pages up to `next` are written.
    pub(crate) fn reopen(&mut self, block: u32, next: u32, shape: &Shape) {
        assert_eq!(self.open, NONE, "frontier {} opens a second block", self.number);
        assert!(next < shape.pages_per_block(), "block {block} is open and full");
        (self.open, self.next, self.programmed) = (block, next, shape.flash_page_begin(next));
    }

    /// The number of the next block to be closed.
    pub(crate) fn closed(&self) -> u32 {
        self.closed
    }

    /// Sets the number of the next block to be closed.
    pub(crate) fn set_closed(&mut self, number: u32) {
        self.closed = number;
    }

    /// The block being collected; [`NONE`] while none is.
    pub(crate) fn victim(&self) -> u32 {
        self.victim
    }

    /// Begins to collect a block, while the host may write so many pages.
    pub(crate) fn begin_collection(
        &mut self,
        (victim, room): (u32, u32),
        shape: &Shape,
        map: &PageMap,
        blocks: &Blocks,
    ) {
        assert_eq!(self.victim, NONE, "frontier {} collects a second block", self.number);
        let to_move = blocks.valid_in(victim);
        self.victim = victim;
        self.cursor = shape.first_page_of(victim);
        self.pace = Pace::new(to_move, room);
        map.prefetch_block(self.cursor);
        self.prefetch_chunk(shape, map);
    }

    /// Moves the next pages of the victim in the map. Their places are known, so the map is written
    /// and not read.
    pub(crate) fn move_chunk(&mut self, shape: &Shape, map: &mut PageMap, blocks: &mut Blocks) {
        let end = shape.first_page_of(self.victim + 1);
        let open = shape.first_page_of(self.open);
        let WriteFrontier { number, mut next, mut cursor, .. } = *self;
        let most = shape.data_pages_from(number, next).min(self.chunk(shape)) as u16;
        let mut source = NONE;
        if most == 0 {
            // Only parity is left of the block: it is programmed, and the next one is opened.
            next = shape.pages_per_block();
        }
        let mut pages = 0;
        while pages < most
            && cursor < end
            && let Some(page) = map.next_valid(cursor, end)
        {
            while shape.is_parity(number, next) {
                next += 1;
            }
            map.relocate(page, open + next);
            if shape.is_packed() && shape.flash_page_of(page) != source {
                source = shape.flash_page_of(page);
                self.read.flash_pages += 1;
            }
            next += 1;
            cursor = page + 1;
            pages += 1;
        }
        assert!(next <= shape.pages_per_block(), "block {} has no page {next}", self.open);
        self.read.pages += if shape.is_packed() { pages } else { 0 };
        self.read.from_slc = shape.is_slc_block(self.victim);
        (self.next, self.cursor) = (next, cursor);
        self.pace.moved(pages.into());
        blocks.move_valid(self.victim, self.open, pages);
        map.prefetch_behind(open + next);
        self.prefetch_chunk(shape, map);
    }

    /// Pages that collection moves in the map at once: up to the end of a row where several fill a
    /// flash page, because the row is programmed together.
    #[inline]
    fn chunk(&self, shape: &Shape) -> u32 {
        match shape.is_packed() {
            true => shape.row_end(shape.row_of(self.next)) - self.next,
            false => CHUNK_PAGES,
        }
    }

    /// Prefetches the map entries of the victim's next chunk, as far as it is known: they are
    /// scattered over memory.
    fn prefetch_chunk(&self, shape: &Shape, map: &PageMap) {
        let mut cursor = self.cursor;
        let end = shape.first_page_of(self.victim + 1);
        for _ in 0..CHUNK_PAGES {
            if cursor >= end {
                return;
            }
            let Some(page) = map.next_valid(cursor, end) else { return };
            map.prefetch_entry(map.logical_of(page));
            cursor = page + 1;
        }
        map.prefetch_behind(cursor);
    }

    /// Mapped pages of moved data that are still to be programmed, and the row of the first.
    #[inline]
    pub(crate) fn to_program(&self, shape: &Shape) -> (u16, u32) {
        (shape.row_of(self.programmed), self.next - self.programmed)
    }

    /// Takes the next row of moved pages to be programmed.
    #[inline]
    pub(crate) fn take_moved_row(&mut self, shape: &Shape) -> MovedRow {
        let row = shape.row_of(self.programmed);
        let row_ends = shape.row_end(row).min(shape.flash_page_begin(self.next));
        let pages = row_ends - self.programmed;
        let data = shape.data_pages_from(self.number, self.programmed)
            - shape.data_pages_from(self.number, row_ends);
        self.programmed = row_ends;
        let read = self.read;
        self.read = Gathered { from_slc: read.from_slc, ..Gathered::default() };
        MovedRow { row, data, parity: pages - data, read }
    }

    /// So many pages of moved data have been programmed.
    pub(crate) fn moved(&mut self, pages: u32) {
        self.programmed += pages;
        assert!(self.programmed <= self.next, "frontier {} programs free pages", self.number);
    }

    /// Whether the open block has been programmed to its end.
    #[inline]
    pub(crate) fn is_full(&self, shape: &Shape) -> bool {
        self.programmed == shape.pages_per_block()
    }

    /// Ends a collection: returns the victim, for its erase if all its valid pages have moved.
    #[inline]
    pub(crate) fn take_victim(&mut self) -> u32 {
        assert_ne!(self.victim, NONE, "frontier {} collects no block", self.number);
        (self.begun_before, self.in_idle_time) = (false, false);
        std::mem::replace(&mut self.victim, NONE)
    }
}
