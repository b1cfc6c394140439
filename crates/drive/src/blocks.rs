//! The blocks of a drive: how many valid pages each has, and which are erased or can be collected.

use crate::map::Map;
use crate::memory::prefetch;
use crate::policy::{self, Candidates, NOT_CLOSED};
use crate::shape::Shape;
use crate::spec::VictimPolicy;
use std::collections::VecDeque;
use std::ops::Range;

/// The blocks of all write frontiers.
pub(crate) struct Blocks {
    /// Erased blocks of each write frontier, the first to be used first.
    free: Vec<VecDeque<u32>>,
    /// Valid pages of each block; [`NOT_CLOSED`] is added unless it can be collected.
    valid: Vec<u16>,
    /// When each block was closed; see [`crate::policy`].
    closed: Vec<u32>,
}

impl Blocks {
    /// Erased blocks; the first of each write frontier is open.
    pub(crate) fn new(shape: &Shape) -> Blocks {
        let blocks_of = |frontier| shape.blocks_of(frontier);
        Blocks {
            free: (0..shape.frontiers()).map(|of| blocks_of(of).skip(1).collect()).collect(),
            valid: vec![NOT_CLOSED; shape.blocks_end() as usize],
            closed: vec![0; shape.blocks_end() as usize],
        }
    }

    /// Takes the first free block of a write frontier.
    pub(crate) fn take_free(&mut self, frontier: u32) -> Option<u32> {
        self.free[frontier as usize].pop_front()
    }

    /// Whether a write frontier has free blocks.
    pub(crate) fn has_free(&self, frontier: u32) -> bool {
        !self.free[frontier as usize].is_empty()
    }

    /// Adds an erased block to the free blocks.
    #[inline]
    pub(crate) fn add_free(&mut self, frontier: u32, block: u32) {
        self.free[frontier as usize].push_back(block);
    }

    /// Makes a block one that can be collected, the `number`-th of its write frontier.
    pub(crate) fn close(&mut self, block: u32, number: u32) {
        self.valid[block as usize] &= !NOT_CLOSED;
        self.closed[block as usize] = number;
    }

    /// Chooses the block of a write frontier that is collected next, where `now` is the number of
    /// the next block to be closed; `None` if no block can be collected.
    pub(crate) fn choose_victim(
        &mut self,
        blocks: Range<u32>,
        policy: VictimPolicy,
        now: u32,
    ) -> Option<u32> {
        let range = blocks.start as usize..blocks.end as usize;
        let candidates =
            Candidates { valid: &self.valid[range.clone()], closed: &self.closed[range], now };
        let victim = blocks.start + policy::choose(policy, &candidates)?;
        self.valid[victim as usize] |= NOT_CLOSED;
        Some(victim)
    }

    /// Valid pages of a block.
    #[inline]
    pub(crate) fn valid_in(&self, block: u32) -> u32 {
        u32::from(self.valid[block as usize] & !NOT_CLOSED)
    }

    /// A page of a block becomes valid.
    #[inline]
    pub(crate) fn add_valid(&mut self, block: u32) {
        self.valid[block as usize] += 1;
    }

    /// A page of a block is no longer valid.
    #[inline]
    pub(crate) fn remove_valid(&mut self, block: u32) {
        self.valid[block as usize] -= 1;
    }

    /// Valid pages move from block to block.
    pub(crate) fn move_valid(&mut self, from: u32, to: u32, pages: u16) {
        self.valid[to as usize] += pages;
        self.valid[from as usize] -= pages;
    }

    /// Prefetches the count of valid pages of a block.
    #[inline]
    pub(crate) fn expect_count(&self, block: u32) {
        prefetch(&self.valid, block as usize);
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let counts = self.valid.capacity() * 2 + self.closed.capacity() * 4;
        let free = self.free.iter().map(|free| free.capacity() * 4 + size_of_val(free));
        (counts + free.sum::<usize>()) as u64
    }

    /// Compares the counts of valid pages with the map; returns the valid pages of all blocks.
    pub(crate) fn check_counts(&self, shape: &Shape, map: &Map) -> Result<u64, String> {
        let mut valid = 0_u64;
        for block in 0..shape.blocks_end() {
            let found = map.count_valid(shape.first_page_of(block), shape.first_page_of(block + 1));
            let counted = self.valid_in(block);
            if found != counted {
                return Err(format!(
                    "block {block} is counted for {counted} valid pages, not {found}"
                ));
            }
            valid += u64::from(found);
        }
        Ok(valid)
    }

    /// Checks that every block of a write frontier is free, closed, or one of `in_use`, and that at
    /// most one is being erased.
    pub(crate) fn check_use(
        &self,
        shape: &Shape,
        frontier: u32,
        in_use: usize,
    ) -> Result<(), String> {
        let blocks = shape.blocks_of(frontier);
        let counts = &self.valid[blocks.start as usize..blocks.end as usize];
        let not_closed = counts.iter().filter(|&&valid| valid & NOT_CLOSED != 0).count();
        let known = self.free[frontier as usize].len() + in_use;
        // An erase of one more may be under way.
        if not_closed < known || not_closed > known + 1 {
            return Err(format!(
                "frontier {frontier}: {not_closed} blocks are in use, {known} known"
            ));
        }
        Ok(())
    }
}
