//! The room of the read cache: all memory of the shard that nothing else uses at the moment.

use super::Shard;

impl Shard {
    /// Bytes that the read cache may use now.
    pub(super) fn cache_room(&self) -> u64 {
        let taken = self.options.spare.taken_bytes() / u64::from(self.layout.shards);
        let room = self.budget.shared_bytes.saturating_sub(self.used_bytes() + taken);
        room.max(self.budget.least_cache_bytes)
    }

    /// Shrinks the read cache to its room, after something else has grown.
    pub(crate) fn fit_cache(&self) {
        self.note_overdraft();
        let mut cache = self.caches.read.borrow_mut();
        if cache.bytes() > 0 {
            cache.shrink_to(self.cache_room());
        }
    }

    /// A shard may use more than its part, for a large value that is admitted alone. The other
    /// shards' caches leave that memory.
    fn note_overdraft(&self) {
        let shards = u64::from(self.layout.shards);
        let over = self.used_bytes().saturating_sub(self.budget.shared_bytes);
        // Each shard counts its share of the overdraft, this one too.
        let taken = over * shards / (shards - 1).max(1);
        let before = self.caches.overdraft_bytes.replace(taken);
        if taken != before {
            self.options.spare.change(before, taken);
        }
    }

    fn used_bytes(&self) -> u64 {
        let waiting = self.values.waiting_bytes();
        (self.unwritten_bytes() + waiting + self.caches.scans.memory_bytes()) as u64
    }
}
