//! The blocks of each group: valid pages, order of closing, erases, and which are free. A *group*
//! has the blocks that are written and collected together: those of a write frontier of a drive, or
//! of a unit.
//!
//! A block is free, in use (being written, collected, erased, or out of service), or closed: full,
//! so that it can be collected. A physical page has the number `block * pages_per_block + page`.

use crate::map::page::PageMap;
use crate::memory::{grow, prefetch, table};
use softflash_base::cast::index;
use softflash_policy::Policies;
use softflash_policy::victim::{self, Candidates, NOT_CLOSED};
use softflash_policy::wear::{self, FreeView, WearView};
use std::collections::VecDeque;
use std::ops::Range;

/// The most pages of a block: counts of valid pages have 15 bits.
pub const MOST_PAGES_PER_BLOCK: u32 = NOT_CLOSED as u32 - 1;

/// The blocks of all groups.
#[derive(Debug, Clone)]
pub struct Blocks {
    groups: Vec<Group>,
    pages_per_block: u32,
    /// Valid pages of each block; [`NOT_CLOSED`] is added unless it can be collected.
    valid: Vec<u16>,
    /// When each block was closed: the number given to [`close`](Blocks::close).
    closed: Vec<u32>,
    /// Erases of each block.
    erases: Vec<u32>,
}

/// A group of blocks.
#[derive(Debug, Clone)]
struct Group {
    blocks: Range<u32>,
    /// Erased blocks; the one that was erased first is at the front.
    free: VecDeque<u32>,
    /// Whether the last victim was chosen for wear levelling.
    levelled: bool,
}

impl Blocks {
    /// Groups with these blocks, which are all free and were never erased. Numbers between the
    /// groups may be unused.
    ///
    /// # Panics
    /// If a block has no pages, or more than [`MOST_PAGES_PER_BLOCK`].
    pub fn all_free(groups: impl IntoIterator<Item = Range<u32>>, pages_per_block: u32) -> Blocks {
        let mut blocks = Blocks::none_free(groups, pages_per_block);
        for group in &mut blocks.groups {
            group.free = group.blocks.clone().collect();
        }
        blocks
    }

    /// As [`all_free`](Blocks::all_free), with all blocks in use: their states are added one by
    /// one, by [`add_free`](Blocks::add_free), [`close`](Blocks::close) and
    /// [`set_erases`](Blocks::set_erases).
    ///
    /// # Panics
    /// If a block has no pages, or more than [`MOST_PAGES_PER_BLOCK`].
    pub fn none_free(groups: impl IntoIterator<Item = Range<u32>>, pages_per_block: u32) -> Blocks {
        let most = MOST_PAGES_PER_BLOCK;
        assert!((1..=most).contains(&pages_per_block), "{pages_per_block} pages a block");
        let group = |blocks| Group { blocks, free: VecDeque::new(), levelled: false };
        let groups: Vec<Group> = groups.into_iter().map(group).collect();
        let end = index(groups.iter().map(|group| group.blocks.end).max().unwrap_or(0));
        Blocks {
            groups,
            pages_per_block,
            valid: table(NOT_CLOSED, end),
            closed: table(0, end),
            erases: table(0, end),
        }
    }

    /// Adds a group of blocks behind all others, which are in use.
    ///
    /// # Panics
    /// If other groups have some of the blocks.
    pub fn add_group(&mut self, blocks: Range<u32>) {
        let end = index(blocks.end);
        let others = self.groups.iter().map(|group| group.blocks.end).max().unwrap_or(0);
        assert!(blocks.start >= others, "blocks {blocks:?} are added behind block {others}");
        grow(&mut self.valid, NOT_CLOSED, end);
        grow(&mut self.closed, 0, end);
        grow(&mut self.erases, 0, end);
        self.groups.push(Group { blocks, free: VecDeque::new(), levelled: false });
    }

    /// Groups.
    pub fn groups(&self) -> u32 {
        self.groups.len() as u32
    }

