//! Point lookups: memory first, then the runs from the newest to the oldest.

use super::expirations::{Expirations, Expired};
use crate::error::is_data_loss;
use crate::error::{Result, StoreError};
use crate::format::patch::KeyHashes;
use crate::format::record::Record;
use crate::format::separated::{References, Separated};
use crate::format::version::Content;
use crate::kv::cache::Cached;
use crate::kv::cursor::RunCursor;
use crate::kv::memtable::Version;
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::kv::tree::Run;
use crate::shard::Shard;
use crate::shard::clock::ExpiryClock;
use crate::shard::counters::Counters;
use crate::shard::log::Log;
use crate::shard::resources::cache_room::CacheRoom;
use crate::shard::resources::caches::Caches;
use crate::shard::resources::large_reads::{Admitted, LargeReads};
use crate::shard::slices::Slices;
use crate::shard::transactions::gate::Gate;
use crate::shard::transactions::history::History;
use crate::shard::values::ValueLog;
use crate::spare::HeldValues;
use crate::value::{Entry, Value, Wanted};
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
pub(in crate::shard) struct Newest {
    pub(in crate::shard) seq: u64,
    pub(in crate::shard) content: Content,
}

impl Newest {
    /// About the length of the value.
    fn value_bytes(&self) -> u64 {
        match &self.content {
            Content::Deletion => 0,
            Content::Inline(entry) => entry.value.len() as u64,
            Content::Separated(separated) => separated.stored_bytes(),
        }
    }
}

/// What a lookup on flash finds first.
enum First {
    /// The newest version, by the references of a patch in memory.
    Listed(Newest),
    /// The first record of the newest version; others may follow.
    Stored { run: Rc<Run>, place: usize, record: Record },
}

/// What memory knows of the newest version of a key on flash.
pub(in crate::shard) enum Listed {
    /// This one.
    Found(Newest),
    /// There is none.
    Absent,
    /// Only a read of the flash can tell.
    Unknown,
}

/// Shorter values share a block of their patch with others.
const SHARED_BLOCK_BYTES: usize = 4096;
/// Lookups of a key whose value is moved again and again, before the lookup fails.
const MAX_LOOKUPS: usize = 64;

/// Looks keys up in a shard.
pub(crate) struct Reader<'a> {
    gate: &'a Gate,
    history: &'a History,
    clock: &'a ExpiryClock,
    slices: &'a Slices,
    caches: &'a Caches,
    large_reads: &'a LargeReads,
    cache_room: CacheRoom<'a>,
    values: &'a ValueLog,
    log: &'a Log,
    counters: &'a Counters,
    expirations: &'a Expirations,
    /// That of the reads of the flash.
    hint: Hint,
    /// The batch that the values are read for.
    held: Option<&'a HeldValues>,
}

