//! A transaction: the keys that it has read, and its writes.
//!
//! Every command is a function over a transaction. Reads see the transaction's own writes first.
//! Writes stay in memory until [`Store::commit`](crate::Store::commit) applies them atomically, or
//! fails with [`StoreError::Conflict`] if a key that was read has changed since.

use super::{CommitToken, Store};
use crate::error::{Result, StoreError};
use crate::shard::{ReadMark, Writes};
use crate::value::{Entry, MAX_KEY_BYTES, Wanted};
use bytes::Bytes;
use softflash_base::ShardId;

/// An uncommitted transaction.
pub struct Transaction {
    store: Store,
    pub(super) marks: Vec<ReadMark>,
    pub(super) writes: Writes,
    /// The committed writes that its reads have returned.
    pub(super) seen: CommitToken,
    /// Begun under [`Store::exclusive`]: passes the gates, and no other transaction can change its
    /// shards.
    pub(super) exclusive: bool,
}

impl Transaction {
    pub(super) fn new(store: Store, exclusive: bool) -> Transaction {
        Transaction {
            store,
            marks: Vec::new(),
            writes: Writes::default(),
            seen: CommitToken::default(),
            exclusive,
        }
    }

    /// The store that the transaction reads.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Milliseconds since the Unix epoch by the store's clock, which is monotonic.
    pub fn now_ms(&self) -> u64 {
        self.store.now_ms()
    }

    /// The entry of `key`; `None` if it does not exist or has expired.
    pub async fn get(&mut self, key: &Bytes) -> Result<Option<Entry>> {
        self.find(key, Wanted::Entries).await
    }

    /// As [`get`](Transaction::get), for callers that may want less than the entry.
    pub async fn find(&mut self, key: &Bytes, wanted: Wanted) -> Result<Option<Entry>> {
        if let Some(pending) = self.writes.get(key) {
            return Ok(pending.clone());
        }
        if self.writes.clear {
            return Ok(None);
        }
        let shard = self.store.shard_of(key);
        let read = self.store.read(shard, key, self.exclusive, wanted).await?;
        self.marks.push(ReadMark { key: key.clone(), shard, at_seq: read.at_seq });
        self.seen.add(shard, read.seq);
        Ok(read.entry)
    }

    /// Whether `key` exists.
    pub async fn contains(&mut self, key: &Bytes) -> Result<bool> {
        Ok(self.find(key, Wanted::Keys).await?.is_some())
    }

    /// Maps `key` to `entry`.
    pub fn put(&mut self, key: Bytes, entry: Entry) -> Result<()> {
        let (bytes, limit) = (entry.value.len(), self.store.max_value_bytes());
        if bytes > limit {
            return Err(StoreError::ValueTooLong { bytes, limit });
        }
        self.write(key, Some(entry))
    }

    /// Removes `key`, whether it exists or not.
    pub fn delete(&mut self, key: Bytes) -> Result<()> {
        self.write(key, None)
    }

    fn write(&mut self, key: Bytes, entry: Option<Entry>) -> Result<()> {
        let (bytes, limit) = (key.len(), MAX_KEY_BYTES);
        if bytes > limit {
            return Err(StoreError::KeyTooLong { bytes, limit });
        }
        self.writes.set(key, entry);
        Ok(())
    }

    /// Removes every key of every shard. Later writes of the transaction apply after it.
    pub fn clear(&mut self) {
        self.writes = Writes::new(true);
    }

    /// Whether there are no writes to commit.
    pub fn is_read_only(&self) -> bool {
        self.writes.is_empty()
    }

    /// The shard that a commit writes, if it is one alone.
    pub(super) fn only_written_shard(&self) -> Option<ShardId> {
        if self.writes.clear {
            return (self.store.layout().shards == 1).then_some(ShardId(0));
        }
        let mut shards = self.writes.keys().map(|key| self.store.shard_of(key));
        let first = shards.next()?;
        shards.all(|shard| shard == first).then_some(first)
    }

    /// The shards that a commit writes.
    pub fn written_shards(&self) -> Vec<ShardId> {
        if self.writes.clear {
            return (0..self.store.layout().shards).map(ShardId).collect();
        }
        let mut shards: Vec<ShardId> =
            self.writes.keys().map(|key| self.store.shard_of(key)).collect();
        shards.sort_unstable();
        shards.dedup();
        shards
    }

    /// The writes that must be durable before a reply that depends on this transaction's reads is
    /// sent.
    pub fn token(&self) -> &CommitToken {
        &self.seen
    }
}
