//! The changes that a command requests.

use bytes::Bytes;
use smallvec::SmallVec;
use softflash_store::Entry;

/// The changes that a command requests, in order.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub writes: SmallVec<[(Bytes, Option<Entry>); 1]>,
    /// Remove all keys before the writes.
    pub clear: bool,
}

impl Effects {
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && !self.clear
    }
}
