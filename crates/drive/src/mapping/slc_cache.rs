//! The state of an SLC cache: which of its blocks are full, how many pages fit, and whether it
//! folds.

use crate::shape::Shape;
use crate::spec::{Folding, PageMapped};
use std::collections::VecDeque;

/// An SLC cache.
#[derive(Debug)]
pub(crate) struct SlcCache {
    folding: Folding,
    /// The full blocks of each group, the oldest first.
    full: Vec<VecDeque<u32>>,
    /// Full blocks of all groups.
    full_blocks: usize,
    /// Pages that fit, beside those that wait to be programmed; below 0 where padding took more.
    room: i64,
    /// Whether the host is idle.
    host_is_idle: bool,
}

impl SlcCache {
    /// The empty cache of a layout; `None` if it has none.
    pub(crate) fn new(layout: &PageMapped, shape: &Shape) -> Option<SlcCache> {
        let cache = layout.slc_cache?;
        let blocks = (0..shape.groups()).map(|group| shape.slc_blocks_of(group).len() as i64);
        Some(SlcCache {
            folding: cache.folding,
            full: vec![VecDeque::new(); shape.groups() as usize],
            full_blocks: 0,
            room: blocks.sum::<i64>() * i64::from(shape.pages_per_slc_block()),
            host_is_idle: false,
        })
    }

    /// Whether a page of the host goes into the cache, rather than past it.
    pub(crate) fn takes(&self) -> bool {
        self.folding == Folding::InOrder || self.room > 0
    }

    /// So many pages are taken.
    pub(crate) fn take_room(&mut self, pages: u32) {
        self.room -= i64::from(pages);
    }

    /// A block with so many pages has been erased.
    pub(crate) fn add_room(&mut self, pages: u32) {
        self.room += i64::from(pages);
    }

    /// A block of a group is full.
    pub(crate) fn add_full(&mut self, group: u32, block: u32) {
        self.full[group as usize].push_back(block);
        self.full_blocks += 1;
    }

    /// Takes the oldest full block of a group, to fold it.
    pub(crate) fn take_oldest(&mut self, group: u32) -> Option<u32> {
        let oldest = self.full[group as usize].pop_front()?;
        self.full_blocks -= 1;
        Some(oldest)
    }

    /// Gives back the oldest block, whose folding was not ended.
    pub(crate) fn give_back(&mut self, group: u32, block: u32) {
        self.full[group as usize].push_front(block);
        self.full_blocks += 1;
    }

    /// Full blocks of a group.
    pub(crate) fn full_in(&self, group: u32) -> usize {
        self.full[group as usize].len()
    }

    /// Whether a block is full.
    pub(crate) fn has_full(&self) -> bool {
        self.full_blocks > 0
    }

    /// Whether it folds because the host is idle.
    pub(crate) fn folds_idle(&self) -> bool {
        self.folding == Folding::Idle && self.host_is_idle
    }

    /// Whether it folds while the host writes, as soon as it has no free block.
    pub(crate) fn folds_in_order(&self) -> bool {
        self.folding == Folding::InOrder
    }

    /// The host is idle, or no longer.
    pub(crate) fn set_host_idle(&mut self, is_idle: bool) {
        self.host_is_idle = is_idle;
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let of_group = |blocks: &VecDeque<u32>| size_of_val(blocks) + blocks.capacity() * 4;
        self.full.iter().map(of_group).sum::<usize>() as u64
    }
}
