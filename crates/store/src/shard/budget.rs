//! How a shard's memory and space are divided.

use crate::kv::cursor::STEP_BYTES;
use crate::layout::StoreLayout;
use crate::options::StoreOptions;
use softflash_base::planted::{self, Bug};

/// Bytes and blocks that the parts of a shard may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// When the active memtables of all slices are this large together, the largest is flushed.
    pub freeze_bytes: usize,
    /// All memtables of the shard together, those being flushed included, and with them what the log has still to
    /// write: a second copy of what was written last.
    pub memtables_total_bytes: usize,
    /// Runs of level 0 that are merged at once; bounds the room that a compaction needs.
    pub level0_runs: usize,
    /// The read cache.
    pub cache_bytes: u64,
    /// Pieces of patches that scans leave for their next pages.
    pub scan_readahead_bytes: usize,
    /// What a compaction reads at a time of each run.
    pub compaction_step_bytes: usize,
    /// The log is cut by a flush when it is longer than this.
    pub log_bytes: u64,
    /// Free blocks below which new data is refused: what flushes and the largest compaction need.
    pub reserve_blocks: u32,
    /// Free blocks below which deletions are refused too: what compaction needs to make room by them.
    pub last_blocks: u32,
}

/// The most runs of level 0 that are merged at once.
const MAX_LEVEL0_RUNS: usize = 4;

/// What scans may leave: a few pieces of the largest values, and no more than is worth it.
const LEAST_WINDOWS_BYTES: usize = 8 << 20;
const MOST_WINDOWS_BYTES: usize = 128 << 20;

/// The share of the memory that holds requests and replies on their way; the server uses it.
pub const REQUEST_SHARE: u64 = 8;

impl Budget {
    /// The division for one shard of a store with `blocks` blocks of `block_bytes` each in the shard.
    pub fn new(
        options: &StoreOptions,
        layout: &StoreLayout,
        blocks: u32,
        block_bytes: usize,
    ) -> Budget {
        let memory = options.memory_bytes / u64::from(layout.shards);
        let device = u64::from(blocks) * block_bytes as u64;
        // A level-0 compaction takes a few memtables and as much of level 1, and needs room for all of it
        // before it can give any back: so the device bounds the memtables too.
        let total = (memory * 9 / 16).min(device / 24).max(256 << 10) as usize;
        let freeze = total / 2;
        let level0_runs = (device as usize / 16 / freeze).clamp(1, MAX_LEVEL0_RUNS);
        let log_bytes = (4 * total as u64).min(device / 12).max(2 * block_bytes as u64);
        let blocks_of = |bytes: usize| bytes.div_ceil(block_bytes) as u32;
        let flushes = blocks_of(total) + 2;
        let compaction = blocks_of(2 * level0_runs * freeze) + 2 * level0_runs as u32;
        let compaction =
            if planted::bug(Bug::ReserveFourfold) { 4 * compaction } else { compaction };
        // The segment behind the announced one, which the log has already.
        let log = 1;
        Budget {
            freeze_bytes: freeze,
            memtables_total_bytes: total,
            level0_runs,
            cache_bytes: (memory / 4).max(64 << 10),
            // What remains of the memory.
            scan_readahead_bytes: (memory as usize / 16)
                .clamp(LEAST_WINDOWS_BYTES, MOST_WINDOWS_BYTES),
            // Small pieces let clients' reads through, and hold little memory. Where dies take everything in its order, nobody
            // gets through, and each piece waits for whatever was asked before: the fewer the better.
            compaction_step_bytes: match options.ftl.reads_first {
                true => STEP_BYTES,
                false => block_bytes,
            },
            log_bytes,
            reserve_blocks: flushes + compaction + log + blocks_of(log_bytes as usize) / 2,
            last_blocks: compaction / 2 + log,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compaction_reads_patches_whole_only_where_reads_wait_in_line() {
        let layout = StoreLayout {
            shards: 1,
            slices: 1,
            units: 1,
            compression: Vec::new(),
            copies: 1,
            parity: 0,
        };
        let step_bytes = |reads_first| {
            let mut options = StoreOptions::default();
            options.ftl.reads_first = reads_first;
            Budget::new(&options, &layout, 64, 8 << 20).compaction_step_bytes
        };
        assert_eq!(step_bytes(true), 256 << 10);
        assert_eq!(step_bytes(false), 8 << 20);
    }
}
