//! Data kept in memory for later reads.

use crate::kv::cache::{Cached, ReadCache};
use crate::kv::scan_readahead::ScanReadahead;
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The read cache and the readahead of scans.
pub(in crate::shard) struct Caches {
    read: RefCell<ReadCache>,
    scans: Rc<ScanReadahead>,
    /// Bytes taken from the spare memory because the shard uses more than its part.
    overdraft_bytes: Cell<u64>,
}

impl Caches {
    /// Empty caches; scans may read `scan_bytes` ahead.
    pub(in crate::shard) fn new(scan_bytes: usize) -> Caches {
        Caches {
            read: RefCell::default(),
            scans: Rc::new(ScanReadahead::new(scan_bytes)),
            overdraft_bytes: Cell::new(0),
        }
    }

    /// Whether the read cache has `key`.
    pub(in crate::shard) fn has(&self, key: &[u8]) -> bool {
        self.read.borrow().get(key).is_some()
    }

    /// The cached entry of `key`.
    pub(in crate::shard) fn get(&self, key: &[u8]) -> Option<Cached> {
        self.read.borrow().get(key).cloned()
    }

    /// Caches an entry; the read cache may now have `room_bytes`.
    pub(in crate::shard) fn insert(&self, key: Bytes, cached: Cached, room_bytes: u64) {
        self.read.borrow_mut().insert(key, cached, room_bytes);
    }

    /// Removes `key`, which has been written.
    pub(in crate::shard) fn remove(&self, key: &[u8]) {
        self.read.borrow_mut().remove(key);
    }

    /// Removes all entries of the read cache.
    pub(in crate::shard) fn clear(&self) {
        self.read.borrow_mut().clear();
    }

    /// Shrinks the read cache to `room_bytes`.
    pub(super) fn shrink_to(&self, room_bytes: u64) {
        self.read.borrow_mut().shrink_to(room_bytes);
    }

    /// Bytes of the read cache.
    pub(in crate::shard) fn read_bytes(&self) -> u64 {
        self.read.borrow().bytes()
    }

    /// The readahead of scans.
    pub(in crate::shard) fn scans(&self) -> &Rc<ScanReadahead> {
        &self.scans
    }

    /// Notes the bytes taken from the spare memory; returns those taken before.
    pub(super) fn note_overdraft(&self, bytes: u64) -> u64 {
        self.overdraft_bytes.replace(bytes)
    }
}
