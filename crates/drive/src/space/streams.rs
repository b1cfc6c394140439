//! Write frontiers of streams, which share the blocks of a group. Each writes a block of its own,
//! and a victim's pages move to the frontier of its stream, so that streams never mix.
//!
//! One free block of a group is kept for the frontier that collects, which may fill its block in
//! the middle of a victim. A group has one victim at a time.
//!
//! An SLC cache has a stream too, whose blocks are in SLC mode. Folding is a collection of the
//! group: the frontier of the other blocks takes the valid pages of the oldest full block. It never
//! takes the free block that is kept for garbage collection: where only that is left, the folding
//! of a block is given up, blocks are collected first, and the rest of the block is folded later.

use super::Space;
use crate::mapping::Mapping;
use crate::shape::Shape;
use crate::write_frontier::Due;
use softflash_mapping::NONE;
use std::ops::Range;

/// Free blocks of a group that only the frontier that collects may open.
const KEPT_BLOCKS: u32 = 1;

/// Room for the host that never makes it wait for a folding.
const UNBOUNDED: u32 = u32::MAX;

impl<M: Mapping> Space<M> {
    /// Opens a free block for a frontier, if it may have one; when only the kept one is left,
    /// chooses a victim.
    #[inline(never)]
    pub(super) fn open_in_stream(&mut self, frontier: u32, group: u32) {
        let state = self.frontier(frontier);
        let collects =
            state.collects() && self.left_to_move(frontier) > 0 && !self.is_folding(frontier);
        let kept = if collects { 0 } else { KEPT_BLOCKS };
        if self.blocks.free_in(group) > kept {
            let state = &mut self.frontiers[frontier as usize];
            state.open_next(group, &mut self.blocks, &self.policies);
            let stream = frontier - self.shape.frontiers_in(group).start;
            let block = state.open_block();
            self.mapping.set_stream(block, stream);
            let victim = if collects { self.frontier(frontier).victim() } else { NONE };
            if let Some(lifetimes) = self.mapping.lifetimes_mut() {
                lifetimes.opened(block, victim);
            }
        }
        if self.blocks.free_in(group) <= KEPT_BLOCKS {
            self.give_up_folding(group);
            if self.collector_in(group) == NONE {
                self.collect_in_stream(frontier, group);
            }
        }
    }

    /// Begins the collection of a block of a group, which nothing collects, for a frontier that
    /// needs blocks.
    fn collect_in_stream(&mut self, frontier: u32, group: u32) {
        self.choose_victim(group, self.shape.data_pages_from(frontier, 0));
        let collector = self.collector_in(group);
        if collector != NONE && self.frontier(collector).open_block() == NONE {
            self.open_in_stream(collector, group);
        }
    }

