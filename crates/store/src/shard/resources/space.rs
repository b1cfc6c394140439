//! Free blocks, and the parts of them that flush, compaction, log and collector need.

use super::budget::Budget;
use super::limits::Limits;
use crate::kv::compaction::leveled::SHORT_PATCHES;
use crate::kv::slice::Slice;
use crate::shard::log::Log;
use crate::shard::slices::Slices;
use crate::shard::values::{Collector, ValueLog};
use softflash_base::cast;
use softflash_blocks::BlockLayer;
use softflash_blocks::space::{BLOCKS_OF_LOG, KEPT_BY_BACKGROUND};

/// Blocks of the reserve for the log, for a flush that the collector causes, and for blocks that
/// fail, two each.
const LEAST_RESERVE: u32 = 6;
/// The space by which the collector keeps ahead of the writers while they leave it time, in blocks.
/// It is lost to the data, so that it is little.
const LEAD: u64 = 2;

/// The space of a shard.
pub(in crate::shard) struct Space<'a> {
    pub(in crate::shard) blocks: &'a BlockLayer,
    pub(in crate::shard) budget: &'a Budget,
    pub(in crate::shard) limits: Limits,
    pub(in crate::shard) slices: &'a Slices,
    pub(in crate::shard) log: &'a Log,
    pub(in crate::shard) values: &'a ValueLog,
    pub(in crate::shard) collector: &'a Collector,
}

impl Space<'_> {
    /// Free blocks below which new data is refused.
    pub(in crate::shard) fn reserve(&self) -> u32 {
        let of_tree = self.reserve_of_tree();
        if !self.values.is_used() {
            return of_tree;
        }
        // A small tree, as that of large values, needs little room: the memtables of all slices,
        // each of which takes a block at least, and then the merge of one slice after the other.
        let block = self.blocks.capacity_bytes();
        let flush = |slice: &Slice| slice.memtable_bytes().div_ceil(block);
        let merge = |slice: &Slice| slice.tree.borrow().patches().count() + flush(slice);
        let flushes: usize = self.slices.iter().map(flush).sum();
        let merge = self.slices.iter().map(merge).max().unwrap_or(0);
        let log = self.log.backlog_bytes().div_ceil(block);
        let needed =
            cast::index(LEAST_RESERVE + self.reserve_of_collector()) + flushes + merge + log;
        let waiting = self.values.waiting_space().div_ceil(block);
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
    pub(in crate::shard) fn last_reserve(&self) -> u32 {
        let (merge, reserve) = (self.limits.last_blocks(), self.reserve());
        match self.values.is_used() {
            true => merge.min(reserve / 2).max(BLOCKS_OF_LOG + 1),
            false => merge.max(KEPT_BY_BACKGROUND + 2).min(reserve / 4 * 3),
        }
    }

    /// Whether there is space to rewrite lost copies. Also in a shard that refuses new data, as
    /// long as compaction has the space that it needs.
    pub(in crate::shard) fn allows_rebuild(&self) -> bool {
        self.blocks.free_blocks() >= self.last_reserve()
    }

    /// Whether there is no space for new data with so many bytes of separated values, which may be
    /// a multiple of the reserve.
    pub(in crate::shard) fn lacks(&self, separated: usize) -> bool {
        let (reserve, free) = (self.reserve(), self.blocks.free_blocks());
        if !self.values.is_used() {
            let more = separated.div_ceil(self.blocks.capacity_bytes());
            return free < reserve + cast::saturating_u32(more);
        }
        let (fresh, _) = self.values.open_bytes();
        let wanted = cast::wide(separated).saturating_sub(fresh);
        self.held_free() < u64::from(reserve) * self.block() + wanted
    }

    /// Bytes of separated values that writers can take at once: the space above the reserve and one
    /// block, counted as the collector gains it.
    pub(in crate::shard) fn of_values(&self) -> u64 {
        let (fresh, _) = self.values.open_bytes();
        let kept = u64::from(self.reserve() + 1) * self.block();
        (self.held_free() + fresh).saturating_sub(kept)
    }

    /// Bytes of free blocks, and of those that the collector has of its part of the reserve.
    fn held_free(&self) -> u64 {
        let of_collector = u64::from(self.reserve_of_collector()) * self.block();
        u64::from(self.blocks.free_blocks()) * self.block() + self.under_way().min(of_collector)
    }

    /// Blocks of the reserve for the collector: one for each stream that it fills, and one that it
    /// has emptied and may not delete yet. While it works they are in use.
    fn reserve_of_collector(&self) -> u32 {
        self.values.moved_streams() + 1
    }

    /// Bytes that the collector holds, or is about to free.
    fn under_way(&self) -> u64 {
        let (_, moved) = self.values.open_bytes();
        let empty = cast::wide(self.collector.retiring()) * self.block();
        moved + empty + self.values.gain().bytes()
    }

    fn block(&self) -> u64 {
        cast::wide(self.blocks.capacity_bytes())
    }

    /// Whether the collector works: it keeps ahead of the writers. Also where their open blocks
    /// have room, but the free space does not reach the reserve: every write lacks space then.
    pub(in crate::shard) fn is_short_for_values(&self) -> bool {
        self.of_values() < (LEAD * self.block()).max(self.collector.wanted())
            || self.held_free() < u64::from(self.reserve() + 1) * self.block()
    }
}