    /// The blocks of a group.
    #[inline]
    pub fn blocks_of(&self, group: u32) -> Range<u32> {
        self.groups[index(group)].blocks.clone()
    }

    /// Pages of a block.
    #[inline]
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Takes the free block of a group that the wear policy chooses.
    pub fn take_free(&mut self, group: u32, policies: &Policies) -> Option<u32> {
        let Blocks { groups, erases, .. } = self;
        let free = &mut groups[index(group)].free;
        let place = wear::choose_free(policies.wear, &FreeView { free: free.as_slices(), erases })?;
        let block = free.remove(place)?;
        assert_eq!(self.valid_in(block), 0, "block {block} is free and has valid pages");
        Some(block)
    }

    /// Whether a group has free blocks.
    #[inline]
    pub fn has_free(&self, group: u32) -> bool {
        !self.groups[index(group)].free.is_empty()
    }

    /// Free blocks of a group.
    #[inline]
    pub fn free_in(&self, group: u32) -> u32 {
        self.groups[index(group)].free.len() as u32
    }

    /// The free blocks of a group; the one that was erased first is the first.
    pub fn free_blocks(&self, group: u32) -> impl Iterator<Item = u32> {
        self.groups[index(group)].free.iter().copied()
    }

    /// Adds an erased block to the free blocks of its group. Its erase has been counted.
    ///
    /// # Panics
    /// If it is a block of another group, or has valid pages: these would be lost.
    #[inline]
    pub fn add_free(&mut self, group: u32, block: u32) {
        assert!(self.blocks_of(group).contains(&block), "block {block} is not of group {group}");
        assert_eq!(self.valid_in(block), 0, "block {block} is erased and has valid pages");
        self.groups[index(group)].free.push_back(block);
    }

    /// Counts the erase of a block, and adds it to the free blocks of its group.
    #[inline]
    pub fn erased(&mut self, group: u32, block: u32) {
        self.erases[index(block)] += 1;
        self.add_free(group, block);
    }

    /// Erases of a block.
    #[inline]
    pub fn erases(&self, block: u32) -> u32 {
        self.erases[index(block)]
    }

    /// Sets the erases of a block, as far as they are known from elsewhere.
    pub fn set_erases(&mut self, block: u32, erases: u32) {
        self.erases[index(block)] = erases;
    }

    /// The fewest and the most erases of the blocks of a group.
    pub fn erases_in(&self, group: u32) -> (u32, u32) {
        let erases = &self.erases[self.range(group)];
        (erases.iter().copied().min().unwrap_or(0), erases.iter().copied().max().unwrap_or(0))
    }

    /// Makes a block one that can be collected, the `number`-th of its group.
    ///
    /// # Panics
    /// If it can be collected already: it would have two numbers.
    pub fn close(&mut self, block: u32, number: u32) {
        assert!(!self.is_closed(block), "block {block} is closed twice");
        self.valid[index(block)] &= !NOT_CLOSED;
        self.closed[index(block)] = number;
    }

    /// Whether a block can be collected.
    #[inline]
    pub fn is_closed(&self, block: u32) -> bool {
        self.valid[index(block)] & NOT_CLOSED == 0
    }

    /// The number that a closed block was given.
    pub fn closed_as(&self, block: u32) -> u32 {
        self.closed[index(block)]
    }

    /// Makes a block one that cannot be collected, because its collection begins.
    #[inline]
    pub fn reopen(&mut self, block: u32) {
        self.valid[index(block)] |= NOT_CLOSED;
    }

