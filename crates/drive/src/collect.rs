//! Garbage collection: the valid pages of a block are moved to the write frontier of its gang, then it is
//! erased.

use crate::dispatch::AHEAD_PAGES;
use crate::drive::Drive;
use crate::gang::Pace;
use crate::map::NONE;
use crate::policy::{self, Candidates, NOT_CLOSED};
use softflash_nand::{Work, WorkKind};

impl Drive {
    /// Puts a logical page onto the frontier of its gang, and makes its old place invalid.
    #[inline]
    pub(crate) fn place(&mut self, gang: u32, logical: u32) {
        let state = &self.gangs[gang as usize];
        let block = state.open;
        let new = block * self.shape.pages_per_block + state.next;
        self.map.expect_behind(new);
        let old = self.map.put(logical, new);
        self.valid[block as usize] += 1;
        self.invalidate(old);
    }

    /// Takes note that a physical page, if it is one, holds nothing any more.
    #[inline]
    pub(crate) fn invalidate(&mut self, physical: u32) {
        if physical != NONE {
            self.valid[self.shape.block_of(physical) as usize] -= 1;
        }
    }

    /// The frontier's block is full: closes it, and opens another if there is one.
    pub(crate) fn close(&mut self, gang: u32) {
        let state = &mut self.gangs[gang as usize];
        let block = std::mem::replace(&mut state.open, NONE);
        self.valid[block as usize] &= !NOT_CLOSED;
        self.closed[block as usize] = state.closed;
        state.closed = state.closed.wrapping_add(1);
        self.open(gang);
    }

    /// Opens a free block; where it is the last one, something must be collected.
    fn open(&mut self, gang: u32) {
        let state = &mut self.gangs[gang as usize];
        let Some(block) = state.free.pop_front() else { return };
        (state.open, state.next) = (block, 0);
        if state.free.is_empty() && !state.collects() {
            self.choose_victim(gang);
        }
    }

    fn choose_victim(&mut self, gang: u32) {
        let first = gang * self.shape.blocks_per_gang;
        let range = first as usize..(first + self.shape.blocks_per_gang) as usize;
        let state = &mut self.gangs[gang as usize];
        let candidates = Candidates {
            valid: &self.valid[range.clone()],
            closed: &self.closed[range],
            now: state.closed,
        };
        let Some(chosen) = policy::choose(self.layout.victim, &candidates) else { return };
        let victim = first + chosen;
        let to_move = u32::from(self.valid[victim as usize]);
        self.valid[victim as usize] |= NOT_CLOSED;
        let room = self.shape.data_pages_from(gang, state.next).saturating_sub(to_move);
        state.victim = victim;
        self.dies[self.shape.die_of(gang) as usize].collecting += 1;
        state.cursor = victim * self.shape.pages_per_block;
        state.asked = state.cursor;
        state.pace = Pace { to_move, moved: 0, room, written: 0 };
        for _ in 0..AHEAD_PAGES {
            self.ask_ahead(gang);
        }
    }

    /// The next step of collection: moves the next valid pages, up to the end of the frontier's row, or erases.
    #[inline]
    pub(crate) fn collect(&mut self, die: u32, gang: u32) -> Option<Work> {
        if !self.flash.accepts(die, WorkKind::Move) {
            return None;
        }
        let state = &self.gangs[gang as usize];
        if self.left_to_move(state) == 0 {
            let victim = self.take_victim(gang);
            self.counters.erases += 1;
            return Some(Work { tag: victim, page: 0, pages: 1, kind: WorkKind::Erase });
        }
        if state.open == NONE {
            return None;
        }
        let row = self.shape.row_of(state.next);
        let row_ends = (u32::from(row) + 1) * self.shape.row_pages;
        let (mut data, mut parity) = (0, 0);
        while self.gangs[gang as usize].next < row_ends {
            if self.shape.is_parity(gang, self.gangs[gang as usize].next) {
                parity += 1;
            } else if self.move_next(gang) {
                data += 1;
            } else {
                break;
            }
            self.gangs[gang as usize].next += 1;
        }
        self.counters.programmed_for_collection += data;
        self.counters.programmed_for_parity += parity;
        let state = &mut self.gangs[gang as usize];
        state.pace.moved += data as u32;
        if state.next == self.shape.pages_per_block {
            self.close(gang);
        }
        Some(match data {
            0 => Work { tag: 0, page: row, pages: parity as u8, kind: WorkKind::Program },
            _ => Work { tag: 0, page: row, pages: data as u8, kind: WorkKind::Move },
        })
    }

    /// Moves the next valid page of the victim; false if there is none.
    #[inline]
    pub(crate) fn move_next(&mut self, gang: u32) -> bool {
        let state = &self.gangs[gang as usize];
        let end = (state.victim + 1) * self.shape.pages_per_block;
        if state.cursor >= end {
            return false;
        }
        let Some(page) = self.map.next_valid(state.cursor, end) else { return false };
        self.gangs[gang as usize].cursor = page + 1;
        self.place(gang, self.map.logical_of(page));
        self.ask_ahead(gang);
        true
    }

    /// Asks for the entry of the map of one more page that will be moved.
    #[inline]
    fn ask_ahead(&mut self, gang: u32) {
        let state = &mut self.gangs[gang as usize];
        let end = (state.victim + 1) * self.shape.pages_per_block;
        if state.asked < end
            && let Some(page) = self.map.next_valid(state.asked, end)
        {
            state.asked = page + 1;
            self.map.expect_behind(page);
            self.map.expect(self.map.logical_of(page));
        }
    }

    /// The gang has moved all of its victim, which is to be erased.
    #[inline]
    pub(crate) fn take_victim(&mut self, gang: u32) -> u32 {
        self.dies[self.shape.die_of(gang) as usize].collecting -= 1;
        std::mem::replace(&mut self.gangs[gang as usize].victim, NONE)
    }

    /// A block is erased: it can be written again.
    #[inline]
    pub(crate) fn erased(&mut self, block: u32) {
        let gang = self.shape.gang_of_block(block);
        let state = &mut self.gangs[gang as usize];
        state.free.push_back(block);
        if state.open == NONE {
            self.open(gang);
        }
    }
}