    /// Free blocks of a group that only the frontier that collects may open.
    pub(super) fn kept_blocks(&self) -> u32 {
        if self.mapping.streams() > 1 { KEPT_BLOCKS } else { 0 }
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
    pub(super) fn collector_in(&self, group: u32) -> u32 {
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
        if self.shape.is_slc_frontier(frontier) {
            // Only folding gives it blocks, after what is collected before.
            let owes = self.is_folding(collector) && (left == 0 || collecting.owes());
            return match self.can_collect(collector) && (waits || owes) {
                true => Due::Collection,
                false if waits => Due::Nothing,
                false => Due::Program { most: u32::MAX },
            };
        }
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
        if self.shape.is_slc_frontier(frontier) {
            self.programs.in_slc_mode += u64::from(data);
        }
        self.keep_up(frontier, data);
    }

    /// Lets collection in the other frontiers of the group keep up with so many pages of this one.
    #[inline(always)]
    pub(super) fn keep_up(&mut self, frontier: u32, pages: u32) {
        let collector = self.collector_for(frontier);
        if collector != NONE
            && collector != frontier
            && (!self.shape.is_slc_frontier(frontier) || self.is_folding(collector))
        {
            self.frontiers[collector as usize].wrote_elsewhere(pages);
        }
    }

    /// The number of the group of the free blocks of a group's cache, which come behind the groups
    /// of other blocks.
    pub(super) fn cache_group(&self, group: u32) -> u32 {
        self.shape.groups() + group
    }

    /// The write frontier of a group's cache.
    fn cache_frontier(&self, group: u32) -> u32 {
        self.shape.frontiers_in(group).end - 1
    }

    /// The stream of the cache, if a page of the host goes into it.
    #[inline(always)]
    pub(super) fn cache_stream(&self) -> Option<u32> {
        let cache = self.mapping.slc_cache()?;
        cache.takes().then(|| self.mapping.streams() - 1)
    }

    /// So many pages of a frontier are taken, if it is one of the cache.
    #[inline(always)]
    pub(super) fn take_cache_room(&mut self, frontier: u32, pages: u32) {
        if self.shape.is_slc_frontier(frontier)
            && let Some(cache) = self.mapping.slc_cache_mut()
        {
            cache.take_room(pages);
        }
    }

    /// Whether a block of the cache is being folded by this frontier.
    #[inline(always)]
    pub(super) fn is_folding(&self, frontier: u32) -> bool {
        let victim = self.frontier(frontier).victim();
        victim != NONE && self.shape.is_slc_block(victim)
    }

    /// A block of the cache is full.
    pub(super) fn close_in_cache(&mut self, frontier: u32, block: u32) {
        let group = self.shape.group_of(frontier);
        if let Some(cache) = self.mapping.slc_cache_mut() {
            cache.add_full(group, block);
        }
        self.open_in_cache(group);
    }

    /// Opens a free block of a group's cache if there is one, and folds if that is due.
    fn open_in_cache(&mut self, group: u32) {
        let frontier = self.cache_frontier(group);
        let free = self.cache_group(group);
        let state = &mut self.frontiers[frontier as usize];
        if state.open_block() == NONE && state.open_next(free, &mut self.blocks, &self.policies) {
            let block = state.open_block();
            self.mapping.set_stream(block, self.mapping.streams() - 1);
        }
        self.fold_if_due(group);
    }

    /// A block of the cache has been erased.
    pub(super) fn erased_in_cache(&mut self, group: u32, block: u32) {
        self.blocks.erased(self.cache_group(group), block);
        let pages = self.shape.pages_per_slc_block();
        if let Some(cache) = self.mapping.slc_cache_mut() {
            cache.add_room(pages);
        }
        self.open_in_cache(group);
    }

    /// Whether the host has been idle for long enough, or no longer.
    pub(crate) fn set_host_idle(&mut self, is_idle: bool) {
        let Some(cache) = self.mapping.slc_cache_mut() else { return };
        cache.set_host_idle(is_idle);
        if is_idle {
            for group in 0..self.shape.groups() {
                self.fold_if_due(group);
            }
        }
    }

    /// Whether full blocks of the cache wait until the host is idle.
    pub(crate) fn awaits_idle_host(&self) -> bool {
        self.mapping
            .slc_cache()
            .is_some_and(|cache| !cache.folds_in_order() && !cache.folds_idle() && cache.has_full())
    }

    /// Begins to fold the oldest block of a group's cache, or to collect a block if there is no
    /// space for that, unless the group collects.
    pub(super) fn fold_if_due(&mut self, group: u32) {
        if !self.is_folding_due(group) || self.collector_in(group) != NONE {
            return;
        }
        let frontier = self.shape.frontiers_in(group).start;
        if self.blocks.free_in(group) <= KEPT_BLOCKS {
            return self.collect_in_stream(frontier, group);
        }
        let Some(block) = self.mapping.slc_cache_mut().and_then(|cache| cache.take_oldest(group))
        else {
            return;
        };
        let writes = self.frontier(self.cache_frontier(group));
        let room = match (self.mapping.slc_cache(), writes.open_block()) {
            (Some(cache), _) if !cache.folds_in_order() => UNBOUNDED,
            (_, NONE) => 0,
            _ => self.shape.pages_per_slc_block() - writes.next(),
        };
        self.collect_into(frontier, block, room);
        if self.frontier(frontier).open_block() == NONE {
            self.open_in_stream(frontier, group);
        }
    }

    /// Whether a group's cache folds: while the host is idle, for writes that have no other block,
    /// or to have a free block in time.
    fn is_folding_due(&self, group: u32) -> bool {
        let Some(cache) = self.mapping.slc_cache() else { return false };
        if cache.full_in(group) == 0 {
            return false;
        }
        let writes = self.frontier(self.cache_frontier(group));
        let stands =
            writes.open_block() == NONE && (writes.waiting() > 0 || cache.folds_in_order());
        let in_time = cache.folds_in_order() && !self.blocks.has_free(self.cache_group(group));
        cache.folds_idle() || stands || in_time
    }

    /// A page waits for a group's cache, which may have no block for it.
    #[inline(always)]
    pub(super) fn waits_in_cache(&mut self, frontier: u32) {
        if self.shape.is_slc_frontier(frontier) && self.frontier(frontier).open_block() == NONE {
            self.fold_if_due(self.shape.group_of(frontier));
        }
    }

    /// Gives up the folding of a group's block, if one is under way: the rest of it is folded
    /// later.
    fn give_up_folding(&mut self, group: u32) {
        let frontier = self.shape.frontiers_in(group).start;
        if !self.is_folding(frontier) {
            return;
        }
        let block = self.end_collection(frontier);
        if let Some(cache) = self.mapping.slc_cache_mut() {
            cache.give_back(group, block);
        }
    }

    /// Makes the blocks of all caches free, but those that are written.
    pub(super) fn vacate_cache(&mut self) {
        for group in 0..self.shape.groups() {
            let writes = self.written_in_cache(group);
            for block in self.shape.slc_blocks_of(group).filter(|&block| block != writes) {
                self.blocks.add_free(self.cache_group(group), block);
            }
        }
    }

    /// The block that a group's cache writes; [`NONE`] if there is no cache.
    fn written_in_cache(&self, group: u32) -> u32 {
        match self.shape.has_slc_cache() {
            true => self.frontier(self.cache_frontier(group)).open_block(),
            false => NONE,
        }
    }

    /// Checks the blocks of a group's cache: each is free, written, full, or being folded or
    /// erased.
    pub(super) fn check_cache(&self, group: u32) -> Result<(), String> {
        let Some(cache) = self.mapping.slc_cache() else { return Ok(()) };
        let writes = usize::from(self.written_in_cache(group) != NONE);
        let folds = usize::from(self.is_folding(self.shape.frontiers_in(group).start));
        self.blocks.check_use(self.cache_group(group), writes + folds + cache.full_in(group))
    }
}

/// The groups of the free blocks: of all groups, then of their caches.
pub(super) fn groups_of_blocks(shape: &Shape) -> Vec<Range<u32>> {
    let groups = 0..shape.groups();
    let own = groups.clone().map(|group| shape.blocks_of(group));
    let cached = groups.filter(|_| shape.has_slc_cache()).map(|group| shape.slc_blocks_of(group));
    own.chain(cached).collect()
}
