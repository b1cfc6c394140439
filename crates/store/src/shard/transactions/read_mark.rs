//! Marks of reads, for the detection of conflicts.

use super::history::History;
use crate::shard::slices::Slices;
use bytes::Bytes;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};

/// A key that was read, and the state of its shard then.
#[derive(Debug, Clone)]
pub(crate) struct ReadMark {
    pub(crate) key: Bytes,
    pub(crate) shard: ShardId,
    pub(crate) at_seq: u64,
}

impl ReadMark {
    /// Whether the key may have been written after it was read.
    pub(in crate::shard) fn is_outdated(&self, history: &History, slices: &Slices) -> bool {
        if history.seq() == self.at_seq {
            return false;
        }
        let Ok(slice) = slices.of_key(&self.key) else { return true };
        slice.flushed_seq.get() > self.at_seq
            || (slice.cleared_seq.get() > self.at_seq && !planted::bug(Bug::ClearIgnoredByCommit))
            || slice.in_memory(&self.key, |version| version.seq > self.at_seq) == Some(true)
    }
}