impl<'a> Reader<'a> {
    /// The parts of a shard that lookups use.
    pub(crate) fn of(shard: &Shard, hint: Hint) -> Reader<'_> {
        let Shard { gate, history, clock, slices, caches, large_reads, .. } = shard;
        let Shard { values, log, counters, .. } = shard;
        let (cache_room, expirations) = (shard.cache_room(), &shard.expirations);
        Reader {
            gate,
            history,
            clock,
            slices,
            caches,
            large_reads,
            cache_room,
            values,
            log,
            counters,
            expirations,
            hint,
            held: None,
        }
    }

    /// The same for a batch.
    pub(crate) fn for_batch(self, held: Option<&'a HeldValues>) -> Reader<'a> {
        Reader { held, ..self }
    }

    /// Looks `key` up. Does not suspend if memory holds the answer and the gate is open.
    pub(crate) async fn read(&self, key: &Bytes, exclusive: bool, wanted: Wanted) -> Result<Read> {
        if !exclusive && !self.gate.is_open() {
            self.gate.pass().await;
        }
        let at_seq = self.history.seq();
        // The expiry is judged at the time of the lookup, not when the value has been read: of two
        // reads, the first that begins must not find the key dead and the other one find it alive.
        let mut now_ms = self.clock.now_ms();
        let slice = self.slices.of_key(key)?;
        // A missing key may be the effect of a removal of all keys, so the reply must wait until
        // that is durable.
        let cleared_seq = slice.cleared_seq.get();
        let version = self
            .newest_entry(slice, key, wanted, exclusive, &mut now_ms)
            .await
            .inspect_err(|error| {
                if is_data_loss(error) {
                    self.counters.count_data_loss();
                }
            })?;
        let Some((seq, entry)) = version else {
            let seq = if planted::bug(Bug::ClearToldEarly) { 0 } else { cleared_seq };
            return Ok(Read { entry: None, seq, at_seq });
        };
        match entry {
            Some(entry)
                if entry.expires_at_ms != 0
                    && entry.is_expired(now_ms)
                    && !(exclusive && planted::bug(Bug::ExclusiveSeesExpired)) =>
            {
                self.expirations.note_found(Expired::of(key, entry.expires_at_ms));
                self.log.note_seen_expired(entry.expires_at_ms).await?;
                Ok(Read { entry: None, seq, at_seq })
            }
            entry => Ok(Read { entry, seq, at_seq }),
        }
    }

    /// The newest version of a key with its value. The value of a version that has expired at
    /// `now_ms` is empty, and that of a separated one if it is not wanted. Where the lookup is
    /// repeated, `now_ms` is its later time.
    async fn newest_entry(
        &self,
        slice: &Slice,
        key: &Bytes,
        wanted: Wanted,
        exclusive: bool,
        now_ms: &mut u64,
    ) -> Result<Option<(u64, Option<Entry>)>> {
        let mut admitted: Option<Admitted> = None;
        for lookup in 1..=MAX_LOOKUPS {
            if lookup > 1 {
                // The block of an expired value may have been deleted.
                *now_ms = self.clock.now_ms();
            }
            let begun_at = self.history.seq();
            let found = match self.find_in_memory(slice, key) {
                Some(found) => {
                    if !matches!(&found.content, Content::Separated(value) if value.is_placed()) {
                        self.counters.count_memory_hit();
                    }
                    Some(found)
                }
                None => self.find_on_flash(slice, key).await?,
            };
            let Some(Newest { seq, content }) = found else { return Ok(None) };
            let separated = match content {
                Content::Deletion => return Ok(Some((seq, None))),
                Content::Inline(entry) => return Ok(Some((seq, Some(entry)))),
                Content::Separated(separated) => separated,
            };
            let expires_at_ms = separated.expires_at_ms;
            let has_expired = expires_at_ms != 0 && expires_at_ms <= *now_ms;
            if has_expired || wanted == Wanted::Keys {
                return Ok(Some((seq, Some(Entry { value: Value::default(), expires_at_ms }))));
            }
            if let Some(value) = separated.value() {
                return Ok(Some((seq, Some(Entry { value, expires_at_ms }))));
            }
            if lookup == 1 {
                self.counters.count_flash_lookup();
            }
            // An exclusive read is not admitted: all others wait for it.
            let bytes = separated.stored_bytes();
            if !exclusive && admitted.is_none() && self.large_reads.wants_admission(bytes) {
                // Boxed, to keep the future of the common read small.
                let large =
                    admitted.insert(Box::pin(self.large_reads.admit(bytes, self.held)).await);
                if large.has_waited {
                    continue;
                }
            }
            let references = separated.references().unwrap_or_default();
            let read = self.values.read(key, &references, expires_at_ms, self.hint).await?;
            if let Some(entry) = read {
                self.cache_entry(slice, key, &entry, seq, begun_at);
                return Ok(Some((seq, Some(entry))));
            }
        }
        Err(StoreError::DataLoss("a block of a separated value is missing".into()))
    }

    fn find_in_memory(&self, slice: &Slice, key: &[u8]) -> Option<Newest> {
        let newest =
            |version: &Version| Newest { seq: version.seq, content: version.content().clone() };
        let in_memory = slice.in_memory(key, newest);
        // The cache may have the value of a version with a separated value.
        let is_apart = |newest: &Newest| match &newest.content {
            Content::Separated(separated) => separated.is_placed(),
            Content::Deletion | Content::Inline(_) => false,
        };
        if let Some(version) = in_memory
            && (!is_apart(&version) || !self.caches.has(key))
        {
            return Some(version);
        }
        let cached = self.caches.get(key)?;
        Some(Newest { seq: cached.seq, content: Content::Inline(cached.entry) })
    }

    pub(in crate::shard) async fn find_on_flash(
        &self,
        slice: &Slice,
        key: &Bytes,
    ) -> Result<Option<Newest>> {
        let begun_at = self.history.seq();
        let (run, place, first) = match self.first_on_flash(slice, key).await? {
            None => return Ok(None),
            Some(First::Listed(newest)) => return Ok(Some(newest)),
            Some(First::Stored { run, place, record }) => (run, place, record),
        };
        let seq = first.seq;
        let content = gather(&run, place, first, self.hint).await?;
        if let Content::Inline(entry) = &content {
            self.cache_entry(slice, key, entry, seq, begun_at);
        }
        Ok(Some(Newest { seq, content }))
    }

    /// The newest version of a key, without a read of its separated value.
    pub(in crate::shard) async fn newest_content(
        &self,
        slice: &Slice,
        key: &Bytes,
    ) -> Result<Option<Content>> {
        match slice.in_memory(key, |version| version.content().clone()) {
            Some(content) => Ok(Some(content)),
            None => Ok(self.find_on_flash(slice, key).await?.map(|newest| newest.content)),
        }
    }

    /// The newest version of a key on flash, or the first record of it.
    async fn first_on_flash(&self, slice: &Slice, key: &Bytes) -> Result<Option<First>> {
        // A snapshot of the tree: a write during the lookup does not change the result.
        let (tree, hash) = (slice.tree(), checksum::hash64(key));
        let mut is_counted = false;
        for run in tree.runs() {
            let Some(place) = run.patch_for(key) else { continue };
            let Some(patch) = run.patches.get(place) else { continue };
            if !patch.may_contain(hash) {
                continue;
            }
            // The references are in memory, unless the next patch has some of them.
            if let Some(newest) = listed(patch, key) {
                return Ok(Some(First::Listed(newest)));
            }
            if !std::mem::replace(&mut is_counted, true) {
                self.counters.count_flash_lookup();
            }
            let Some(record) = patch.find(key, u64::MAX, self.hint).await? else {
                self.counters.count_false_positive();
                continue;
            };
            return Ok(Some(First::Stored { run: Rc::clone(run), place, record }));
        }
        Ok(None)
    }

    /// About the length of the value of a key, 0 where there is none, at the cost of at most one of
    /// its fragments: that of a value of one fragment is exact, others are not read.
    pub(crate) async fn value_bytes(&self, key: &Bytes) -> Result<u64> {
        self.gate.pass().await;
        let (slice, begun_at) = (self.slices.of_key(key)?, self.history.seq());
        let found = match self.find_in_memory(slice, key) {
            Some(newest) => First::Listed(newest),
            None => match self.first_on_flash(slice, key).await? {
                Some(first) => first,
                None => return Ok(0),
            },
        };
        Ok(match found {
            First::Listed(newest) => newest.value_bytes(),
            First::Stored { run, place, record } if record.fragments() <= 1 => {
                let seq = record.seq;
                let newest = Newest { seq, content: gather(&run, place, record, self.hint).await? };
                if let Content::Inline(entry) = &newest.content {
                    // For the read that may follow.
                    self.cache_entry(slice, key, entry, seq, begun_at);
                }
                newest.value_bytes()
            }
            First::Stored { record, .. } => {
                let fragment = match record.reference() {
                    Some(reference) => u64::from(reference.len()),
                    None => record.value().len() as u64,
                };
                fragment * u64::from(record.fragments())
            }
        })
    }

    /// As [`value_bytes`](Self::value_bytes), if memory tells it.
    pub(crate) fn value_bytes_in_memory(&self, key: &Bytes) -> Option<u64> {
        let slice = self.slices.of_key(key).ok()?;
        if let Some(newest) = self.find_in_memory(slice, key) {
            return Some(newest.value_bytes());
        }
        match self.find_listed(slice, key) {
            Listed::Found(newest) => Some(newest.value_bytes()),
            Listed::Absent => Some(0),
            Listed::Unknown => None,
        }
    }

    /// As [`find_on_flash`](Self::find_on_flash), where memory lists the newest version or tells
    /// that there is none.
    pub(in crate::shard) fn find_listed(&self, slice: &Slice, key: &[u8]) -> Listed {
        let (tree, hash) = (slice.tree(), checksum::hash64(key));
        let of_run = |run: &Rc<Run>| run.patches.get(run.patch_for(key)?).map(Rc::clone);
        let newest = tree.runs().filter_map(of_run).find(|patch| patch.may_contain(hash));
        match newest {
            None => Listed::Absent,
            Some(patch) => listed(&patch, key).map_or(Listed::Unknown, Listed::Found),
        }
    }

    /// Caches an entry that was read from flash, unless the key may have been written since.
    fn cache_entry(&self, slice: &Slice, key: &Bytes, entry: &Entry, seq: u64, begun_at: u64) {
        let changed = self.history.seq() != begun_at
            && (slice.flushed_seq.get() > begun_at
                || (slice.cleared_seq.get() > begun_at
                    && !planted::bug(Bug::RememberedAcrossClear))
                || slice.in_memory(key, |_| ()).is_some());
        if changed {
            return;
        }
        // Copies, so that a cached value does not keep the block from which it was read. A longer
        // value has a block of its own.
        let value = match entry.value.fragments() {
            [one] if one.len() < SHARED_BLOCK_BYTES => Value::from(Bytes::copy_from_slice(one)),
            _ => entry.value.clone(),
        };
        let entry = Entry { value, expires_at_ms: entry.expires_at_ms };
        let key = Bytes::copy_from_slice(key);
        let room_bytes = self.cache_room.room_bytes();
        self.caches.insert(key, Cached { entry, seq }, room_bytes);
    }
}

