//! Ordered scans.

use super::expirations::{Expirations, Expired};
use super::lookup::{content_of, fragments_of};
use super::snapshots::Snapshot;
use crate::error::{Result, StoreError};
use crate::format::record::Record;
use crate::format::version::Content;
use crate::kv::cursor::RunCursor;
use crate::kv::merge::{MemoryCursor, Merge, Source};
use crate::shard::Shard;
use crate::shard::clock::ExpiryClock;
use crate::shard::log::Log;
use crate::shard::resources::cache_room::CacheRoom;
use crate::shard::resources::caches::Caches;
use crate::shard::slices::Slices;
use crate::shard::transactions::gate::Gate;
use crate::shard::transactions::history::History;
use crate::shard::values::ValueLog;
use crate::value::{Entry, Value, Wanted};
use bytes::Bytes;
use softflash_base::SliceId;
use softflash_base::planted::{self, Bug};
use softflash_ftl::Hint;
use std::rc::Rc;

/// A page ends once its keys have this many bytes together.
const PAGE_KEY_BYTES: usize = 64 << 10;

/// A scan of one slice at one point in time.
struct Scan {
    merge: Merge,
    snapshot: Snapshot,
    values: ValueLog,
    hint: Hint,
    /// Whether separated values are read; without, they are empty.
    with_values: bool,
    now_ms: u64,
    /// A record of the next key that was already read.
    ahead: Option<Record>,
}

/// A page of a scan.
#[derive(Debug, Clone, Default)]
pub struct ScanPage {
    /// Live keys with their entries, in ascending order.
    pub items: Vec<(Bytes, Entry)>,
    /// The key after which the next page starts, if the slice may have more.
    pub next: Option<Bytes>,
}

/// Scans the slices of a shard.
pub(crate) struct Scanner<'a> {
    gate: &'a Gate,
    history: &'a History,
    slices: &'a Slices,
    caches: &'a Caches,
    cache_room: CacheRoom<'a>,
    values: &'a ValueLog,
    clock: &'a ExpiryClock,
    log: &'a Log,
    expirations: &'a Expirations,
    /// That of the reads of the flash.
    hint: Hint,
}