    /// Chooses the block of a group that is collected next, where `now` is the number of the next
    /// block to be closed; `None` if no block can be collected. It is no longer closed.
    ///
    /// A block that is collected for wear levelling frees little space, so at most every second
    /// one is: otherwise the host would wait for all cold data of the group at once.
    pub fn choose_victim(&mut self, group: u32, now: u32, policies: &mut Policies) -> Option<u32> {
        let range = self.range(group);
        let first = self.groups[index(group)].blocks.start;
        let (valid, erases) = (&self.valid[range.clone()], &self.erases[range.clone()]);
        let level = !self.groups[index(group)].levelled;
        let cold =
            if level { wear::level(policies.wear, &WearView { valid, erases }) } else { None };
        let candidates =
            Candidates { valid, closed: &self.closed[range], now, pages: self.pages_per_block };
        let chosen =
            cold.or_else(|| victim::choose(policies.victim, &candidates, &mut policies.rng));
        self.groups[index(group)].levelled = cold.is_some();
        let victim = first + chosen?;
        assert!(self.is_closed(victim), "a policy chooses block {victim}, which is in use");
        self.reopen(victim);
        Some(victim)
    }

    /// As [`choose_victim`](Blocks::choose_victim), of the blocks with fewer than `below` valid
    /// pages, for a collection that gains nothing from others. Wear is not levelled.
    pub fn choose_sparse_victim(
        &mut self,
        group: u32,
        now: u32,
        below: u32,
        policies: &mut Policies,
    ) -> Option<u32> {
        let range = self.range(group);
        let first = self.groups[index(group)].blocks.start;
        let masked = |&valid: &u16| if u32::from(valid) < below { valid } else { NOT_CLOSED };
        let valid: Vec<u16> = self.valid[range.clone()].iter().map(masked).collect();
        let candidates = Candidates {
            valid: &valid,
            closed: &self.closed[range],
            now,
            pages: self.pages_per_block,
        };
        let chosen = victim::choose(policies.victim, &candidates, &mut policies.rng)?;
        let victim = first + chosen;
        assert!(
            self.valid_in(victim) < below,
            "a policy chooses block {victim}, which is not sparse"
        );
        self.reopen(victim);
        Some(victim)
    }

    /// As [`choose_victim`](Blocks::choose_victim), where `valid_of` gives the valid pages of what
    /// would be collected with a block, scaled to blocks of so many pages. The block stays closed:
    /// [`reopen`](Blocks::reopen) begins its collection.
    pub fn propose_victim(
        &mut self,
        group: u32,
        (now, pages): (u32, u32),
        policies: &mut Policies,
        valid_of: impl Fn(&Blocks, u32) -> u16,
    ) -> Option<u32> {
        let blocks = self.blocks_of(group);
        let shown = |block| match self.is_closed(block) {
            true => valid_of(self, block),
            false => NOT_CLOSED,
        };
        let valid: Vec<u16> = blocks.clone().map(shown).collect();
        let range = self.range(group);
        let view = WearView { valid: &valid, erases: &self.erases[range.clone()] };
        let level = !self.groups[index(group)].levelled;
        let cold = if level { wear::level(policies.wear, &view) } else { None };
        let candidates = Candidates { valid: &valid, closed: &self.closed[range], now, pages };
        let chosen =
            cold.or_else(|| victim::choose(policies.victim, &candidates, &mut policies.rng));
        self.groups[index(group)].levelled = cold.is_some();
        let victim = blocks.start + chosen?;
        assert!(self.is_closed(victim), "a policy chooses block {victim}, which is in use");
        Some(victim)
    }

    /// The blocks of a group, as indexes.
    #[inline]
    fn range(&self, group: u32) -> Range<usize> {
        let Range { start, end } = self.groups[index(group)].blocks;
        index(start)..index(end)
    }

    /// Valid pages of a block.
    #[inline]
    pub fn valid_in(&self, block: u32) -> u32 {
        u32::from(self.valid[block as usize] & !NOT_CLOSED)
    }

    /// A page of a block becomes valid.
    ///
    /// # Panics
    /// If all of them are.
    #[inline]
    pub fn add_valid(&mut self, block: u32) {
        assert!(self.valid_in(block) < self.pages_per_block, "block {block} has no invalid page");
        self.valid[block as usize] += 1;
    }

    /// Sets the valid pages of a block, for the recovery of a map.
    ///
    /// # Panics
    /// If they are more than a block can have.
    pub fn set_valid(&mut self, block: u32, pages: u32) {
        assert!(pages <= self.pages_per_block, "{pages} valid pages in block {block}");
        let valid = &mut self.valid[index(block)];
        *valid = *valid & NOT_CLOSED | pages as u16;
    }

