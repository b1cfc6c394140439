//! Limits of a shard's memtables and log, and the free blocks that flushes, the log and merges need
//! for them. Both shrink while the flash fills up: smaller memtables make smaller runs and a
//! shorter log, so full flash keeps few blocks free, and empty flash writes little for each byte.

use super::budget::Budget;
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use std::cell::Cell;

/// The share of the free space that memtables may have, as a divisor.
const FREE_SHARE: u64 = 16;

/// The least reserve of a merge, as far as the largest merge needs it.
const LEAST_MERGE_BLOCKS: u32 = 16;

/// The longest log of a shard that is planned, because a start reads it.
const MAX_LOG_BYTES: u64 = 512 << 20;

/// The limits at some free space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The total size of the active memtables at which the largest is flushed.
    pub freeze_bytes: usize,
    /// The total size of all memtables, including those being flushed, and of the pending log
    /// events, which are a second copy of the last writes.
    pub memtables_total_bytes: usize,
    /// The length of the log above which a flush makes its oldest segments unneeded.
    pub log_bytes: u64,
    /// Blocks for flushes and the log.
    pub flush_blocks: u32,
    /// Blocks for a merge in parts of runs of this size.
    pub merge_blocks: u32,
}

/// The limits at the free space of the last look: each write looks several times, and the free
/// space seldom changes between.
#[derive(Debug, Default)]
pub(in crate::shard) struct LastLimits(Cell<Option<(u32, Limits)>>);

impl LastLimits {
    /// The limits with so many free blocks.
    pub fn at(&self, budget: &Budget, free_blocks: u32) -> Limits {
        if let Some((free, limits)) = self.0.get()
            && free == free_blocks
        {
            return limits;
        }
        let limits = budget.limits(free_blocks);
        self.0.set(Some((free_blocks, limits)));
        limits
    }
}

/// The sizes from which limits follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizing {
    pub blocks: u32,
    pub block_bytes: usize,
    /// Slices of the shard.
    pub slices: usize,
    /// Patches of the target level in a part of a large merge.
    pub part_blocks: u32,
    /// Runs of level 0 that start a merge where space is short.
    pub level0_runs: usize,
    /// The most bytes of all memtables.
    pub total: usize,
}

impl Sizing {
    /// The limits with so many free blocks.
    pub fn at(&self, free_blocks: u32) -> Limits {
        let share = u64::from(free_blocks) * cast::wide(self.block_bytes) / FREE_SHARE;
        let share = usize::try_from(share).unwrap_or(usize::MAX);
        self.limits(share.max(self.least_total()).min(self.total))
    }

    /// The limits where memtables have this size.
    pub fn limits(&self, total: usize) -> Limits {
        let freeze = self.freeze_bytes(total);
        let device = u64::from(self.blocks) * cast::wide(self.block_bytes);
        let log_bytes = (4 * cast::wide(total)).min(MAX_LOG_BYTES).min(device / 12);
        let log_bytes = log_bytes.max(2 * cast::wide(self.block_bytes));
        let blocks_of = |bytes: usize| cast::saturating_u32(bytes.div_ceil(self.block_bytes));
        let merged = |runs: usize| blocks_of(runs * freeze) + cast::saturating_u32(runs);
        // Where one slice gets all writes, its runs are as large as a memtable may be.
        let two = merged(self.level0_runs.min(2));
        let merge = two + two.min(self.part_blocks + 2);
        // On a small device a run can be much larger than a memtable should be, by its last batch.
        let merge = merge.max((2 * merged(self.level0_runs)).min(LEAST_MERGE_BLOCKS));
        let log = usize::try_from(log_bytes).unwrap_or(usize::MAX);
        // The memtable of a slice takes a block at least, however small it is.
        let flushed = blocks_of(total).max(cast::saturating_u32(self.slices));
        Limits {
            freeze_bytes: freeze,
            memtables_total_bytes: total,
            log_bytes,
            flush_blocks: flushed + 2 + LOG_BLOCKS + blocks_of(log) / 2,
            merge_blocks: if planted::bug(Bug::ReserveFourfold) { 4 * merge } else { merge },
        }
    }

    /// The size of the active memtables at which the largest is flushed. Others fill up while it is
    /// flushed. With more slices it is a smaller part of all, and all of them may be larger: it has
    /// two parts in (slices + 1) of all memtables, where slices are written alike. It should fill
    /// one block, not two.
    pub fn freeze_bytes(&self, total: usize) -> usize {
        let slices = self.slices;
        let most = (total * (slices + 1) / (slices + 3)).min(total / 4 * 3);
        most.min((slices + 1) * self.block_bytes / 2).max(total / 2)
    }

    /// Memtables of which the largest fills a block when it is flushed.
    fn least_total(&self) -> usize {
        (self.slices + 3) * self.block_bytes / 2
    }
}

/// The segment of the log that is written: the announced one is already allocated.
const LOG_BLOCKS: u32 = 1;

impl Limits {
    /// Free blocks below which new data is refused: flushes, the log and a merge in parts need
    /// them.
    pub fn reserve_blocks(&self) -> u32 {
        self.flush_blocks + self.merge_blocks
    }

    /// Free blocks below which deletions are refused too: a merge needs them to free space.
    pub fn last_blocks(&self) -> u32 {
        self.merge_blocks / 2 + LOG_BLOCKS
    }
}
