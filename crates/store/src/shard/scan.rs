//! Ordered scans, key counts and random keys.

use super::Shard;
use super::read::content_of;
use super::snapshots::Snapshot;
use super::values::ValueLog;
use crate::error::{Result, StoreError};
use crate::format::record::Record;
use crate::format::version::Content;
use crate::kv::cursor::RunCursor;
use crate::kv::memtable::Presence;
use crate::kv::merge::{MemoryCursor, Merge, Source};
use crate::kv::slice::Slice;
use crate::value::{Entry, Value, Wanted};
use bytes::Bytes;
use softflash_base::SliceId;
use softflash_base::planted::{self, Bug};
use softflash_ftl::Hint;
use std::rc::Rc;

/// Random picks before the search falls back to the first live key.
const RANDOM_TRIES: u64 = 32;

/// A scan of one slice at one point in time.
struct Scan {
    merge: Merge,
    snapshot: Snapshot,
    values: ValueLog,
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

impl Shard {
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
        self.fit_cache();
        let skips = planted::bug(Bug::ScanSkipsKey) && after.is_some();
        let mut scan = self.start_scan(slice, after)?;
        scan.with_values = wanted == Wanted::Entries;
        if skips {
            scan.next().await?;
        }
        let now_ms = self.now_ms();
        let (mut page, mut hidden_ms) = (ScanPage::default(), 0);
        // Stops at the last key of the page: the next page would read further keys again.
        while page.items.len() < limit {
            let Some((key, entry)) = scan.next().await? else {
                self.log_hidden(hidden_ms).await?;
                return Ok(page);
            };
            if entry.is_expired(now_ms) {
                hidden_ms = hidden_ms.max(entry.expires_at_ms);
            } else {
                page.items.push((key, entry));
            }
        }
        page.next = page.items.last().map(|(key, _)| key.clone());
        self.log_hidden(hidden_ms).await?;
        Ok(page)
    }

    /// Logs the clock for a page that omits expired keys, the last of which expired at
    /// `expired_at_ms`: its client has seen them expired.
    async fn log_hidden(&self, expired_at_ms: u64) -> Result<()> {
        if expired_at_ms == 0 || planted::bug(Bug::ScanHidesUnlogged) {
            return Ok(());
        }
        self.log_clock(expired_at_ms).await
    }

    fn start_scan(&self, slice: SliceId, after: Option<Bytes>) -> Result<Scan> {
        let snapshot = self.history.snapshots.take(self.history.seq.get());
        // The lowest key after `after`: the same with a zero byte appended.
        let from = match &after {
            None => Bytes::new(),
            Some(after) => after.iter().copied().chain([0]).collect(),
        };
        let slice = self.slice(slice)?;
        let memory = |table| Source::Memory(MemoryCursor::new(table, after.clone()));
        let mut sources = vec![memory(slice.active())];
        sources.extend(slice.frozen.borrow().iter().rev().map(|f| memory(Rc::clone(&f.table))));
        for run in slice.tree().runs() {
            let readahead = Rc::clone(&self.caches.scans);
            let (run, from) = (Rc::clone(run), from.clone());
            let cursor = RunCursor::page(run, from, Hint::FOREGROUND, readahead);
            sources.push(Source::Run(Box::new(cursor)));
        }
        let (values, now_ms) = (self.values.clone(), self.now_ms());
        let with_values = true;
        Ok(Scan { merge: Merge::new(sources), snapshot, values, with_values, now_ms, ahead: None })
    }

    /// The number of keys. It is exact for keys in memtables that were read before they were
    /// written, and else as accurate as the filters.
    pub(crate) async fn key_count(&self) -> Result<u64> {
        self.gate.pass().await;
        Ok(self.key_estimate())
    }

    pub(crate) fn key_estimate(&self) -> u64 {
        self.slices.iter().map(count_keys).sum()
    }

