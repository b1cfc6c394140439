//! The space of a drive: the page map, the blocks and their collection, and the pages that wait to
//! be programmed. It has no time.

mod arrangement;
mod banded;
mod map_changes;
mod placement;
mod streams;
mod words;

pub(crate) use arrangement::Arrangement;
pub(crate) use banded::BandStep;

use crate::counters::DriveCounters;
use crate::mapping::{Mapping, Translation};
use crate::pages::Pages;
use crate::shape::Shape;
use crate::spec::{PageMapped, VictimPolicy};
use crate::write_frontier::{Due, MovedRow, WriteFrontier};
use softflash_base::random::Rng;
use softflash_mapping::{Blocks, ENTRIES_PER_LINE, NONE, PageMap};
use softflash_policy::Policies;

/// The seed of random choices of victims.
const VICTIM_SEED: u64 = 1;

/// The space of a drive.
pub(crate) struct Space<M> {
    shape: Shape,
    map: PageMap,
    blocks: Blocks,
    frontiers: Vec<WriteFrontier>,
    /// The pending work of the write frontiers of each die.
    loads: Vec<Load>,
    policies: Policies,
    /// What the map needs beside its table.
    mapping: M,
    programs: Programs,
    /// Whether flash pages are programmed that are not full.
    pads: bool,
    /// Whether nothing is collected in idle time.
    holds_collection: bool,
}

/// A step of collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collected {
    /// The erase of this block.
    Erase(u32),
    /// The program of mapped pages, which [`Space::take_moved_row`] returns row by row.
    Program,
}

/// The pending work of the write frontiers of a die.
#[derive(Debug, Clone, Default)]
struct Load {
    /// Pages that wait to be programmed.
    writes: u32,
    /// Write frontiers that collect.
    collecting: u32,
    /// Round-robin cursor: the next write frontier, counted from the first of the die.
    cursor: u32,
}

/// Pages programmed, and blocks erased.
#[derive(Debug, Clone, Copy, Default)]
struct Programs {
    for_host: u64,
    for_collection: u64,
    for_folding: u64,
    for_parity: u64,
    for_map: u64,
    /// Pages that stay unused, and the flash pages that they are in.
    for_padding: u64,
    partial: u64,
    /// Pages of the host in the SLC cache.
    in_slc_mode: u64,
    /// Blocks collected because of reads.
    read_reclaims: u64,
    erases: u64,
}

impl<M: Mapping> Space<M> {
    /// Empty space.
    pub(crate) fn new(shape: Shape, layout: &PageMapped, mut mapping: M) -> Space<M> {
        assert_eq!(mapping.streams(), shape.streams(), "a mapping of another number of streams");
        assert!(mapping.placing().is_some() || !shape.is_packed(), "pages gather without an order");
        let groups = streams::groups_of_blocks(&shape);
        let mut blocks = Blocks::all_free(groups, shape.pages_per_block());
        // The generator is the drive's own, and equal in all drives, so that no other draws shift.
        let policies = Policies::new(layout.victim, layout.wear, Rng::seeded(VICTIM_SEED));
        let frontier = |of| {
            if M::BANDED {
                // Its first block is that of a band.
                return WriteFrontier::new(of, NONE);
            }
            let of_cache = if shape.is_slc_frontier(of) { shape.groups() } else { 0 };
            let group = of_cache + shape.group_of(of);
            let block = blocks.take_free(group, &policies).unwrap_or(NONE);
            mapping.set_stream(block, of % shape.streams());
            WriteFrontier::new(of, block)
        };
        Space {
            frontiers: (0..shape.frontiers()).map(frontier).collect(),
            map: PageMap::new(shape.logical_pages() + shape.translation_pages(), shape.pages_end()),
            blocks,
            loads: vec![Load::default(); shape.dies() as usize],
            policies,
            mapping,
            programs: Programs::default(),
            pads: false,
            holds_collection: false,
            shape,
        }
    }

    /// Classes of hints that have write frontiers of their own.
    pub(crate) fn hint_classes(&self) -> u32 {
        self.mapping.hint_classes()
    }

