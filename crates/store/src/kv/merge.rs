//! Merges sorted sources of records, and drops invisible versions.

use crate::error::{Result, StoreError};
use crate::format::record::Record;
use crate::kv::cursor::RunCursor;
use crate::kv::memtable::Memtable;
use bytes::Bytes;
use futures_util::future::try_join_all;
use softflash_base::planted::{self, Bug};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

/// Records in order: key ascending, newest version first, fragments ascending.
pub enum Source {
    /// A memtable, a few keys at a time.
    Memory(MemoryCursor),
    /// A run on flash.
    Run(Box<RunCursor>),
}

/// Reads a memtable that may take writes at the same time.
pub struct MemoryCursor {
    table: Rc<RefCell<Memtable>>,
    last: Option<Bytes>,
    records: std::vec::IntoIter<Record>,
}

/// Keys taken from a memtable at a time.
const MEMORY_STEP_KEYS: usize = 128;

impl MemoryCursor {
    /// A cursor at the first key after `after`.
    pub fn new(table: Rc<RefCell<Memtable>>, after: Option<Bytes>) -> MemoryCursor {
        MemoryCursor { table, last: after, records: Vec::new().into_iter() }
    }

    /// The next record.
    pub fn take(&mut self) -> Option<Record> {
        if let Some(record) = self.records.next() {
            return Some(record);
        }
        let records = self.table.borrow().records_after(self.last.as_ref(), MEMORY_STEP_KEYS);
        let resumed = self.last.replace(records.last()?.key.clone()).is_some();
        self.records = records.into_iter();
        if planted::bug(Bug::MemoryStepSkipsKey) && resumed {
            self.records.next();
        }
        self.records.next()
    }
}

impl Source {
    async fn next(&mut self) -> Result<Option<Record>> {
        match self {
            Source::Memory(cursor) => Ok(cursor.take()),
            Source::Run(cursor) => match cursor.next_ready() {
                Some(record) => Ok(Some(record)),
                None => cursor.next().await,
            },
        }
    }
}

/// Merges sources. Where two sources hold the same record, as after a crash between a flush and its
/// edit, or while a merge runs in parts, the record of the first source comes first.
pub struct Merge {
    sources: Vec<(Option<Record>, Source)>,
    started: bool,
}

impl Merge {
    /// A merge of `sources`, newest first.
    pub fn new(sources: Vec<Source>) -> Merge {
        let sources = sources.into_iter().map(|source| (None, source)).collect();
        Merge { sources, started: false }
    }

    /// Adds a source with older records than all others. Sources that have ended are dropped, with
    /// what they keep in memory and on flash.
    pub fn add(&mut self, source: Source) {
        self.sources.retain(|(head, _)| head.is_some() || !self.started);
        self.sources.push((None, source));
        self.started = false;
    }

    /// The next record.
    pub async fn next(&mut self) -> Result<Option<Record>> {
        self.next_up_to(None).await
    }

    /// The next record, if its key is at most `last_key`.
    pub async fn next_up_to(&mut self, last_key: Option<&[u8]>) -> Result<Option<Record>> {
        if !self.started {
            self.started = true;
            // Concurrently, so that the flash reads of the sources overlap.
            let new = self.sources.iter_mut().filter(|(head, _)| head.is_none());
            let first = new.map(async |(head, source)| {
                *head = source.next().await?;
                Ok::<_, StoreError>(())
            });
            try_join_all(first).await?;
        }
        // A linear search: mostly a handful of sources, a few tens where many runs have gathered.
        let heads = self.sources.iter_mut().filter(|(head, _)| head.is_some());
        let smallest = heads.min_by(|(a, _), (b, _)| match (a, b) {
            (Some(a), Some(b)) if planted::bug(Bug::MergeKeepsOlder) => {
                a.key.cmp(&b.key).then(a.seq.cmp(&b.seq))
            }
            (Some(a), Some(b)) => a.order(b),
            _ => Ordering::Equal,
        });
        let Some((head, source)) = smallest else { return Ok(None) };
        let is_beyond = |record: &Record| last_key.is_some_and(|last| record.key[..] > *last);
        if head.as_ref().is_some_and(is_beyond) {
            return Ok(None);
        }
        let next = source.next().await?;
        Ok(std::mem::replace(head, next))
    }
}

/// The fate of a record in a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is copied to the output.
    Keep,
    /// It is invisible.
    Drop,
    /// It has expired and hides older versions: a deletion takes its place.
    Bury,
    /// The same record was judged before, from a newer source.
    Repeat,
}

/// Decides the fate of records that come in order.
pub struct Retention {
    /// Sequence numbers of the snapshots, ascending.
    snapshots: Vec<u64>,
    /// Whether no older versions are below the output.
    bottom: bool,
    now_ms: u64,
    key: Bytes,
    /// The last version of `key` that was seen, its last fragment, and its fate.
    version: Option<(u64, u16, Fate)>,
    /// Expired keys that the compaction removes.
    pub keys_expired: u64,
}

impl Retention {
    /// Retention for a compaction into a level; `bottom` where no older versions are below.
    pub fn new(snapshots: Vec<u64>, bottom: bool, now_ms: u64) -> Retention {
        Retention { snapshots, bottom, now_ms, key: Bytes::new(), version: None, keys_expired: 0 }
    }

    /// The fate of the next record.
    pub fn judge(&mut self, record: &Record) -> Fate {
        if self.version.is_none() || self.key != record.key {
            self.key = record.key.clone();
            self.version = None;
        }
        match self.version {
            Some((seq, last, _)) if seq == record.seq && record.fragment() <= last => {
                return Fate::Repeat;
            }
            // Another fragment of the same version.
            Some((seq, _, fate)) if seq == record.seq => {
                self.version = Some((seq, record.fragment(), fate));
                return match fate {
                    Fate::Bury => Fate::Drop,
                    fate => fate,
                };
            }
            _ => {}
        }
        let newer = self.version.map(|(seq, ..)| seq);
        let fate = self.judge_version(record, newer);
        self.version = Some((record.seq, record.fragment(), fate));
        fate
    }

    fn judge_version(&mut self, record: &Record, newer: Option<u64>) -> Fate {
        if let Some(newer) = newer {
            let seen = self.snapshots.iter().any(|seq| (record.seq..newer).contains(seq));
            return if seen { Fate::Keep } else { Fate::Drop };
        }
        if self.snapshots.iter().any(|seq| *seq < record.seq) {
            // A snapshot may need the older version, so this version must keep hiding it from other
            // readers.
            return Fate::Keep;
        }
        let expired = record.is_expired(self.now_ms);
        if expired {
            self.keys_expired += 1;
        }
        match (expired || record.is_delete(), self.bottom) {
            (true, true) => Fate::Drop,
            (true, false) if expired && planted::bug(Bug::ExpiredNotBuried) => Fate::Drop,
            (true, false) if expired => Fate::Bury,
            _ => Fate::Keep,
        }
    }
}

#[cfg(test)]
mod tests;
