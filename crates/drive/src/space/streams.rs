//! Write frontiers of streams, which share the blocks of a group. Each writes a block of its own,
//! and a victim's pages move to the frontier of its stream, so that streams never mix.
//!
//! One free block of a group is kept for the frontier that collects, which may fill its block in
//! the middle of a victim. A group has one victim at a time.

use super::Space;
use crate::mapping::Mapping;
use crate::write_frontier::Due;
use softflash_mapping::NONE;

/// Free blocks of a group that only the frontier that collects may open.
const KEPT_BLOCKS: u32 = 1;

impl<M: Mapping> Space<M> {
    /// Opens a free block for a frontier, if it may have one; when only the kept one is left,
    /// chooses a victim.
    #[inline(never)]
    pub(super) fn open_in_stream(&mut self, frontier: u32, group: u32) {
        let state = self.frontier(frontier);
        let collects = state.collects() && self.left_to_move(frontier) > 0;
        let kept = if collects { 0 } else { KEPT_BLOCKS };
        if self.blocks.free_in(group) > kept {
            let state = &mut self.frontiers[frontier as usize];
            state.open_next(group, &mut self.blocks, &self.policies);
            let stream = frontier - self.shape.frontiers_in(group).start;
            let block = state.open_block();
            self.mapping.set_stream(block, stream);
        }
        if self.blocks.free_in(group) <= KEPT_BLOCKS && self.collector_in(group) == NONE {
            self.choose_victim(group, self.shape.data_pages_from(frontier, 0));
            let collector = self.collector_in(group);
            if collector != NONE && self.frontier(collector).open_block() == NONE {
                self.open_in_stream(collector, group);
            }
        }
    }

    /// Write frontiers of a group.
    #[inline(always)]
    pub(crate) fn streams(&self) -> u32 {
        self.mapping.streams()
    }

    /// The frontier that collects in the group of a frontier: itself unless there are several.
    #[inline(always)]
    pub(crate) fn collector_for(&self, frontier: u32) -> u32 {
        if self.mapping.streams() == 1 {
            return frontier;
        }
        self.collector_in(self.shape.group_of(frontier))
    }

    /// The frontier of a group that collects; [`NONE`] if none does.
    fn collector_in(&self, group: u32) -> u32 {
        let mut frontiers = self.shape.frontiers_in(group);
        frontiers.find(|&frontier| self.frontier(frontier).collects()).unwrap_or(NONE)
    }

    /// Whether the frontier that collects can go on: it has a block to write, as one that is alone
    /// in its group always has, or nothing to move.
    #[inline(always)]
    pub(crate) fn can_collect(&self, frontier: u32) -> bool {
        self.mapping.streams() == 1
            || self.frontier(frontier).open_block() != NONE
            || self.left_to_move(frontier) == 0
    }

    /// The next operation of a frontier: collection, if the host's writes to any stream of the
    /// group have left it behind, or the frontier waits for a block.
    #[inline(never)]
    pub(super) fn due_of_stream(&self, frontier: u32) -> Due {
        let state = self.frontier(frontier);
        let waits = state.open_block() == NONE;
        let group = self.shape.group_of(frontier);
        let collector = self.collector_in(group);
        if collector == NONE {
            return if waits { Due::Nothing } else { Due::Program { most: u32::MAX } };
        }
        let collecting = self.frontier(collector);
        let left = self.left_to_move(collector);
        if self.can_collect(collector)
            && (waits || collecting.is_moving(&self.shape) || left == 0 || collecting.owes())
        {
            return Due::Collection;
        }
        if waits {
            return Due::Nothing;
        }
        if frontier == collector && !self.blocks.has_free(group) {
            // What is left to move needs the rest of this block.
            let most = state.room_beside(left, &self.shape);
            return if most == 0 { Due::Collection } else { Due::Program { most } };
        }
        Due::Program { most: u32::MAX }
    }

    /// Whether a frontier is that of the map's pages.
    #[inline(always)]
    pub(super) fn is_of_map(&self, frontier: u32) -> bool {
        let group = self.shape.group_of(frontier);
        self.mapping.translation().is_some() && frontier + 1 == self.shape.frontiers_in(group).end
    }

    /// Whether a block is written by the frontier of the map's pages.
    #[inline(always)]
    pub(super) fn is_block_of_map(&self, block: u32) -> bool {
        self.mapping.translation().is_some()
            && self.mapping.stream_of(block) + 1 == self.mapping.streams()
    }

    /// Counts pages written to a frontier, for the host or the map, and lets collection keep up.
    #[inline(always)]
    pub(super) fn count_written(&mut self, frontier: u32, data: u32) {
        if self.is_of_map(frontier) {
            self.programs.for_map += u64::from(data);
        } else {
            self.programs.for_host += u64::from(data);
        }
        self.keep_up(frontier, data);
    }

    /// Lets collection in the other frontiers of the group keep up with so many pages of this one.
    #[inline(always)]
    pub(super) fn keep_up(&mut self, frontier: u32, pages: u32) {
        let collector = self.collector_for(frontier);
        if collector != NONE && collector != frontier {
            self.frontiers[collector as usize].wrote_elsewhere(pages);
        }
    }
}