    /// Whether pages are separated by lifetimes that the drive predicts.
    pub(crate) fn predicts_lifetimes(&self) -> bool {
        self.mapping.lifetimes().is_some()
    }

    #[inline]
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn victim_policy(&self) -> VictimPolicy {
        self.policies.victim
    }

    #[inline]
    pub(crate) fn frontier(&self, frontier: u32) -> &WriteFrontier {
        &self.frontiers[frontier as usize]
    }

    /// The write frontiers of a die.
    #[inline]
    pub(crate) fn frontiers_of(&self, die: u32) -> &[WriteFrontier] {
        let range = self.shape.frontiers_of(die);
        &self.frontiers[range.start as usize..range.end as usize]
    }

    /// The physical page of a logical one; [`NONE`] if it has none.
    #[inline]
    pub(crate) fn physical_of(&self, logical: u32) -> u32 {
        self.map.physical_of(logical)
    }

    /// Prefetches the physical page of a logical one.
    #[inline]
    pub(crate) fn prefetch_lookup(&self, logical: u32) {
        self.map.prefetch_entry(logical);
    }

    /// Prefetches the state that changes when a logical page is replaced.
    #[inline]
    pub(crate) fn prefetch_old_page(&self, logical: u32) {
        let physical = self.map.physical_of(logical);
        self.map.prefetch_change(physical);
        self.blocks.prefetch_count(self.shape.block_of(physical));
    }

    /// Prefetches the map entries of the next programs of a write frontier: their requests may have
    /// arrived long ago. The number of waiting writes is unpredictable, so no branch depends on it:
    /// if one is missing, the one before it is prefetched again.
    #[inline(always)]
    pub(crate) fn prefetch_next_writes(&self, frontier: u32, pages: &Pages) {
        let next = self.frontier(frontier).writes().first_or_last();
        self.prefetch_old_page(pages.logical(next));
        let after = pages.behind(next);
        let after = if after == NONE { next } else { after };
        self.map.prefetch_entry(pages.logical(after));
    }

    /// Whether a die has pages to program or blocks to collect.
    #[inline]
    pub(crate) fn has_work(&self, die: u32) -> bool {
        let load = &self.loads[die as usize];
        load.writes + load.collecting != 0
    }

    /// Whether pages wait to be programmed on a die.
    #[inline]
    pub(crate) fn has_writes(&self, die: u32) -> bool {
        self.loads[die as usize].writes != 0
    }

    /// Whether nothing is collected in idle time.
    #[inline]
    pub(crate) fn holds_collection(&self) -> bool {
        self.holds_collection
    }

    /// From now on, nothing is collected in idle time, or as usual.
    pub(crate) fn hold_collection(&mut self, held: bool) {
        self.holds_collection = held;
    }

    /// The round-robin cursor of a die: its next write frontier, counted from the first.
    #[inline]
    pub(crate) fn cursor(&self, die: u32) -> u32 {
        self.loads[die as usize].cursor
    }

    #[inline]
    pub(crate) fn set_cursor(&mut self, die: u32, cursor: u32) {
        self.loads[die as usize].cursor = cursor;
    }

    /// Adds a page to be programmed in a write frontier; returns the die.
    #[inline(always)]
    fn queue_write_in(&mut self, frontier: u32, page: u32, pages: &mut Pages) -> u32 {
        pages.arrive(page);
        self.frontiers[frontier as usize].queue_write(page, pages);
        self.waits_in_cache(frontier);
        let die = self.shape.die_of(frontier);
        self.loads[die as usize].writes += 1;
        die
    }

    /// Takes the oldest waiting page of a write frontier.
    #[inline(always)]
    pub(crate) fn take_write(&mut self, die: u32, frontier: u32, pages: &Pages) -> Option<u32> {
        let write = self.frontiers[frontier as usize].take_write(pages)?;
        let load = &mut self.loads[die as usize];
        assert!(load.writes > 0, "die {die} has no write that waits");
        load.writes -= 1;
        self.served(die);
        Some(write)
    }

