//! The changes that a command requests, and its lookups.

use bytes::Bytes;
use smallvec::SmallVec;
use softflash_store::Entry;

/// The changes that a command requests, in order.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub writes: SmallVec<[(Bytes, Option<Entry>); 1]>,
    /// Remove all keys before the writes.
    pub clear: bool,
    pub lookups: Lookups,
}

/// Lookups of keys, as INFO counts them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lookups {
    /// The key existed.
    pub hits: u64,
    pub misses: u64,
}

impl Lookups {
    pub fn add(&mut self, other: Lookups) {
        self.hits += other.hits;
        self.misses += other.misses;
    }
}

impl Effects {
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && !self.clear
    }
}
