//! The read cache: entries by key, bounded in bytes.

use crate::value::Entry;
use bytes::Bytes;
use quick_cache::unsync::Cache;
use quick_cache::{DefaultHashBuilder, Weighter};

/// A cached entry.
#[derive(Debug, Clone)]
pub struct Cached {
    /// The newest entry on flash.
    pub entry: Entry,
    /// The sequence number of its record.
    pub seq: u64,
}

/// The memory overhead of an entry, in bytes.
const OVERHEAD_BYTES: usize = 160;

#[derive(Clone)]
struct Bytewise;

impl Weighter<Bytes, Cached> for Bytewise {
    fn weight(&self, key: &Bytes, cached: &Cached) -> u64 {
        (key.len() + cached.entry.value.len() + OVERHEAD_BYTES) as u64
    }
}

/// Entries that are on flash and not in a memtable, evicted by S3-FIFO. A write removes its key, so
/// that every cached entry is current.
pub struct ReadCache {
    cache: Cache<Bytes, Cached, Bytewise>,
    largest: usize,
}

impl ReadCache {
    /// A cache of at most `capacity_bytes`.
    pub fn new(capacity_bytes: u64) -> ReadCache {
        let items = (capacity_bytes / 1024).max(16) as usize;
        let cache = Cache::with(
            items,
            capacity_bytes,
            Bytewise,
            DefaultHashBuilder::default(),
            quick_cache::unsync::DefaultLifecycle::default(),
        );
        ReadCache { cache, largest: (capacity_bytes / 16) as usize }
    }

    /// The cached entry of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&Cached> {
        self.cache.get(key)
    }

    /// Adds an entry, unless it would fill a large part of the cache.
    pub fn insert(&mut self, key: Bytes, cached: Cached) {
        if cached.entry.value.len() <= self.largest {
            self.cache.insert(key, cached);
        }
    }

    /// Removes `key`, which has been written.
    pub fn remove(&mut self, key: &[u8]) {
        // In write-only workloads the cache is empty: the check saves hashing the key.
        if !self.cache.is_empty() {
            self.cache.remove(key);
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.cache.clear();
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        self.cache.weight()
    }
}