    /// Maps a logical page to this page of the block that its write frontier writes, and
    /// invalidates its old page.
    #[inline(always)]
    pub(crate) fn place_at(&mut self, frontier: u32, page: u32, logical: u32) {
        let block = self.frontier(frontier).open_block();
        let new = self.shape.first_page_of(block) + page;
        if page.is_multiple_of(ENTRIES_PER_LINE) {
            self.map.prefetch_behind(new);
        }
        let old = self.map.put(logical, new);
        self.blocks.add_valid(block);
        self.invalidate(old);
    }

    /// Unmaps a logical page.
    pub(crate) fn forget(&mut self, logical: u32) {
        let old = self.map.forget(logical);
        self.invalidate(old);
        if old != NONE {
            self.entry_changes(logical);
        }
    }

    /// Removes a physical page from the valid pages of its block; [`NONE`] has no effect.
    #[inline]
    fn invalidate(&mut self, physical: u32) {
        // The map has asked the same of the page, so this costs no comparison.
        if self.map.is_page(physical) {
            let block = self.shape.block_of(physical);
            self.blocks.remove_valid(block);
            self.page_invalidated(block);
        }
    }

    /// Advances a write frontier to this page, by `data` pages of the host.
    #[inline(always)]
    pub(crate) fn advance(&mut self, frontier: u32, page: u32, data: u32) {
        self.count_written(frontier, data);
        self.frontiers[frontier as usize].advance(page, data, &self.shape);
        if page == self.shape.block_end(frontier) {
            self.close(frontier);
        }
    }

    /// Counts programmed pages of parity.
    #[inline]
    pub(crate) fn count_parity(&mut self, pages: u32) {
        self.programs.for_parity += u64::from(pages);
    }

    /// The next operation of a write frontier.
    #[inline(always)]
    pub(crate) fn due(&self, frontier: u32) -> Due {
        if M::BANDED {
            // The pages that wait for it have places in its block.
            return Due::Program { most: u32::MAX };
        }
        if self.mapping.streams() > 1 || self.mapping.read_disturb().is_some() {
            return self.due_of_stream(frontier);
        }
        self.frontier(frontier).due(&self.shape, &self.blocks)
    }

    /// The next step of the collection of a write frontier: the erase of its victim, or the program
    /// of pages that have moved in the map.
    #[inline(always)]
    pub(crate) fn next_collected(&mut self, frontier: u32) -> Collected {
        if !self.frontier(frontier).is_moving(&self.shape) {
            if self.left_to_move(frontier) > 0 {
                self.move_chunk(frontier);
            }
            // The last pages of a victim may not fill a flash page: they wait for others.
            if !self.frontier(frontier).is_moving(&self.shape) {
                return Collected::Erase(self.take_victim(frontier));
            }
        }
        Collected::Program
    }

    /// Valid pages that the victim of a write frontier still has.
    #[inline]
    pub(crate) fn left_to_move(&self, frontier: u32) -> u32 {
        self.frontier(frontier).left_to_move(&self.blocks)
    }

    /// Moves the next pages of a write frontier's victim in the map.
    fn move_chunk(&mut self, frontier: u32) {
        let state = &mut self.frontiers[frontier as usize];
        let begin = state.next();
        state.move_chunk(&self.shape, &mut self.map, &mut self.blocks);
        if self.mapping.translation().is_some() {
            self.note_moved(frontier, begin);
        }
    }

    /// Takes the next row of moved pages of a write frontier to be programmed.
    #[inline]
    pub(crate) fn take_moved_row(&mut self, frontier: u32) -> MovedRow {
        let state = &mut self.frontiers[frontier as usize];
        let moved = state.take_moved_row(&self.shape);
        let full = state.is_full(&self.shape);
        // A flash page may have pages of the host beside those that have moved.
        let pages = if self.shape.is_packed() { moved.read.pages.into() } else { moved.data };
        match moved.read.from_slc {
            true => self.programs.for_folding += u64::from(pages),
            false => self.count_moved(frontier, pages),
        }
        self.count_parity(moved.parity);
        if full {
            self.close(frontier);
        }
        moved
    }