    /// A page of a block is no longer valid.
    ///
    /// # Panics
    /// If none is.
    #[inline]
    pub fn remove_valid(&mut self, block: u32) {
        assert!(self.valid_in(block) > 0, "block {block} has no valid page");
        self.valid[block as usize] -= 1;
    }

    /// Valid pages move from block to block.
    ///
    /// # Panics
    /// If the first has fewer.
    #[inline]
    pub fn move_valid(&mut self, from: u32, to: u32, pages: u16) {
        assert!(u32::from(pages) <= self.valid_in(from), "block {from} has no {pages} valid pages");
        self.valid[to as usize] += pages;
        self.valid[from as usize] -= pages;
    }

    /// Prefetches the count of valid pages of a block.
    #[inline]
    pub fn prefetch_count(&self, block: u32) {
        prefetch(&self.valid, block as usize);
    }

    /// Memory of the tables, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let counts = size_of_val(&*self.valid) + size_of_val(&*self.closed);
        let groups = self.groups.iter().map(|of| of.free.capacity() * 4 + size_of_val(of));
        (counts + size_of_val(&*self.erases) + groups.sum::<usize>()) as u64
    }

    /// Compares the counts of valid pages with the map; returns the valid pages of all blocks.
    pub fn check_counts(&self, map: &PageMap) -> Result<u64, String> {
        let mut valid = 0_u64;
        for block in 0..self.valid.len() as u32 {
            let first = block * self.pages_per_block;
            let found = map.count_valid(first, first + self.pages_per_block);
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

    /// Checks that every block of a group is free, closed, or one of `in_use`, and that at most one
    /// is being erased.
    pub fn check_use(&self, group: u32, in_use: usize) -> Result<(), String> {
        let counts = &self.valid[self.range(group)];
        let not_closed = counts.iter().filter(|&&valid| valid & NOT_CLOSED != 0).count();
        let known = self.groups[index(group)].free.len() + in_use;
        // An erase of one more may be under way.
        if not_closed < known || not_closed > known + 1 {
            return Err(format!("group {group}: {not_closed} blocks are in use, {known} known"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_base::random::Rng;
    use softflash_policy::{VictimPolicy, WearPolicy};
    use std::iter::once;

    fn policies(wear: WearPolicy) -> Policies {
        Policies::new(VictimPolicy::GREEDY, wear, Rng::seeded(1))
    }

    #[test]
    fn free_blocks_are_used_in_the_order_of_their_erases() {
        // Two groups with an unused number between them.
        let mut blocks = Blocks::all_free([0..3, 4..7], 8);
        let fifo = policies(WearPolicy::FIFO);
        assert_eq!((blocks.groups(), blocks.blocks_of(1), blocks.free_in(1)), (2, 4..7, 3));
        assert_eq!((blocks.take_free(1, &fifo), blocks.take_free(1, &fifo)), (Some(4), Some(5)));
        blocks.erased(1, 5);
        blocks.erased(1, 4);
        let taken: Vec<u32> = std::iter::from_fn(|| blocks.take_free(1, &fifo)).collect();
        assert_eq!((taken, blocks.has_free(1), blocks.has_free(0)), (vec![6, 5, 4], false, true));
        assert_eq!(
            (blocks.erases(4), blocks.erases_in(1), blocks.erases_in(0)),
            (1, (0, 1), (0, 0))
        );
    }

    #[test]
    fn the_least_worn_free_block_is_used_first_if_wear_is_levelled() {
        let mut blocks = Blocks::none_free(once(0..4), 8);
        for (block, erases) in [(2, 7), (0, 3), (3, 3), (1, 9)] {
            blocks.set_erases(block, erases);
            blocks.add_free(0, block);
        }
        let dynamic = policies(WearPolicy::DYNAMIC);
        let taken: Vec<u32> = std::iter::from_fn(|| blocks.take_free(0, &dynamic)).collect();
        assert_eq!(taken, [0, 3, 2, 1]);
    }

    #[test]
    fn a_victim_is_proposed_by_what_is_collected_with_it_and_stays_closed() {
        let mut blocks = Blocks::all_free(once(0..3), 8);
        for block in [0, 1] {
            blocks.close(block, block);
        }
        let mut greedy = policies(WearPolicy::FIFO);
        // Block 2 is not closed, whatever would be collected with it.
        let by = |_: &Blocks, block: u32| [6, 4, 1][block as usize];
        for _ in 0..2 {
            assert_eq!(blocks.propose_victim(0, (2, 8), &mut greedy, by), Some(1));
        }
        blocks.reopen(1);
        assert_eq!(blocks.propose_victim(0, (2, 8), &mut greedy, by), Some(0));
    }

    #[test]
    fn a_victim_is_one_block_of_its_group_and_is_chosen_once() {
        let mut blocks = Blocks::none_free([0..2, 2..5], 8);
        for (block, valid) in [(0, 0), (2, 5), (3, 1), (4, 3)] {
            (0..valid).for_each(|_| blocks.add_valid(block));
            blocks.close(block, block);
        }
        let mut greedy = policies(WearPolicy::FIFO);
        let chosen: Vec<u32> =
            std::iter::from_fn(|| blocks.choose_victim(1, 5, &mut greedy)).collect();
        assert_eq!(chosen, [3, 4, 2]);
        assert_eq!(
            (blocks.valid_in(3), blocks.is_closed(3), blocks.is_closed(0)),
            (1, false, true)
        );
        blocks.move_valid(3, 2, 1);
        assert_eq!((blocks.valid_in(3), blocks.valid_in(2)), (0, 6));
    }

    #[test]
    fn a_sparse_victim_has_fewer_valid_pages_than_a_bound() {
        let mut blocks = Blocks::none_free(once(0..3), 8);
        for (block, valid) in [(0, 8), (1, 5), (2, 2)] {
            (0..valid).for_each(|_| blocks.add_valid(block));
            blocks.close(block, block);
        }
        let mut oldest = Policies::new(VictimPolicy::FIFO, WearPolicy::FIFO, Rng::seeded(1));
        assert_eq!(blocks.choose_sparse_victim(0, 3, 6, &mut oldest), Some(1));
        assert_eq!(blocks.choose_sparse_victim(0, 3, 2, &mut oldest), None);
        assert_eq!((blocks.is_closed(1), blocks.is_closed(2)), (false, true));
    }

    #[test]
    fn every_second_victim_at_most_is_chosen_for_the_sake_of_wear() {
        let mut blocks = Blocks::none_free(once(0..5), 8);
        for (block, valid, erases) in [(0, 8, 0), (1, 8, 0), (2, 8, 0), (3, 2, 90), (4, 1, 91)] {
            (0..valid).for_each(|_| blocks.add_valid(block));
            blocks.set_erases(block, erases);
            blocks.close(block, block);
        }
        let mut levelled = policies(WearPolicy::level_by(10));
        let chosen: Vec<u32> =
            std::iter::from_fn(|| blocks.choose_victim(0, 5, &mut levelled)).collect();
        assert_eq!(chosen, [0, 4, 1, 3, 2]);
    }

    #[test]
    fn wrong_counts_and_lost_blocks_are_found() {
        let mut blocks = Blocks::all_free([0..2, 2..4], 4);
        let mut map = PageMap::new(8, 16);
        let block = blocks.take_free(1, &policies(WearPolicy::FIFO)).unwrap();
        map.put(5, block * 4 + 1);
        assert!(blocks.check_counts(&map).unwrap_err().contains("block 2"));
        blocks.add_valid(block);
        assert_eq!(blocks.check_counts(&map), Ok(1));
        blocks.check_use(1, 1).unwrap();
        assert!(blocks.check_use(1, 2).unwrap_err().contains("2 blocks are in use"));
    }
}
