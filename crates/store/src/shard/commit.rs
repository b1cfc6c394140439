//! Applying a transaction: checked against what it read, then visible at once and as a whole.

use super::log::Event;
use super::log::event::KeyChange;
use super::{Shard, count};
use crate::error::{Result, StoreError};
use crate::kv::memtable::{OVERHEAD_BYTES, Version};
use crate::store::{Store, Ticket};
use crate::value::Entry;
use crate::view::{ReadMark, View};
use bytes::Bytes;
use softflash_base::planted::{self, Bug};

/// The writes of a transaction in one shard.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writes {
    /// Keys and what they map to from now on; each key once.
    pub entries: Vec<(Bytes, Option<Entry>)>,
    /// Everything is removed before.
    pub clear: bool,
}

impl Writes {
    /// Bytes of keys and values.
    pub fn bytes(&self) -> usize {
        let entry = |(key, entry): &(Bytes, Option<Entry>)| {
            key.len() + entry.as_ref().map_or(0, |entry| entry.value.len())
        };
        self.entries.iter().map(entry).sum()
    }

    /// Whether they add data rather than remove it.
    pub fn grow(&self) -> bool {
        self.entries.iter().any(|(_, entry)| entry.is_some())
    }
}

/// Commits a view; see [`Store::commit`].
pub(crate) async fn commit(store: &Store, view: View) -> Result<Ticket> {
    let mut ticket = view.seen.clone();
    if view.is_read_only() {
        return Ok(ticket);
    }
    let shards = view.written_shards();
    if let [shard] = shards[..] {
        let View { marks, writes, clear, exclusive, .. } = view;
        let marks: Vec<_> = marks.into_iter().filter(|mark| mark.shard == shard).collect();
        let writes = Writes { entries: writes.into_vec(), clear };
        let seq = if shard == store.local_id() {
            store.local().commit(writes, &marks, exclusive).await?
        } else {
            store
                .run_on(shard, move |store| {
                    Box::pin(async move { store.local().commit(writes, &marks, exclusive).await })
                })
                .await??
        };
        ticket.add(shard, seq);
        return Ok(ticket);
    }
    if !view.exclusive {
        return Err(StoreError::Unusable(
            "a transaction over several shards must hold them exclusively".into(),
        ));
    }
    ticket.merge(&super::transactions::commit_across(store, view, shards).await?);
    Ok(ticket)
}

impl Shard {
    /// Applies writes of this shard alone; returns their sequence number.
    async fn commit(&self, writes: Writes, marks: &[ReadMark], exclusive: bool) -> Result<u64> {
        loop {
            if !exclusive {
                self.gate.pass().await;
            }
            self.admit_writes(&writes).await?;
            if exclusive || self.gate.is_open() {
                break;
            }
        }
        // From here to the end nothing waits, so nothing comes between the check and the change. Whoever holds the shard
        // has read under its gate, and a flush since then, which may count in numbers of edits, is no change.
        if !exclusive && marks.iter().any(|mark| self.has_changed(mark)) {
            return Err(StoreError::Conflict);
        }
        Ok(self.apply(writes, None))
    }

    /// Waits until the writes may be taken.
    pub(super) async fn admit_writes(&self, writes: &Writes) -> Result<()> {
        let bytes = writes.bytes() + writes.entries.len() * OVERHEAD_BYTES;
        self.admit(bytes, writes.grow()).await
    }

    /// Whether a key may have been written since it was read.
    fn has_changed(&self, mark: &ReadMark) -> bool {
        if self.seq.get() == mark.at_seq {
            return false;
        }
        let Ok(slice) = self.slice_of(&mark.key) else { return true };
        slice.flushed_seq.get() > mark.at_seq
            || (slice.cleared_seq.get() > mark.at_seq && !planted::bug(Bug::ClearIgnoredByCommit))
            || slice.in_memory(&mark.key, |version| version.seq > mark.at_seq) == Some(true)
    }

    /// Writes to the log and the memtables. With a transaction, what is written counts only when that is
    /// committed.
    pub(super) fn apply(&self, writes: Writes, transaction: Option<u64>) -> u64 {
        let seq = self.next_seq();
        let bytes = writes.bytes() as u64;
        let changes: Vec<KeyChange> = writes
            .entries
            .into_iter()
            .filter_map(|(key, entry)| {
                // Limits were checked when the view took the write.
                let longest = self.options.fragment_bytes;
                let version = Version::seal_in(&key, seq, entry, longest).ok()?;
                Some((key, version))
            })
            .collect();
        let (clear, entries) = (writes.clear, &changes[..]);
        let event = match transaction {
            None => Event::Batch { seq, clear, entries },
            Some(transaction) => Event::Prepare { transaction, seq, clear, entries },
        };
        let segment = self.log.append(&event, seq);
        if clear {
            self.clear(seq);
        }
        if clear && transaction.is_none() {
            self.doom(None);
        }
        count(&self.counters.host_bytes, bytes);
        let snapshot = self.snapshots.newest();
        let (mut cache, mut watches) = (self.cache.borrow_mut(), self.watches.borrow_mut());
        for (key, version) in changes {
            watches.touch(&key);
            if !planted::bug(Bug::CacheKeepsOld) {
                cache.remove(&key);
            }
            let Ok(slice) = self.slice_of(&key) else { continue };
            slice.insert(key, version, segment, snapshot);
        }
        if self.active_bytes() >= self.budget.freeze_bytes {
            self.freeze_largest();
        }
        if self.log.live_bytes() > self.budget.log_bytes {
            self.work.notify_one();
        }
        seq
    }

    /// Registers a token that is told when the key is written.
    pub(crate) async fn watch(&self, key: Bytes, token: crate::store::WatchToken) -> Result<()> {
        self.gate.pass().await;
        // A key that expires while it is watched counts as changed only once something writes it, as
        // long as nobody looks at it; `EXEC` looks.
        self.watches.borrow_mut().add(key, token);
        Ok(())
    }
}