    /// So many moved pages of a write frontier have been programmed.
    pub(crate) fn moved(&mut self, frontier: u32, pages: u32) {
        self.count_moved(frontier, pages);
        let state = &mut self.frontiers[frontier as usize];
        state.moved(pages);
        if state.is_full(&self.shape) {
            self.close(frontier);
        }
    }

    /// Counts pages that collection has programmed in a write frontier.
    #[inline]
    fn count_moved(&mut self, frontier: u32, pages: u32) {
        if self.frontier(frontier).moves_uncounted() {
            return;
        }
        if !self.is_of_map(frontier) {
            self.programs.for_collection += u64::from(pages);
        } else {
            self.programs.for_map += u64::from(pages);
        }
    }

    /// Closes the frontier's block, which is full, and opens a free one if there is one.
    fn close(&mut self, frontier: u32) {
        let group = self.shape.group_of(frontier);
        let first = self.shape.frontiers_in(group).start;
        let block = self.frontiers[frontier as usize].take_open();
        if self.shape.is_slc_frontier(frontier) {
            return self.close_in_cache(frontier, block);
        }
        let number = self.frontiers[first as usize].count_closed();
        self.blocks.close(block, number);
        self.open(frontier, group);
    }

    /// Opens a free block; after the last one, chooses a victim for collection.
    fn open(&mut self, frontier: u32, group: u32) {
        if self.mapping.streams() > 1 {
            return self.open_in_stream(frontier, group);
        }
        let state = &mut self.frontiers[frontier as usize];
        let opened = state.open_next(group, &mut self.blocks, &self.policies);
        if opened && !self.blocks.has_free(group) && !state.collects() {
            let next = self.frontier(frontier).next();
            self.choose_victim(group, self.shape.data_pages_from(frontier, next));
        }
    }

    /// Chooses the victim of a group, to be collected into a block with so many free pages.
    fn choose_victim(&mut self, group: u32, free: u32) {
        if self.reclaims_in_turn(group, free) {
            return;
        }
        let first = self.shape.frontiers_in(group).start;
        let closed = self.frontiers[first as usize].closed();
        let Some(victim) = self.blocks.choose_victim(group, closed, &mut self.policies) else {
            return;
        };
        let room = free.saturating_sub(self.blocks.valid_in(victim));
        let frontier = first + self.stream_of_moved(victim);
        self.collect_into(frontier, victim, room);
    }

    /// A block has been read.
    #[inline(always)]
    pub(crate) fn count_read(&mut self, block: u32) {
        if let Some(disturb) = self.mapping.read_disturb_mut()
            && !self.shape.is_slc_block(block)
        {
            let group = self.shape.group_of_block(block);
            if disturb.count(group, block) {
                self.reclaim_if_due(group);
            }
        }
    }

    /// Begins to collect the first block of a group that is due, unless the group collects or has
    /// no free block for its pages: then one that is due is the next victim but one.
    #[inline(never)]
    fn reclaim_if_due(&mut self, group: u32) {
        let kept = self.kept_blocks();
        if self.collector_in(group) != NONE || self.blocks.free_in(group) <= kept {
            return;
        }
        let Space { mapping, blocks, .. } = self;
        let Some(victim) = mapping
            .read_disturb_mut()
            .and_then(|disturb| disturb.take_due(group, |block| blocks.is_closed(block)))
        else {
            return;
        };
        let frontier = self.shape.frontiers_in(group).start + self.stream_of_moved(victim);
        let left = match self.frontier(frontier).open_block() {
            NONE => 0,
            _ => self.shape.data_pages_from(frontier, self.frontier(frontier).next()),
        };
        let of_block = self.shape.data_pages_from(frontier, 0);
        let free = left + (self.blocks.free_in(group) - kept) * of_block;
        self.reclaim(frontier, victim, free);
        if self.frontier(frontier).open_block() == NONE {
            self.open(frontier, group);
        }
    }

