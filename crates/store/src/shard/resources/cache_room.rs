//! The room of the read cache: all memory of the shard that nothing else uses at the moment.

use super::budget::Budget;
use super::caches::Caches;
use crate::shard::log::Log;
use crate::shard::slices::Slices;
use crate::shard::values::ValueLog;
use crate::spare::SpareMemory;

/// The caches, and everything that shares their memory.
pub(in crate::shard) struct CacheRoom<'a> {
    pub(in crate::shard) caches: &'a Caches,
    pub(in crate::shard) slices: &'a Slices,
    pub(in crate::shard) log: &'a Log,
    pub(in crate::shard) values: &'a ValueLog,
    pub(in crate::shard) budget: &'a Budget,
    pub(in crate::shard) spare: &'a SpareMemory,
    /// The number of shards that share the spare memory.
    pub(in crate::shard) shards: u16,
}

impl CacheRoom<'_> {
    /// Bytes that the read cache may use now.
    pub(in crate::shard) fn room_bytes(&self) -> u64 {
        let taken = self.spare.taken_bytes() / u64::from(self.shards);
        let room = self.budget.shared_bytes.saturating_sub(self.used_bytes() + taken);
        room.max(self.budget.least_cache_bytes)
    }

    /// Shrinks the read cache to its room, after something else has grown.
    pub(in crate::shard) fn fit(&self) {
        self.note_overdraft();
        if self.caches.read_bytes() > 0 {
            self.caches.shrink_to(self.room_bytes());
        }
    }

    /// A shard may use more than its part, for a large value that is admitted alone. The other
    /// shards' caches leave that memory.
    fn note_overdraft(&self) {
        let shards = u64::from(self.shards);
        let over = self.used_bytes().saturating_sub(self.budget.shared_bytes);
        // Each shard counts its share of the overdraft, this one too.
        let taken = over * shards / (shards - 1).max(1);
        let before = self.caches.note_overdraft(taken);
        if taken != before {
            self.spare.change(before, taken);
        }
    }

    fn used_bytes(&self) -> u64 {
        let unwritten = self.slices.memtable_bytes() + self.log.backlog_bytes();
        let waiting = self.values.waiting_bytes();
        (unwritten + waiting + self.caches.scans().memory_bytes()) as u64
    }
}
