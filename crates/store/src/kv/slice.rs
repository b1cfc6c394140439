//! A slice: one part of the key space, with its memtables and its tree of patches.

use crate::format::patch::{KeyHashes, ReferenceEntry};
use crate::kv::compaction::leveled::Leveled;
use crate::kv::memtable::{Memtable, Version};
use crate::kv::tree::Tree;
use crate::layout::Compression;
use bytes::Bytes;
use smallvec::SmallVec;
use softflash_base::planted::{self, Bug};
use softflash_base::{SliceId, checksum};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// A memtable that takes no more writes and is being flushed.
pub struct Frozen {
    /// Its records.
    pub table: Rc<RefCell<Memtable>>,
    /// The first segment of the log with any of them.
    pub first_segment: u64,
    /// The last sequence number inside.
    pub last_seq: u64,
}

/// One slice of a shard.
pub struct Slice {
    /// Which slice.
    pub id: SliceId,
    /// How its blocks are compressed.
    pub compression: Compression,
    /// The memtable that takes writes.
    active: RefCell<Rc<RefCell<Memtable>>>,
    /// Bytes of the active memtable, and of those that wait for their flush: each write asks.
    active_bytes: Cell<usize>,
    frozen_bytes: Cell<usize>,
    /// The first segment of the log that holds a record of the active memtable.
    pub active_segment: Cell<u64>,
    /// Memtables that wait for their flush, oldest first.
    pub frozen: RefCell<VecDeque<Rc<Frozen>>>,
    /// The patches on flash.
    pub tree: RefCell<Rc<Tree>>,
    /// All writes up to this sequence number are in the tree.
    pub flushed_seq: Cell<u64>,
    /// Live keys in the tree, an estimate.
    pub live_keys: Cell<u64>,
    /// Chooses compactions.
    pub policy: RefCell<Leveled>,
    /// Counts clears: the result of work begun before a clear must not be installed after it.
    pub clears: Cell<u64>,
    /// The sequence number of the last clear.
    pub cleared_seq: Cell<u64>,
    /// The number of the next run in level 0.
    pub next_run: Cell<u64>,
}

impl Slice {
    /// An empty slice.
    pub fn new(id: SliceId, compression: Compression) -> Slice {
        Slice {
            id,
            compression,
            active: RefCell::default(),
            active_bytes: Cell::new(0),
            frozen_bytes: Cell::new(0),
            active_segment: Cell::new(u64::MAX),
            frozen: RefCell::default(),
            tree: RefCell::default(),
            flushed_seq: Cell::new(0),
            live_keys: Cell::new(0),
            policy: RefCell::default(),
            clears: Cell::new(0),
            cleared_seq: Cell::new(0),
            next_run: Cell::new(1),
        }
    }

    /// The current tree; edits do not change it.
    pub fn tree(&self) -> Rc<Tree> {
        Rc::clone(&self.tree.borrow())
    }

    /// The active memtable; scans keep a reference when it is frozen.
    pub fn active(&self) -> Rc<RefCell<Memtable>> {
        Rc::clone(&self.active.borrow())
    }

    /// Bytes of the active memtable.
    pub fn active_bytes(&self) -> usize {
        self.active_bytes.get()
    }

    /// Looks `key` up in the memtables, newest first, and applies `found` to the version.
    pub fn in_memory<R>(&self, key: &[u8], found: impl Fn(&Version) -> R) -> Option<R> {
        if let Some(version) = self.active.borrow().borrow().get(key, u64::MAX) {
            return Some(found(version));
        }
        let frozen = self.frozen.borrow();
        frozen.iter().rev().find_map(|frozen| frozen.table.borrow().get(key, u64::MAX).map(&found))
    }

    /// Applies `visit` to each key in memory and its newest version.
    pub fn each_newest_in_memory(&self, mut visit: impl FnMut(&Bytes, &Version)) {
        let frozen: Vec<_> = self.frozen.borrow().iter().map(Rc::clone).collect();
        let tables = frozen.iter().map(|frozen| Rc::clone(&frozen.table)).chain([self.active()]);
        let tables: Vec<_> = tables.collect();
        for (place, table) in tables.iter().enumerate() {
            let newer = tables.get(place + 1..).unwrap_or_default();
            let is_newest =
                |key: &Bytes| newer.iter().all(|newer| newer.borrow().get(key, u64::MAX).is_none());
            for (key, version, _) in table.borrow().newest_after(None) {
                if is_newest(key) {
                    visit(key, version);
                }
            }
        }
    }

