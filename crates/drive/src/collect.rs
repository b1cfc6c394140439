//! Garbage collection: moves the valid pages of a block to their write frontier, then erases the
//! block.
//!
//! Pages move in chunks: the map changes for a chunk at once, then the die moves the pages.
//! Copyback of single pages takes one command of the die for a chunk; reads cut it short, and the
//! host's writes wait for it.

use crate::drive::Drive;
use crate::map::{ENTRIES_PER_LINE, NONE};
use crate::policy::{self, Candidates, NOT_CLOSED};
use crate::write_frontier::{Pace, WriteFrontier};
use softflash_nand::timeline::Accepted;
use softflash_nand::{Work, WorkKind};

/// Pages of a chunk.
const CHUNK_PAGES: u16 = 16;

impl Drive {
    /// Maps a logical page to the next page of its write frontier, and invalidates its old page.
    #[inline]
    pub(crate) fn place(&mut self, frontier: u32, logical: u32) {
        self.place_at(frontier, self.blocks.frontiers[frontier as usize].next, logical);
    }

    /// As [`place`](Drive::place), to this page of the frontier's block.
    #[inline(always)]
    pub(crate) fn place_at(&mut self, frontier: u32, page: u32, logical: u32) {
        let block = self.blocks.frontiers[frontier as usize].open;
        let new = block * self.shape.pages_per_block + page;
        if page.is_multiple_of(ENTRIES_PER_LINE) {
            self.map.expect_behind(new);
        }
        let old = self.map.put(logical, new);
        self.blocks.valid[block as usize] += 1;
        self.invalidate(old);
    }

    /// Removes a physical page from the valid pages of its block; [`NONE`] has no effect.
    #[inline]
    pub(crate) fn invalidate(&mut self, physical: u32) {
        if physical != NONE {
            self.blocks.valid[self.shape.block_of(physical) as usize] -= 1;
        }
    }

    /// Closes the frontier's block, which is full, and opens a free one if there is one.
    pub(crate) fn close(&mut self, frontier: u32) {
        let state = &mut self.blocks.frontiers[frontier as usize];
        let block = std::mem::replace(&mut state.open, NONE);
        self.blocks.valid[block as usize] &= !NOT_CLOSED;
        self.blocks.closed[block as usize] = state.closed;
        state.closed = state.closed.wrapping_add(1);
        self.open(frontier);
    }

    /// Opens a free block; after the last one, chooses a victim for collection.
    fn open(&mut self, frontier: u32) {
        let state = &mut self.blocks.frontiers[frontier as usize];
        let free = &mut self.blocks.free[frontier as usize];
        let Some(block) = free.pop_front() else { return };
        (state.open, state.next, state.programmed) = (block, 0, 0);
        if free.is_empty() && !state.collects() {
            self.choose_victim(frontier);
        }
    }

    fn choose_victim(&mut self, frontier: u32) {
        let first = self.shape.first_block_of(frontier);
        let range = first as usize..(first + self.shape.blocks_per_frontier) as usize;
        let state = &mut self.blocks.frontiers[frontier as usize];
        let candidates = Candidates {
            valid: &self.blocks.valid[range.clone()],
            closed: &self.blocks.closed[range],
            now: state.closed,
        };
        let Some(chosen) = policy::choose(self.layout.victim, &candidates) else { return };
        let victim = first + chosen;
        let to_move = u32::from(self.blocks.valid[victim as usize]);
        self.blocks.valid[victim as usize] |= NOT_CLOSED;
        let room = self.shape.data_pages_from(frontier, state.next).saturating_sub(to_move);
        state.victim = victim;
        state.cursor = victim * self.shape.pages_per_block;
        state.pace = Pace { to_move, moved: 0, room, written: 0 };
        self.dies[self.shape.die_of(frontier) as usize].collecting += 1;
        self.map.expect_block(victim * self.shape.pages_per_block);
        self.expect_chunk(frontier);
    }

    /// Starts the next step of collection: moves the next row, or erases. Returns the kinds of work
    /// that the die still accepts.
    #[inline(never)]
    pub(crate) fn collect(
        &mut self,
        die: u32,
        frontier: u32,
        accepts: Accepted,
    ) -> Option<Accepted> {
        if !accepts.has(WorkKind::Move) {
            return None;
        }
        let state = &self.blocks.frontiers[frontier as usize];
        if !state.is_moving() {
            if self.left_to_move(state) == 0 {
                let victim = self.take_victim(frontier);
                self.counters.erases += 1;
                let work = Work { tag: victim, page: 0, pages: 1, kind: WorkKind::Erase };
                return Some(self.flash.start(die, work));
            }
            self.move_chunk(frontier);
        }
        Some(if self.copies_back {
            self.copy_back(die, frontier)
        } else {
            self.program_moved(die, frontier)
        })
    }

