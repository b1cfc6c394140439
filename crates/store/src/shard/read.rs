//! Point lookups: memory first, then the runs from the newest to the oldest.

use super::{Shard, count};
use crate::error::is_data_loss;
use crate::error::{Result, StoreError};
use crate::format::record::Record;
use crate::kv::cache::Cached;
use crate::kv::cursor::RunCursor;
use crate::kv::memtable::Version;
use crate::kv::slice::Slice;
use crate::kv::tree::Run;
use crate::options::Durability;
use crate::value::{Entry, Value};
use bytes::Bytes;
use softflash_base::checksum;
use softflash_base::planted::{self, Bug};
use softflash_ftl::Hint;
use std::rc::Rc;

/// The result of a lookup.
#[derive(Debug, Clone, Default)]
pub(crate) struct Read {
    /// The entry of the key, if it exists.
    pub entry: Option<Entry>,
    /// The sequence number of the record found, or of the last removal of all keys; 0 where there
    /// is neither.
    pub seq: u64,
    /// The shard's sequence number at the lookup.
    pub at_seq: u64,
}

/// The newest version of a key: a value, or a deletion.
struct Newest {
    seq: u64,
    entry: Option<Entry>,
}

impl Shard {
    /// Looks `key` up. Does not suspend if memory holds the answer and the gate is open.
    pub(crate) async fn read(&self, key: &Bytes, exclusive: bool) -> Result<Read> {
        if !exclusive && !self.gate.is_open() {
            self.gate.pass().await;
        }
        let at_seq = self.history.seq.get();
        let slice = self.slice_of(key)?;
        // A missing key may be the effect of a removal of all keys, so the reply must wait until
        // that is durable.
        let cleared_seq = slice.cleared_seq.get();
        let version = match self.find_in_memory(slice, key) {
            Some(version) => {
                count(&self.counters.memory_hits, 1);
                Some(version)
            }
            None => self.find_on_flash(slice, key).await.inspect_err(|error| {
                if is_data_loss(error) {
                    count(&self.counters.data_losses, 1);
                }
            })?,
        };
        let Some(Newest { seq, entry }) = version else {
            let seq = if planted::bug(Bug::ClearToldEarly) { 0 } else { cleared_seq };
            return Ok(Read { entry: None, seq, at_seq });
        };
        match entry {
            Some(entry)
                if entry.expires_at_ms != 0
                    && entry.is_expired(self.now_ms())
                    && !(exclusive && planted::bug(Bug::ExclusiveSeesExpired)) =>
            {
                self.log_clock(entry.expires_at_ms).await?;
                Ok(Read { entry: None, seq, at_seq })
            }
            entry => Ok(Read { entry, seq, at_seq }),
        }
    }

    /// A client has seen that a key has expired at `expired_at_ms`. The clock must be logged, so
    /// that no restart finds the key alive, even with an earlier wall clock.
    pub(super) async fn log_clock(&self, expired_at_ms: u64) -> Result<()> {
        if self.clock.is_logged(expired_at_ms) {
            return Ok(());
        }
        self.log.request_clock();
        match self.options.durability {
            Durability::Flash => self.log.clock_logged(expired_at_ms).await,
            Durability::Interval(_) => Ok(()),
        }
    }

    fn find_in_memory(&self, slice: &Slice, key: &[u8]) -> Option<Newest> {
        let newest = |version: &Version| Newest { seq: version.seq, entry: version.entry.clone() };
        if let Some(version) = slice.in_memory(key, newest) {
            return Some(version);
        }
        let cache = self.caches.read.borrow();
        let cached = cache.get(key)?;
        Some(Newest { seq: cached.seq, entry: Some(cached.entry.clone()) })
    }

    async fn find_on_flash(&self, slice: &Slice, key: &Bytes) -> Result<Option<Newest>> {
        // A snapshot of the tree: a write during the lookup does not change the result.
        let (tree, hash, begun_at) = (slice.tree(), checksum::hash64(key), self.history.seq.get());
        let mut is_counted = false;
        for run in tree.runs() {
            let Some(place) = run.patch_for(key) else { continue };
            let Some(patch) = run.patches.get(place) else { continue };
            if !patch.may_contain(hash) {
                continue;
            }
            if !std::mem::replace(&mut is_counted, true) {
                count(&self.counters.flash_lookups, 1);
            }
            let Some(first) = patch.find(key, u64::MAX, Hint::FOREGROUND).await? else {
                count(&self.counters.false_positives, 1);
                continue;
            };
            let seq = first.seq;
            let entry = gather(run, place, first).await?;
            if let Some(entry) = &entry {
                self.cache_entry(slice, key, entry, seq, begun_at);
            }
            return Ok(Some(Newest { seq, entry }));
        }
        Ok(None)
    }

    /// Caches an entry that was read from flash, unless the key may have been written since.
    fn cache_entry(&self, slice: &Slice, key: &Bytes, entry: &Entry, seq: u64, begun_at: u64) {
        let changed = self.history.seq.get() != begun_at
            && (slice.flushed_seq.get() > begun_at
                || (slice.cleared_seq.get() > begun_at
                    && !planted::bug(Bug::RememberedAcrossClear))
                || slice.in_memory(key, |_| ()).is_some());
        if changed {
            return;
        }
        // Copies, so that a cached value does not keep the block from which it was read.
        let value = match entry.value.fragments() {
            [one] => Value::from(Bytes::copy_from_slice(one)),
            _ => entry.value.clone(),
        };
        let entry = Entry { value, expires_at_ms: entry.expires_at_ms };
        let key = Bytes::copy_from_slice(key);
        let room = self.cache_room();
        self.caches.read.borrow_mut().insert(key, Cached { entry, seq }, room);
    }
}

/// The entry whose first fragment is the record `first`; the other fragments follow in the same
/// run.
pub(super) async fn gather(run: &Rc<Run>, place: usize, first: Record) -> Result<Option<Entry>> {
    let Some(expires_at_ms) = first.expires_at_ms() else { return Ok(None) };
    if first.fragments() <= 1 {
        return Ok(Some(Entry { value: Value::from(first.into_value()), expires_at_ms }));
    }
    let (key, seq, fragments) = (first.key.clone(), first.seq, first.fragments());
    let lost = || StoreError::DataLoss(format!("a large value (sequence {seq}) is incomplete"));
    let mut cursor = RunCursor::within(Rc::clone(run), place, key.clone(), Hint::FOREGROUND);
    let mut pieces = Vec::with_capacity(usize::from(fragments));
    while pieces.len() < usize::from(fragments) {
        let record = cursor.next().await?.ok_or_else(lost)?;
        if record.key != key {
            return Err(lost());
        }
        if record.seq == seq {
            if usize::from(record.fragment()) != pieces.len() {
                return Err(lost());
            }
            pieces.push(record.into_value());
        }
    }
    Ok(Some(Entry { value: Value::from_fragments(pieces), expires_at_ms }))
}