    /// The block that is due in place of a victim, to be collected into a block with so many free
    /// pages; false if there is none.
    fn reclaims_in_turn(&mut self, group: u32, free: u32) -> bool {
        let Space { mapping, blocks, .. } = self;
        let Some(victim) = mapping
            .read_disturb_mut()
            .and_then(|disturb| disturb.take_due_in_turn(group, |block| blocks.is_closed(block)))
        else {
            return false;
        };
        let frontier = self.shape.frontiers_in(group).start + self.stream_of_moved(victim);
        self.reclaim(frontier, victim, free);
        true
    }

    /// Begins to collect a block that is due, while its group has so many free pages.
    fn reclaim(&mut self, frontier: u32, victim: u32, free: u32) {
        let room = free.saturating_sub(self.blocks.valid_in(victim));
        self.blocks.reopen(victim);
        self.programs.read_reclaims += 1;
        self.collect_into(frontier, victim, room);
        let group = self.shape.group_of(frontier);
        if let Some(disturb) = self.mapping.read_disturb_mut() {
            disturb.begin_move(group);
        }
    }

    /// The frontier of a die that moves a block because of its reads and whose turn is before the
    /// next read; [`NONE`] if there is none.
    #[inline(always)]
    pub(crate) fn next_reclaim(&self, die: u32) -> u32 {
        let Some(disturb) = self.mapping.read_disturb() else { return NONE };
        let is_next = |frontier: &u32| {
            self.frontier(*frontier).collects()
                && disturb.is_move_next(self.shape.group_of(*frontier))
                && self.can_collect(*frontier)
        };
        self.shape.frontiers_of(die).find(is_next).unwrap_or(NONE)
    }

    /// A step of the move that [`next_reclaim`](Space::next_reclaim) names has begun.
    pub(crate) fn reclaim_took_turn(&mut self, frontier: u32) {
        let group = self.shape.group_of(frontier);
        if let Some(disturb) = self.mapping.read_disturb_mut() {
            disturb.take_turn(group);
        }
    }

    /// Begins the collection of a victim by a frontier, while the host may write so many pages.
    fn collect_into(&mut self, frontier: u32, victim: u32, room: u32) {
        let Space { shape, map, blocks, .. } = self;
        let state = &mut self.frontiers[frontier as usize];
        state.begin_collection((victim, room), shape, map, blocks);
        self.loads[shape.die_of(frontier) as usize].collecting += 1;
    }

    /// Returns the victim of a write frontier for its erase, after the move of all its valid pages.
    #[inline]
    fn take_victim(&mut self, frontier: u32) -> u32 {
        self.update_entries(frontier);
        let victim = self.end_collection(frontier);
        assert_eq!(self.blocks.valid_in(victim), 0, "block {victim} is erased with valid pages");
        victim
    }

    /// Ends the collection of a write frontier's victim.
    fn end_collection(&mut self, frontier: u32) -> u32 {
        let die = self.shape.die_of(frontier);
        let load = &mut self.loads[die as usize];
        assert!(load.collecting > 0, "die {die} collects nothing");
        load.collecting -= 1;
        let group = self.shape.group_of(frontier);
        if let Some(disturb) = self.mapping.read_disturb_mut() {
            disturb.end_move(group);
        }
        self.frontiers[frontier as usize].take_victim()
    }

    /// Counts an erase.
    #[inline]
    pub(crate) fn count_erase(&mut self) {
        self.programs.erases += 1;
    }

    /// Adds an erased block to the free blocks of its group, and opens blocks for the frontiers
    /// that have none.
    #[inline]
    pub(crate) fn erased(&mut self, block: u32) {
        let group = self.shape.group_of_block(block);
        if self.shape.is_slc_block(block) {
            return self.erased_in_cache(group, block);
        }
        self.blocks.erased(group, block);
        if let Some(disturb) = self.mapping.read_disturb_mut() {
            disturb.erased(block);
        }
        if let Some(placing) = self.mapping.placing_mut() {
            placing.erased(group);
        }
        for frontier in self.shape.frontiers_in(group) {
            if self.frontier(frontier).open_block() == NONE && !self.shape.is_slc_frontier(frontier)
            {
                self.open(frontier, group);
            }
        }
        if self.shape.has_slc_cache() {
            self.fold_if_due(group);
        }
        if self.mapping.read_disturb().is_some() {
            self.reclaim_if_due(group);
        }
    }