    /// The references to values of `key` that the tree lists, the newest first. Older ones may be
    /// dead.
    pub fn references_on_flash(&self, key: &[u8]) -> SmallVec<[ReferenceEntry; 1]> {
        let hashes = KeyHashes::of(key);
        let tree = self.tree.borrow();
        let indexes =
            tree.runs().filter_map(|run| run.patches.get(run.patch_for(key)?)?.index().ok());
        let indexes = indexes.filter(|index| !index.references().is_empty());
        indexes.flat_map(|index| index.references().find(hashes).iter().copied()).collect()
    }

    /// Adds a version to the active memtable; `segment` is its log segment, or an earlier one.
    /// Returns whether the key is new in that memtable.
    pub fn insert(
        &self,
        key: &Bytes,
        version: Version,
        segment: u64,
        snapshot: Option<u64>,
    ) -> bool {
        self.active_segment.set(self.active_segment.get().min(segment));
        let active = self.active.borrow();
        let mut active = active.borrow_mut();
        let is_new = active.insert(key, version, snapshot);
        self.active_bytes.set(active.bytes());
        is_new
    }

    /// Removes all memtables.
    pub fn clear_memory(&self) {
        self.active.take();
        self.active_segment.set(u64::MAX);
        self.frozen.borrow_mut().clear();
        self.active_bytes.set(0);
        self.frozen_bytes.set(0);
    }

    /// Keys in memtables; a key in several counts several times.
    pub fn memory_keys(&self) -> usize {
        let frozen: usize = self.frozen.borrow().iter().map(|f| f.table.borrow().len()).sum();
        frozen + self.active.borrow().borrow().len()
    }

    /// Bytes of all memtables.
    pub fn memtable_bytes(&self) -> usize {
        self.frozen_bytes.get() + self.active_bytes.get()
    }

    /// Ends the active memtable and queues it for a flush. False where it is empty.
    pub fn freeze(&self, last_seq: u64) -> bool {
        if self.active.borrow().borrow().is_empty() {
            return false;
        }
        let table = self.active.take();
        let first_segment = self.active_segment.replace(u64::MAX);
        let frozen = Frozen { table, first_segment, last_seq };
        self.frozen.borrow_mut().push_back(Rc::new(frozen));
        self.frozen_bytes.set(self.frozen_bytes.get() + self.active_bytes.take());
        true
    }

    /// Removes a memtable that is flushed.
    pub fn drop_frozen(&self, flushed: &Rc<Frozen>) {
        let mut frozen = self.frozen.borrow_mut();
        frozen.retain(|other| !Rc::ptr_eq(other, flushed));
        let left = frozen.iter().map(|frozen| frozen.table.borrow().bytes());
        self.frozen_bytes.set(left.sum());
    }

    /// The first segment of the log that recovery needs for this slice; `u64::MAX` if none.
    pub fn first_segment_needed(&self) -> u64 {
        let frozen = self.frozen.borrow();
        let oldest = frozen.front().filter(|_| !planted::bug(Bug::FrozenForgotten));
        let frozen = oldest.map_or(u64::MAX, |frozen| frozen.first_segment);
        frozen.min(self.active_segment.get())
    }

    /// Whether the newest version of `key` on flash is a value, by filters alone: wrong for about
    /// one absent key in four thousand where 16 runs have gathered.
    pub fn probably_on_flash(&self, key: &[u8]) -> bool {
        let hash = checksum::hash64(key);
        let tree = self.tree.borrow();
        tree.runs()
            .filter_map(|run| run.patches.get(run.patch_for(key)?))
            .find(|patch| patch.may_contain(hash))
            .is_some_and(|patch| !patch.index().is_ok_and(|index| index.is_tombstone(hash)))
    }
}
