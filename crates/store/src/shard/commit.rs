//! Applies a transaction: checks its reads for conflicts, then makes its writes visible atomically.

use super::log::Event;
use super::log::event::KeyChange;
use super::watch::WatchToken;
use super::writes::Writes;
use super::{Shard, count};
use crate::error::{Result, StoreError};
use crate::kv::memtable::{OVERHEAD_BYTES, Version};
use bytes::Bytes;
use smallvec::SmallVec;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};

/// A key that was read, and the state of its shard then.
#[derive(Debug, Clone)]
pub(crate) struct ReadMark {
    pub(crate) key: Bytes,
    pub(crate) shard: ShardId,
    pub(crate) at_seq: u64,
}

impl Shard {
    /// Applies writes of this shard alone; returns their sequence number.
    pub(crate) async fn commit(
        &self,
        writes: Writes,
        marks: &[ReadMark],
        exclusive: bool,
    ) -> Result<u64> {
        loop {
            if !exclusive {
                self.gate.pass().await;
            }
            self.admit_writes(&writes).await?;
            if exclusive || self.gate.is_open() {
                break;
            }
        }
        // No await follows, so no other write comes between the check and the change. An exclusive
        // transaction has read under the gate it holds; a flush since then may have raised
        // `flushed_seq` by the numbers of edits, which is no conflict.
        if !exclusive && marks.iter().any(|mark| self.has_changed(mark)) {
            return Err(StoreError::Conflict);
        }
        Ok(self.apply(writes, None))
    }

    /// Waits until the writes are admitted.
    pub(crate) async fn admit_writes(&self, writes: &Writes) -> Result<()> {
        let bytes = writes.bytes() + writes.len() * OVERHEAD_BYTES;
        self.admit(bytes, writes.grow()).await
    }

    /// Whether a key may have been written after it was read.
    fn has_changed(&self, mark: &ReadMark) -> bool {
        if self.history.seq.get() == mark.at_seq {
            return false;
        }
        let Ok(slice) = self.slice_of(&mark.key) else { return true };
        slice.flushed_seq.get() > mark.at_seq
            || (slice.cleared_seq.get() > mark.at_seq && !planted::bug(Bug::ClearIgnoredByCommit))
            || slice.in_memory(&mark.key, |version| version.seq > mark.at_seq) == Some(true)
    }

    /// Writes to the log and the memtables; with a transaction, as a prepare that needs a commit.
    pub(super) fn apply(&self, writes: Writes, transaction: Option<u64>) -> u64 {
        let seq = self.next_seq();
        let bytes = writes.bytes() as u64;
        let clear = writes.clear;
        let changes: SmallVec<[KeyChange; 1]> = writes
            .into_entries()
            .filter_map(|(key, entry)| {
                // Limits were checked when the transaction took the write.
                let longest = self.options.fragment_bytes;
                let version = Version::seal_in(&key, seq, entry, longest).ok()?;
                Some((key, version))
            })
            .collect();
        let entries = &changes[..];
        let event = match transaction {
            None => Event::Batch { seq, clear, entries },
            Some(transaction) => Event::Prepare { transaction, seq, clear, entries },
        };
        let segment = self.log.append(&event, seq);
        if clear {
            self.clear(seq);
        }
        if clear && transaction.is_none() {
            self.drop_cleared_patches(None);
        }
        count(&self.counters.host_bytes, bytes);
        let snapshot = self.history.snapshots.newest();
        let (mut cache, mut watches) =
            (self.caches.read.borrow_mut(), self.history.watches.borrow_mut());
        for (key, version) in changes {
            watches.touch(&key);
            let Ok(slice) = self.slice_of(&key) else { continue };
            // A key of a memtable is not in the cache.
            if slice.insert(&key, version, segment, snapshot) && !planted::bug(Bug::CacheKeepsOld) {
                cache.remove(&key);
            }
        }
        drop((cache, watches));
        self.fit_cache();
        if self.active_bytes() >= self.budget.freeze_bytes {
            self.freeze_largest();
        }
        if self.log.live_bytes() > self.budget.log_bytes {
            self.tasks.flush.notify_one();
        }
        seq
    }

    /// Registers a token that is marked when the key is written.
    pub(crate) async fn watch(&self, key: Bytes, token: WatchToken) -> Result<()> {
        self.gate.pass().await;
        // The expiry of a watched key counts as a change only once a command reads or writes the
        // key; `EXEC` reads it.
        self.history.watches.borrow_mut().add(key, token);
        Ok(())
    }
}
