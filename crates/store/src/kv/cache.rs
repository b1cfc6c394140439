//! The read cache: entries by key, bounded in bytes.

use crate::value::Entry;
use bytes::Bytes;
use quick_cache::unsync::Cache;
use quick_cache::{DefaultHashBuilder, Weighter};

/// What the cache remembers of a key.
#[derive(Debug, Clone)]
pub struct Cached {
    /// The newest entry on flash.
    pub entry: Entry,
    /// The sequence number of its record.
    pub seq: u64,
}

/// Bytes that an entry costs beside its key and value.
const OVERHEAD_BYTES: usize = 160;

#[derive(Clone)]
struct Bytewise;

impl Weighter<Bytes, Cached> for Bytewise {
    fn weight(&self, key: &Bytes, cached: &Cached) -> u64 {
        (key.len() + cached.entry.value.len() + OVERHEAD_BYTES) as u64
    }
}

/// Entries that are on flash and not in a memtable, most useful first (S3-FIFO). Entries written
/// since are removed by the writer, so what is found is current.
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

    /// What is known of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&Cached> {
        self.cache.get(key)
    }

    /// Remembers an entry; one that would fill a large part of the cache is not worth it.
    pub fn insert(&mut self, key: Bytes, cached: Cached) {
        if cached.entry.value.len() <= self.largest {
            self.cache.insert(key, cached);
        }
    }

    /// `key` has been written.
    pub fn remove(&mut self, key: &[u8]) {
        // Most writes find the cache empty or nearly so, where a server writes only.
        if !self.cache.is_empty() {
            self.cache.remove(key);
        }
    }

    /// Everything has been removed.
    pub fn clear(&mut self) {
        self.cache.clear();
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        self.cache.weight()
    }
}