    /// A live key, chosen by `random`.
    pub(crate) async fn random_key(&self, random: u64) -> Result<Option<Bytes>> {
        for attempt in 0..RANDOM_TRIES {
            let random = softflash_base::checksum::identity(&[random, attempt]);
            if let Some(key) = self.pick(random).await?
                && self.read(&key, false, Wanted::Keys).await?.entry.is_some()
            {
                return Ok(Some(key));
            }
        }
        // Few keys are live: take the first one.
        for slice in &self.slices {
            if let Some((key, _)) = self.scan(slice.id, None, 1, Wanted::Keys).await?.items.pop() {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// The key of a random record; memtables and patches are weighted by their records.
    async fn pick(&self, random: u64) -> Result<Option<Bytes>> {
        let Some(slice) = self.slices.get(random as usize % self.slices.len().max(1)) else {
            return Ok(None);
        };
        let random = random >> 8;
        let tree = slice.tree();
        let on_flash: u64 = tree
            .patches()
            .map(|(.., patch)| patch.index().map_or(0, |index| index.entries()))
            .sum();
        let active = slice.active();
        let in_memory = active.borrow().len() as u64;
        let mut place = random % (on_flash + in_memory).max(1);
        if place < in_memory {
            let table = active.borrow();
            return Ok(table.newest_after(None).nth(place as usize).map(|(key, ..)| key.clone()));
        }
        place -= in_memory;
        for (.., patch) in tree.patches() {
            let index = patch.index()?;
            if place < index.entries() {
                let number = (place * index.block_count() as u64 / index.entries()) as usize;
                let block = patch.read_block(number, Hint::FOREGROUND).await?;
                let offset = index.block_range(number).start;
                let keys: Vec<Bytes> = block
                    .into_records()
                    .map(|record| record.map(|record| record.key))
                    .collect::<std::result::Result<_, _>>()
                    .map_err(|error| patch.damaged(offset, &error))?;
                return Ok(keys.get(random as usize % keys.len().max(1)).cloned());
            }
            place -= index.entries();
        }
        Ok(None)
    }
}

impl Scan {
    /// The next live key at the snapshot, and its entry.
    async fn next(&mut self) -> Result<Option<(Bytes, Entry)>> {
        loop {
            let Some(first) = self.next_visible().await? else { return Ok(None) };
            let (key, seq) = (first.key.clone(), first.seq);
            let Some(expires_at_ms) = first.expires_at_ms() else {
                self.skip(&key).await?;
                continue;
            };
            let fragments = usize::from(first.fragments());
            let mut pieces = vec![first];
            while pieces.len() < fragments {
                match self.next_visible().await? {
                    Some(piece) if piece.key == key && piece.seq == seq => {
                        // Sources may overlap: skip a fragment that was already read.
                        if usize::from(piece.fragment()) == pieces.len() {
                            pieces.push(piece);
                        }
                    }
                    _ => {
                        return Err(StoreError::DataLoss(format!(
                            "a large value (sequence {seq}) is incomplete"
                        )));
                    }
                }
            }
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
        let read = self.values.read(key, &references, expires_at_ms, Hint::FOREGROUND).await?;
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
        while let Some(record) = self.merge.next().await? {
            if record.seq <= self.snapshot.seq() {
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

/// Live keys of a slice: the count of the tree, corrected by the memtables.
fn count_keys(slice: &Slice) -> u64 {
    let mut live = slice.live_keys.get() as i64;
    let frozen: Vec<_> = slice.frozen.borrow().iter().map(Rc::clone).collect();
    for (age, table) in frozen.iter().enumerate() {
        let older = frozen.get(..age).unwrap_or_default();
        live += delta(slice, &mut table.table.borrow_mut(), older);
    }
    live += delta(slice, &mut slice.active().borrow_mut(), &frozen);
    live.max(0) as u64
}

/// The change of the key count by a memtable, given the older memtables.
fn delta(
    slice: &Slice,
    table: &mut crate::kv::memtable::Memtable,
    older: &[Rc<crate::kv::slice::Frozen>],
) -> i64 {
    let mut delta = 0;
    let mut learned = Vec::new();
    for (key, version, presence) in table.newest_after(None) {
        let before = older.iter().rev().find_map(|frozen| {
            frozen.table.borrow().get(key, u64::MAX).map(|version| version.is_put())
        });
        let existed = match (before, presence) {
            (Some(existed), _) => existed,
            (None, Presence::New) => false,
            (None, Presence::Replaces) => true,
            (None, Presence::Unknown) => {
                let existed = slice.probably_on_flash(key);
                learned.push((key.clone(), existed));
                existed
            }
        };
        delta += i64::from(version.is_put()) - i64::from(existed);
    }
    for (key, existed) in learned {
        let presence = if existed { Presence::Replaces } else { Presence::New };
        table.set_presence(&key, presence);
    }
    delta
}
