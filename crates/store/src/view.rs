//! A transaction in the making: what it has read, and what it wants to write.
//!
//! Every command is a function over a view. Reads see the view's own writes first; writes stay in the
//! view until [`Store::commit`](crate::Store::commit) applies them all at once, or refuses with
//! [`StoreError::Conflict`] when a key that was read has changed since.

use crate::error::{Result, StoreError};
use crate::store::{Store, Ticket};
use crate::value::{Entry, MAX_KEY_BYTES, MAX_VALUE_BYTES};
use bytes::Bytes;
use hashbrown::HashMap;
use softflash_base::ShardId;

/// A key that was read, and the state of its shard then.
#[derive(Debug, Clone)]
pub(crate) struct ReadMark {
    pub key: Bytes,
    pub shard: ShardId,
    pub at_seq: u64,
}

/// An uncommitted transaction.
pub struct View {
    store: Store,
    pub(crate) marks: Vec<ReadMark>,
    pub(crate) writes: Pending,
    pub(crate) clear: bool,
    pub(crate) seen: Ticket,
    /// Made under [`Store::exclusive`]: passes the gates, and nothing can change under it.
    pub(crate) exclusive: bool,
}

impl View {
    pub(crate) fn new(store: Store, exclusive: bool) -> View {
        View {
            store,
            marks: Vec::new(),
            writes: Pending::default(),
            clear: false,
            seen: Ticket::default(),
            exclusive,
        }
    }

    /// The store that the view reads.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Milliseconds since the Unix epoch by the store's clock, which never runs back.
    pub fn now_ms(&self) -> u64 {
        self.store.now_ms()
    }

    /// What `key` maps to, its expiry considered.
    pub async fn get(&mut self, key: &Bytes) -> Result<Option<Entry>> {
        if let Some(pending) = self.writes.get(key) {
            return Ok(pending.clone());
        }
        if self.clear {
            return Ok(None);
        }
        let shard = self.store.shard_of(key);
        let read = self.store.read(shard, key, self.exclusive).await?;
        self.marks.push(ReadMark { key: key.clone(), shard, at_seq: read.at_seq });
        self.seen.add(shard, read.seq);
        Ok(read.entry)
    }

    /// Whether `key` exists.
    pub async fn contains(&mut self, key: &Bytes) -> Result<bool> {
        Ok(self.get(key).await?.is_some())
    }

    /// Maps `key` to `entry`.
    pub fn put(&mut self, key: Bytes, entry: Entry) -> Result<()> {
        let (bytes, limit) = (entry.value.len(), MAX_VALUE_BYTES);
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

    /// Removes every key of every shard, before the writes that follow.
    pub fn clear(&mut self) {
        self.writes = Pending::default();
        self.clear = true;
    }

    /// Whether there is anything to commit.
    pub fn is_read_only(&self) -> bool {
        self.writes.changes.is_empty() && !self.clear
    }

    /// The shards that a commit would write.
    pub fn written_shards(&self) -> Vec<ShardId> {
        if self.clear {
            return (0..self.store.layout().shards).map(ShardId).collect();
        }
        let mut shards: Vec<ShardId> =
            self.writes.changes.iter().map(|(key, _)| self.store.shard_of(key)).collect();
        shards.sort_unstable();
        shards.dedup();
        shards
    }

    /// What must be durable before an answer that depends on this view's reads may be given.
    pub fn ticket(&self) -> &Ticket {
        &self.seen
    }
}

/// The writes of a view: each key once, in order of its first write.
#[derive(Default)]
pub(crate) struct Pending {
    changes: Vec<(Bytes, Option<Entry>)>,
    /// Places by key, once there are too many to look at each.
    places: HashMap<Bytes, usize>,
}

/// Changes that are searched one by one.
const FEW: usize = 16;

impl Pending {
    fn place(&self, key: &Bytes) -> Option<usize> {
        if self.places.is_empty() {
            self.changes.iter().position(|(written, _)| written == key)
        } else {
            self.places.get(key).copied()
        }
    }

    fn get(&self, key: &Bytes) -> Option<&Option<Entry>> {
        let (_, entry) = self.changes.get(self.place(key)?)?;
        Some(entry)
    }

    fn set(&mut self, key: Bytes, entry: Option<Entry>) {
        if let Some((_, pending)) = self.place(&key).and_then(|place| self.changes.get_mut(place)) {
            *pending = entry;
            return;
        }
        if self.changes.len() == FEW {
            let places = self.changes.iter().enumerate();
            self.places = places.map(|(place, (key, _))| (key.clone(), place)).collect();
        }
        if self.changes.len() >= FEW {
            self.places.insert(key.clone(), self.changes.len());
        }
        self.changes.push((key, entry));
    }

    pub(crate) fn into_vec(self) -> Vec<(Bytes, Option<Entry>)> {
        self.changes
    }
}