    /// Whether a block is full and has valid pages.
    pub(crate) fn has_data_at_rest(&self, block: u32) -> bool {
        self.blocks.is_closed(block) && self.blocks.valid_in(block) > 0
    }

    /// The greatest difference between the erases of two blocks of a group.
    pub(crate) fn erase_spread(&self) -> u32 {
        let groups = 0..self.shape.groups();
        let spread = |group| {
            let (least, most) = self.blocks.erases_in(group);
            most - least
        };
        groups.map(spread).max().unwrap_or(0)
    }

    /// The greatest difference between the sums of erases of two groups.
    pub(crate) fn group_erase_spread(&self) -> u64 {
        let sum = |group| {
            let blocks = self.shape.blocks_of(group);
            blocks.map(|block| u64::from(self.blocks.erases(block))).sum::<u64>()
        };
        let sums: Vec<u64> = (0..self.shape.groups()).map(sum).collect();
        let (least, most) = (sums.iter().min(), sums.iter().max());
        least.zip(most).map_or(0, |(least, most)| most - least)
    }

    /// Adds the counters of programs and erases to those of the drive.
    pub(crate) fn add_counters(&self, counters: &mut DriveCounters) {
        let Programs {
            for_host,
            for_collection,
            for_folding,
            for_parity,
            for_map,
            for_padding,
            partial,
            in_slc_mode,
            read_reclaims,
            erases,
        } = self.programs;
        counters.programmed_for_host += for_host;
        counters.programmed_for_collection += for_collection;
        counters.programmed_for_folding += for_folding;
        counters.programmed_in_slc_mode += in_slc_mode;
        counters.programmed_for_parity += for_parity;
        counters.programmed_for_map += for_map;
        counters.programmed_for_padding += for_padding;
        counters.partial_page_programs += partial;
        counters.read_reclaims += read_reclaims;
        counters.erases += erases;
    }

    /// The next step of a frontier's collection is in idle time, or not.
    #[inline]
    pub(crate) fn collects_in_idle_time(&mut self, frontier: u32, in_idle_time: bool) {
        self.frontiers[frontier as usize].set_in_idle_time(in_idle_time);
    }

    /// A run begins with the drive as it is. Each frontier writes all pages of its group.
    pub(crate) fn begin_run(&mut self) {
        if self.streams() == 1 {
            self.frontiers.iter_mut().for_each(WriteFrontier::begin_run);
        }
    }

    /// Sets the counters to 0.
    pub(crate) fn clear_counters(&mut self) {
        self.programs = Programs::default();
        if let Some(translation) = self.mapping.translation_mut() {
            translation.clear_counters();
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let frontiers = self.frontiers.capacity() * size_of::<WriteFrontier>();
        let loads = self.loads.capacity() * size_of::<Load>();
        (frontiers + loads) as u64
            + self.mapping.memory_bytes()
            + self.blocks.memory_bytes()
            + self.map.memory_bytes()
            + self.shape.memory_bytes()
    }

    /// Checks that both directions of the map agree, and that the valid counts of blocks are right.
    pub(crate) fn check_map(&self) -> Result<(), String> {
        let valid = self.blocks.check_counts(&self.map)?;
        self.map.check(valid)
    }

    /// Checks that both directions of the map agree, that the valid counts of blocks are right, and
    /// that every block is free, open, closed, or being collected or erased. Returns the first
    /// error.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_map()?;
        for group in 0..self.shape.groups() {
            let used = |frontier| {
                let state = self.frontier(frontier);
                let is_used = |block| block != NONE && !self.shape.is_slc_block(block);
                usize::from(is_used(state.open_block())) + usize::from(is_used(state.victim()))
            };
            self.blocks.check_use(group, self.shape.frontiers_in(group).map(used).sum())?;
            self.check_cache(group)?;
        }
        self.mapping.translation().map_or(Ok(()), Translation::check)
    }
}