impl Scanner<'_> {
    /// The parts of a shard that scans use.
    pub(crate) fn of(shard: &Shard, hint: Hint) -> Scanner<'_> {
        let Shard { gate, history, slices, caches, values, clock, log, expirations, .. } = shard;
        let cache_room = shard.cache_room();
        Scanner { gate, history, slices, caches, cache_room, values, clock, log, expirations, hint }
    }

    /// Up to `limit` live keys of a slice in order, from the first after `after` on. The page after
    /// `next` may be empty.
    pub(crate) async fn scan(
        &self,
        slice: SliceId,
        after: Option<Bytes>,
        limit: usize,
        wanted: Wanted,
    ) -> Result<ScanPage> {
        self.gate.pass().await;
        self.scan_exclusively(slice, after, limit, wanted).await
    }

    /// As [`scan`](Self::scan), for the holder of the gate.
    pub(crate) async fn scan_exclusively(
        &self,
        slice: SliceId,
        after: Option<Bytes>,
        limit: usize,
        wanted: Wanted,
    ) -> Result<ScanPage> {
        // The previous page may have left readahead.
        self.cache_room.fit();
        let skips = planted::bug(Bug::ScanSkipsKey) && after.is_some();
        let mut scan = self.start_scan(slice, after)?;
        scan.with_values = wanted == Wanted::Entries;
        if skips {
            scan.next().await?;
        }
        let now_ms = self.clock.now_ms();
        let (mut page, mut hidden_ms) = (ScanPage::default(), 0);
        let mut key_bytes = 0;
        // Stops at the last key of the page: the next page would read further keys again.
        while page.items.len() < limit && key_bytes < PAGE_KEY_BYTES {
            let Some((key, entry)) = scan.next().await? else {
                self.log_hidden(hidden_ms).await?;
                return Ok(page);
            };
            if entry.is_expired(now_ms) {
                self.expirations.note_found(Expired::of(&key, entry.expires_at_ms));
                hidden_ms = hidden_ms.max(entry.expires_at_ms);
            } else {
                key_bytes += key.len();
                page.items.push((key, entry));
            }
        }
        page.next = page.items.last().map(|(key, _)| key.clone());
        self.log_hidden(hidden_ms).await?;
        Ok(page)
    }

    /// Up to `limit` expired keys of a slice in order, from the first after `after` on; no page
    /// after an empty one.
    pub(crate) async fn expired(
        &self,
        slice: SliceId,
        after: Option<Bytes>,
        limit: usize,
    ) -> Result<Vec<Bytes>> {
        let mut scan = self.start_scan(slice, after)?;
        scan.with_values = false;
        let mut keys = Vec::new();
        while keys.len() < limit {
            let Some((key, entry)) = scan.next().await? else { break };
            if entry.is_expired(scan.now_ms) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Logs the clock for a page that omits expired keys, the last of which expired at
    /// `expired_at_ms`: its client has seen them expired.
    async fn log_hidden(&self, expired_at_ms: u64) -> Result<()> {
        if expired_at_ms == 0 || planted::bug(Bug::ScanHidesUnlogged) {
            return Ok(());
        }
        self.log.note_seen_expired(expired_at_ms).await
    }

    fn start_scan(&self, slice: SliceId, after: Option<Bytes>) -> Result<Scan> {
        let snapshot = self.history.take_snapshot();
        // The lowest key after `after`: the same with a zero byte appended.
        let from = match &after {
            None => Bytes::new(),
            Some(after) => after.iter().copied().chain([0]).collect(),
        };
        let slice = self.slices.with_id(slice)?;
        let memory = |table| Source::Memory(MemoryCursor::new(table, after.clone()));
        let mut sources = vec![memory(slice.active())];
        sources.extend(slice.frozen.borrow().iter().rev().map(|f| memory(Rc::clone(&f.table))));
        for run in slice.tree().runs() {
            let readahead = Rc::clone(self.caches.scans());
            let (run, from) = (Rc::clone(run), from.clone());
            let cursor = RunCursor::page(run, from, self.hint, readahead);
            sources.push(Source::Run(Box::new(cursor)));
        }
        let (values, now_ms) = (self.values.clone(), self.clock.now_ms());
        let (merge, hint) = (Merge::new(sources), self.hint);
        Ok(Scan { merge, snapshot, values, hint, with_values: true, now_ms, ahead: None })
    }
}

impl Scan {
    /// The next live key at the snapshot, and its entry.
    async fn next(&mut self) -> Result<Option<(Bytes, Entry)>> {
        loop {
            let Some(first) = self.next_visible().await? else { return Ok(None) };
            let key = first.key.clone();
            let Some(expires_at_ms) = first.expires_at_ms() else {
                self.skip(&key).await?;
                continue;
            };
            let pieces = fragments_of(first, async || self.next_visible().await).await?;
            self.skip(&key).await?;
            let entry = self.entry_of(&key, content_of(pieces, expires_at_ms)).await?;
            return Ok(Some((key, entry)));
        }
    }

    /// The entry of a version; of a separated value that is not wanted only the expiry.
    async fn entry_of(&self, key: &[u8], content: Content) -> Result<Entry> {
        let separated = match content {
            Content::Inline(entry) => return Ok(entry),
            Content::Separated(separated) => separated,
            Content::Deletion => return Ok(Entry::default()),
        };
        let expires_at_ms = separated.expires_at_ms;
        let has_expired = expires_at_ms != 0 && expires_at_ms <= self.now_ms;
        if has_expired || !self.with_values {
            return Ok(Entry { value: Value::default(), expires_at_ms });
        }
        let references = separated.references().unwrap_or_default();
        let read = self.values.read(key, &references, expires_at_ms, self.hint).await?;
        // The snapshot keeps the blocks.
        read.ok_or_else(|| {
            StoreError::DataLoss("a block of a separated value is missing".to_owned())
        })
    }

    /// The next record in the snapshot.
    async fn next_visible(&mut self) -> Result<Option<Record>> {
        if let Some(record) = self.ahead.take() {
            return Ok(Some(record));
        }
        let last = u64::from(planted::bug(Bug::SnapshotWithoutLastWrite));
        while let Some(record) = self.merge.next().await? {
            if record.seq + last <= self.snapshot.seq() {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Skips the remaining records of `key`.
    async fn skip(&mut self, key: &Bytes) -> Result<()> {
        while let Some(record) = self.next_visible().await? {
            if record.key != *key {
                self.ahead = Some(record);
                break;
            }
        }
        Ok(())
    }
}