    /// Starts the copyback of the pages that have moved in the map; of one page only if a read
    /// waits.
    #[inline]
    fn copy_back(&mut self, die: u32, frontier: u32) -> Accepted {
        let state = &self.blocks.frontiers[frontier as usize];
        let queue = &mut self.dies[die as usize];
        queue.copies_back = true;
        let pages = if queue.reads.is_empty() { state.next - state.programmed } else { 1 };
        let page = self.shape.row_of(state.programmed);
        let work = Work { tag: frontier, page, pages: pages as u8, kind: WorkKind::CopyBack };
        self.flash.start(die, work)
    }

    /// A copyback has completed.
    pub(crate) fn copied_back(&mut self, die: u32, work: Work) {
        self.dies[die as usize].copies_back = false;
        self.counters.programmed_for_collection += u64::from(work.pages);
        let state = &mut self.blocks.frontiers[work.tag as usize];
        state.programmed += u32::from(work.pages);
        if state.programmed == self.shape.pages_per_block {
            self.close(work.tag);
        }
    }

    /// Starts the move of the next row of pages that have moved in the map.
    #[inline]
    fn program_moved(&mut self, die: u32, frontier: u32) -> Accepted {
        let state = &self.blocks.frontiers[frontier as usize];
        let row = self.shape.row_of(state.programmed);
        let row_ends = ((u32::from(row) + 1) * self.shape.row_pages).min(state.next);
        let pages = row_ends - state.programmed;
        let data = self.shape.data_pages_from(frontier, state.programmed)
            - self.shape.data_pages_from(frontier, row_ends);
        self.counters.programmed_for_collection += u64::from(data);
        self.counters.programmed_for_parity += u64::from(pages - data);
        self.blocks.frontiers[frontier as usize].programmed = row_ends;
        if row_ends == self.shape.pages_per_block {
            self.close(frontier);
        }
        let work = match data {
            0 => Work { tag: NONE, page: row, pages: pages as u8, kind: WorkKind::Program },
            _ => Work { tag: 0, page: row, pages: data as u8, kind: WorkKind::Move },
        };
        self.flash.start(die, work)
    }

    /// Moves the next pages of the victim in the map. Their places are known, so the map is written
    /// and not read.
    pub(crate) fn move_chunk(&mut self, frontier: u32) {
        let state = &mut self.blocks.frontiers[frontier as usize];
        let end = (state.victim + 1) * self.shape.pages_per_block;
        let open = state.open * self.shape.pages_per_block;
        let mut pages = 0;
        while pages < CHUNK_PAGES
            && state.cursor < end
            && let Some(page) = self.map.next_valid(state.cursor, end)
        {
            while self.shape.is_parity(frontier, state.next) {
                state.next += 1;
            }
            self.map.relocate(page, open + state.next);
            state.next += 1;
            state.cursor = page + 1;
            pages += 1;
        }
        state.pace.moved += u32::from(pages);
        self.blocks.valid[state.open as usize] += pages;
        self.blocks.valid[state.victim as usize] -= pages;
        self.map.expect_behind(open + state.next);
        self.expect_chunk(frontier);
    }

    /// Prefetches the map entries of a victim's next chunk, as far as it is known: they are
    /// scattered over memory.
    fn expect_chunk(&self, frontier: u32) {
        let &WriteFrontier { victim, mut cursor, .. } = &self.blocks.frontiers[frontier as usize];
        let end = (victim + 1) * self.shape.pages_per_block;
        for _ in 0..CHUNK_PAGES {
            if cursor >= end {
                return;
            }
            let Some(page) = self.map.next_valid(cursor, end) else { return };
            self.map.expect(self.map.logical_of(page));
            cursor = page + 1;
        }
        self.map.expect_behind(cursor);
    }

    /// Returns the victim of a write frontier for its erase, after the move of all its valid pages.
    #[inline]
    pub(crate) fn take_victim(&mut self, frontier: u32) -> u32 {
        self.dies[self.shape.die_of(frontier) as usize].collecting -= 1;
        std::mem::replace(&mut self.blocks.frontiers[frontier as usize].victim, NONE)
    }

    /// Adds an erased block to the free blocks, and opens it if the frontier has no open block.
    #[inline]
    pub(crate) fn erased(&mut self, block: u32) {
        let frontier = self.shape.frontier_of_block(block);
        self.blocks.free[frontier as usize].push_back(block);
        if self.blocks.frontiers[frontier as usize].open == NONE {
            self.open(frontier);
        }
    }
}
