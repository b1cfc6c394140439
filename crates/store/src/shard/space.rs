//! Free blocks, and the parts of them that flush, compaction, log and collector need.

use super::budget::Budget;
use super::limits::Limits;
use super::log::Log;
use super::slices::Slices;
use super::values::ValueLog;
use crate::kv::compaction::leveled::SHORT_PATCHES;
use crate::kv::slice::Slice;
use softflash_base::cast;
use softflash_blocks::BlockLayer;
use softflash_blocks::space::{BLOCKS_OF_LOG, KEPT_BY_BACKGROUND};

/// The smallest reserve of blocks: two each for the log, a flush and the collector, and two more
/// for blocks that fail.
const LEAST_RESERVE: usize = 8;
/// Free blocks by which the collector keeps ahead of the writers: this share of all blocks, as a
/// divisor, and at least so many. They are lost to the data, so that there are few.
const LEAD_SHARE: u32 = 128;
const LEAST_LEAD: u32 = 3;

/// The space of a shard.
pub(super) struct Space<'a> {
    pub(super) blocks: &'a BlockLayer,
    pub(super) budget: &'a Budget,
    pub(super) limits: Limits,
    pub(super) slices: &'a Slices,
    pub(super) log: &'a Log,
    pub(super) values: &'a ValueLog,
}

impl Space<'_> {
    /// Free blocks below which new data is refused.
    pub(super) fn reserve(&self) -> u32 {
        let of_tree = self.reserve_of_tree();
        if !self.values.is_used() {
            return of_tree;
        }
        // A small tree, as that of large values, needs little room for its compaction.
        let tree: usize =
            self.slices.iter().map(|slice| slice.tree.borrow().patches().count()).sum();
        let flush = self.unwritten_bytes().div_ceil(self.blocks.capacity_bytes());
        let waiting = self.values.waiting_bytes().div_ceil(self.blocks.capacity_bytes());
        // The memtable of a slice takes a block at least, and again in a merge.
        let memtables = self.slices.iter().filter(|slice| slice.memtable_bytes() > 0).count();
        let needed = LEAST_RESERVE + tree + flush + flush.max(memtables);
        cast::saturating_u32(needed.min(cast::index(of_tree)) + waiting)
    }

    /// The blocks for flushes, the log and the next merge of any slice. Memtables and runs may be
    /// larger than the limits allow now.
    fn reserve_of_tree(&self) -> u32 {
        let limits = self.limits;
        let more = self.unwritten_bytes().saturating_sub(limits.memtables_total_bytes);
        let flush =
            limits.flush_blocks + cast::saturating_u32(more.div_ceil(self.blocks.capacity_bytes()));
        flush + limits.merge_blocks.max(self.next_merge())
    }

    /// The most blocks that the smallest merge of a slice takes: its oldest run and a part of the
    /// level below.
    fn next_merge(&self) -> u32 {
        let of = |slice: &Slice| slice.tree.borrow().oldest_of_level0();
        let run = self.slices.iter().map(of).max().unwrap_or(0);
        match run {
            0 => 0,
            run => cast::saturating_u32(run + SHORT_PATCHES) + self.budget.part_blocks,
        }
    }

    fn unwritten_bytes(&self) -> usize {
        self.slices.memtable_bytes() + self.log.backlog_bytes()
    }

    /// Free blocks below which deletions are refused too: those from which their flush and a merge
    /// free space. The deletion of a separated value frees space by itself.
    pub(super) fn last_reserve(&self) -> u32 {
        let (merge, reserve) = (self.limits.last_blocks(), self.reserve());
        match self.values.is_used() {
            true => merge.min(reserve / 2).max(BLOCKS_OF_LOG + 1),
            false => merge.max(KEPT_BY_BACKGROUND + 2).min(reserve / 4 * 3),
        }
    }

    /// Whether there is space to rewrite lost copies. Also in a shard that refuses new data, as
    /// long as compaction has the space that it needs.
    pub(super) fn allows_rebuild(&self) -> bool {
        self.blocks.free_blocks() >= self.last_reserve()
    }

    /// Free blocks below which the collector works: it keeps ahead of the writers, so that they
    /// never wait for a whole block.
    pub(super) fn collect_below(&self) -> u32 {
        let share = self.blocks.total_blocks() / LEAD_SHARE;
        self.reserve() + share.max(LEAST_LEAD)
    }

    /// Whether free space is so short that blocks should be collected.
    pub(super) fn is_short_for_values(&self) -> bool {
        self.blocks.free_blocks() < self.collect_below()
    }
}