/// The newest version of a key that a patch has, where its index lists all references.
fn listed(patch: &Patch, key: &[u8]) -> Option<Newest> {
    let table = patch.index().ok()?.references();
    if table.is_empty() {
        return None;
    }
    let entries = table.find(KeyHashes::of(key));
    let first = entries.first()?;
    if entries.len() != usize::from(first.fragments) {
        return None;
    }
    let references = entries.iter().map(|entry| entry.reference).collect();
    let separated = Separated::placed(references, first.expires_at_ms);
    Some(Newest { seq: first.seq, content: Content::Separated(Rc::new(separated)) })
}

/// The version whose first fragment is the record `first`; the other fragments follow in the same
/// run.
pub(in crate::shard) async fn gather(
    run: &Rc<Run>,
    place: usize,
    first: Record,
    hint: Hint,
) -> Result<Content> {
    let Some(expires_at_ms) = first.expires_at_ms() else { return Ok(Content::Deletion) };
    if first.fragments() <= 1 {
        return Ok(content_of([first], expires_at_ms));
    }
    let (key, seq, fragments) = (first.key.clone(), first.seq, first.fragments());
    let lost = || StoreError::DataLoss(format!("a large value (sequence {seq}) is incomplete"));
    let mut cursor = RunCursor::within(Rc::clone(run), place, key.clone(), hint);
    let mut pieces: Vec<Record> = Vec::with_capacity(usize::from(fragments));
    while pieces.len() < usize::from(fragments) {
        let record = cursor.next().await?.ok_or_else(lost)?;
        if record.key != key {
            return Err(lost());
        }
        if record.seq == seq {
            if usize::from(record.fragment()) != pieces.len() {
                return Err(lost());
            }
            pieces.push(record);
        }
    }
    Ok(content_of(pieces, expires_at_ms))
}

/// The records of the version that begins with `first`, in order of their fragments: `next` returns
/// the records that follow it.
pub(crate) async fn fragments_of(
    first: Record,
    mut next: impl AsyncFnMut() -> Result<Option<Record>>,
) -> Result<Vec<Record>> {
    let (key, seq, fragments) = (first.key.clone(), first.seq, usize::from(first.fragments()));
    let mut pieces = vec![first];
    while pieces.len() < fragments {
        match next().await? {
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
    Ok(pieces)
}

/// The content of the records of a version, in order of their fragments.
pub(crate) fn content_of(
    records: impl IntoIterator<Item = Record> + Clone,
    expires_at_ms: u64,
) -> Content {
    let references: Option<References> =
        records.clone().into_iter().map(|record| record.reference().copied()).collect();
    match references {
        Some(references) => {
            Content::Separated(Rc::new(Separated::placed(references, expires_at_ms)))
        }
        None => {
            let value = Value::from_fragments(records.into_iter().map(Record::into_value));
            Content::Inline(Entry { value, expires_at_ms })
        }
    }
}
