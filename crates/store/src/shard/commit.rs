//! Applies a transaction: checks its reads for conflicts, then makes its writes visible atomically.

use super::admission::Demand;
use super::log::Event;
use super::log::event::KeyChange;
use super::watch::WatchToken;
use super::writes::Writes;
use super::{Shard, count};
use crate::error::{Result, StoreError};
use crate::format::reference::Reference;
use crate::format::value::stored_len;
use crate::kv::memtable::{OVERHEAD_BYTES, Version};
use crate::layout::Compression;
use bytes::Bytes;
use smallvec::SmallVec;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use std::rc::Rc;

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
        let (mut bytes, mut separated) = (0, 0);
        for (key, entry) in writes.entries() {
            bytes += key.len() + OVERHEAD_BYTES;
            let len = entry.as_ref().map_or(0, |entry| entry.value.len());
            if self.is_separated(key, len) { separated += len } else { bytes += len }
        }
        self.admit(Demand { bytes, separated, grows: writes.grow() }).await
    }

    /// Whether a key may have been written after it was read.
    pub(super) fn has_changed(&self, mark: &ReadMark) -> bool {
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
                let len = entry.as_ref().map_or(0, |entry| entry.value.len());
                let version = match entry {
                    Some(entry) if self.is_separated(&key, len) => {
                        Version::separate(&key, seq, entry, longest)
                    }
                    entry => Version::seal_in(&key, seq, entry, longest),
                };
                Some((key, version.ok()?))
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
            self.note_values(&key, &version);
            watches.touch(&key);
            let Ok(slice) = self.slice_of(&key) else { continue };
            let is_new = slice.insert(&key, version, segment, snapshot);
            // A key of a memtable is only in the cache if its value is separated.
            let may_be_cached = is_new || self.values.is_used();
            if may_be_cached && !planted::bug(Bug::CacheKeepsOld) {
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

    /// Whether a value of this length goes to a value block. Values of parity groups and of
    /// compressed slices stay in the tree: value blocks have neither parity nor compression.
    pub(super) fn is_separated(&self, key: &[u8], len: usize) -> bool {
        let is_large = self.options.value_threshold.is_some_and(|least| len >= least.max(1));
        let longest = stored_len(key.len(), len.min(self.options.fragment_bytes));
        is_large
            && longest <= self.blocks.capacity_bytes()
            && !self.blocks.has_parity()
            && self.slice_of(key).is_ok_and(|slice| slice.compression == Compression::None)
    }

    /// Gives a separated value to the value log, and notes the death of the one that the key had.
    fn note_values(&self, key: &Bytes, version: &Version) {
        if version.as_separated().is_none() && !self.values.is_used() {
            return;
        }
        let replaced = self.supersede_value(key);
        if let Some(separated) = version.as_separated() {
            let expires_ms = separated.expires_at_ms;
            let ttl_ms = (expires_ms != 0).then(|| expires_ms.saturating_sub(self.now_ms()));
            self.values.write(key, version.seq, separated, ttl_ms, replaced);
        }
    }

    /// The value that a key has is dead. Returns its reference, if it is in a value block.
    fn supersede_value(&self, key: &Bytes) -> Option<Reference> {
        let slice = self.slice_of(key).ok()?;
        let before = slice.in_memory(key, |version| version.as_separated().map(Rc::clone));
        if let Some(in_memory) = before {
            let separated = in_memory?;
            self.values.ledger().borrow_mut().supersede(&separated);
            return separated.references()?.first().copied();
        }
        let on_flash = slice.references_on_flash(key);
        let mut ledger = self.values.ledger().borrow_mut();
        on_flash.iter().for_each(|entry| ledger.remove(&entry.reference));
        on_flash.first().map(|entry| entry.reference)
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
