//! The division of a shard's memory and space.

use super::limits::{Limits, Sizing};
use crate::kv::compaction::leveled::GATHERED_RUNS;
use crate::kv::cursor::STEP_BYTES;
use crate::layout::StoreLayout;
use crate::options::StoreOptions;

/// Limits, in bytes and blocks, for the parts of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The limits of memtables and log on empty flash.
    pub most: Limits,
    /// Separated values that are not written.
    pub values_waiting_bytes: usize,
    /// Runs of level 0 that start a merge where space is short, and the most that the first merge
    /// after a start takes then.
    pub level0_runs: usize,
    /// The target size of level 1 of a slice.
    pub level1_bytes: u64,
    /// The memory that memtables, pending log events, scan readahead, requests and the read cache
    /// share: the cache has the part that the others do not use at the moment.
    pub shared_bytes: u64,
    /// The least size of the read cache.
    pub least_cache_bytes: u64,
    /// Pieces of patches that scans have read ahead for their next pages.
    pub scan_readahead_bytes: usize,
    /// The read size of a compaction, per run.
    pub compaction_step_bytes: usize,
    /// Patches of the target level in a part of a large merge.
    pub part_blocks: u32,
    sizing: Sizing,
}

/// The most of these runs.
const MAX_LEVEL0_RUNS: usize = 4;

/// The most patches of the target level in a part of a merge: more would need more free space,
/// fewer would leave more partly filled patches.
const MOST_PART_BLOCKS: u32 = 8;

/// The most bytes of separated values that wait for the device: a few tens of milliseconds of work.
const MAX_WAITING_BYTES: usize = 8 << 20;

/// The most memory of a shard's memtables: larger ones save few writes, and a start takes longer.
const MAX_MEMTABLES_BYTES: u64 = 256 << 20;

/// Limits of scan readahead: a few pieces of the largest values, and no more than is useful.
const MIN_READAHEAD_BYTES: usize = 8 << 20;
const MAX_READAHEAD_BYTES: usize = 128 << 20;

/// The memory of flushes, compactions and the log's writes under way, in blocks and at least in
/// bytes, as measured under steady writes ...
const WORK_BLOCKS: u64 = 8;
const LEAST_WORK_BYTES: u64 = 64 << 20;
/// ... and the largest part of the memory that is set aside for it: five in this many.
const MAX_WORK_SHARE: u64 = 11;

/// The fraction of the memory, as a divisor, for requests and replies in flight; the server uses
/// it.
pub const REQUEST_SHARE: u64 = 8;

impl Budget {
    /// The budget of one shard with `blocks` blocks of `block_bytes` each.
    pub fn new(
        options: &StoreOptions,
        layout: &StoreLayout,
        blocks: u32,
        block_bytes: usize,
    ) -> Budget {
        let memory = options.memory_bytes / u64::from(layout.shards);
        let device = u64::from(blocks) * block_bytes as u64;
        // A merge of level 0 keeps its runs until its end, and the inputs of a part until the
        // outputs are complete. So the device also bounds the memtables, and so does the start,
        // which replays them from the log.
        let total =
            (memory * 9 / 16).min(MAX_MEMTABLES_BYTES).min(device / 24).max(256 << 10) as usize;
        let slices = usize::from(layout.slices.div_ceil(layout.shards));
        let part_blocks = (blocks / 16).clamp(2, MOST_PART_BLOCKS).max(layout.parity.into());
        let mut sizing = Sizing { blocks, block_bytes, slices, part_blocks, level0_runs: 1, total };
        let freeze = sizing.freeze_bytes(total);
        sizing.level0_runs = (device as usize / 16 / freeze).clamp(1, MAX_LEVEL0_RUNS);
        let level0_runs = sizing.level0_runs;
        // As large as the runs that gather above it. The limit is of one slice: the slices of a
        // shard together may fill the device, which then has no level 2.
        let level1_bytes = (GATHERED_RUNS * freeze) as u64;
        let level1_bytes = level1_bytes.min(device / 8).max((level0_runs * freeze) as u64);
        let spare = options.spare.total_bytes() / u64::from(layout.shards);
        let shared = memory - memory / REQUEST_SHARE + spare;
        let work = (WORK_BLOCKS * block_bytes as u64).max(LEAST_WORK_BYTES);
        let work = work.min(shared * 5 / MAX_WORK_SHARE);
        Budget {
            most: sizing.limits(total),
            values_waiting_bytes: total.min(MAX_WAITING_BYTES),
            level0_runs,
            level1_bytes,
            shared_bytes: shared - work,
            least_cache_bytes: (memory / 16).max(64 << 10),
            scan_readahead_bytes: (memory as usize / 16)
                .clamp(MIN_READAHEAD_BYTES, MAX_READAHEAD_BYTES),
            // Small pieces let clients' reads pass and hold little memory. Where dies serve
            // requests in order, no read can pass and each piece waits for all earlier requests, so
            // fewer, larger pieces are better.
            compaction_step_bytes: match options.ftl.order.is_fifo() {
                true => block_bytes,
                false => STEP_BYTES,
            },
            part_blocks,
            sizing,
        }
    }

    /// The limits of memtables and log with so many free blocks.
    pub fn limits(&self, free_blocks: u32) -> Limits {
        self.sizing.at(free_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_policy::Schedule;

    #[test]
    fn compaction_reads_whole_patches_only_where_dies_serve_in_order() {
        let layout = StoreLayout::new(1, 1, 1);
        let step_bytes = |order| {
            let mut options = StoreOptions::default();
            options.ftl.order = order;
            Budget::new(&options, &layout, 64, 8 << 20).compaction_step_bytes
        };
        assert_eq!(step_bytes(Schedule::READS_FIRST), 256 << 10);
        assert_eq!(step_bytes(Schedule::FIFO), 8 << 20);
    }
}
