//! What a command wants changed.

use bytes::Bytes;
use smallvec::SmallVec;
use softflash_store::Entry;

/// What a command wants changed, in order.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub writes: SmallVec<[(Bytes, Option<Entry>); 1]>,
    /// Every key goes, before the writes.
    pub clear: bool,
}

impl Effects {
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && !self.clear
    }
}
