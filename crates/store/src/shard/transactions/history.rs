//! The sequence of the shard's writes, and the objects that depend on it.

use super::pending_clears::PendingClears;
use super::watch::{WatchToken, Watches};
use crate::shard::read::snapshots::{Snapshot, Snapshots};
use bytes::Bytes;
use std::cell::{Cell, RefCell};

/// Sequence numbers, snapshots, watches and undecided removals of all keys.
pub(in crate::shard) struct History {
    /// The sequence number of the last batch.
    seq: Cell<u64>,
    snapshots: Snapshots,
    watches: RefCell<Watches>,
    clears: PendingClears,
}

impl History {
    /// The history after `seq`. Every `watch_sweep` registrations of watches a sweep drops orphaned
    /// tokens.
    pub(in crate::shard) fn new(seq: u64, watch_sweep: usize) -> History {
        History {
            seq: Cell::new(seq),
            snapshots: Snapshots::default(),
            watches: RefCell::new(Watches::new(watch_sweep)),
            clears: PendingClears::default(),
        }
    }

    /// The last sequence number given.
    pub(in crate::shard) fn seq(&self) -> u64 {
        self.seq.get()
    }

    /// Gives the next sequence number.
    pub(in crate::shard) fn next_seq(&self) -> u64 {
        let seq = self.seq.get() + 1;
        self.seq.set(seq);
        seq
    }

    /// A snapshot of the current state.
    pub(in crate::shard) fn take_snapshot(&self) -> Snapshot {
        self.snapshots.take(self.seq.get())
    }

    /// The snapshots in use.
    pub(in crate::shard) fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// Removals of all keys that a crash may undo.
    pub(in crate::shard) fn clears(&self) -> &PendingClears {
        &self.clears
    }

    /// Registers a token that is marked when the key is written.
    pub(in crate::shard) fn watch(&self, key: Bytes, token: WatchToken) {
        self.watches.borrow_mut().add(key, token);
    }

    /// The number of tokens of watched keys, including orphaned ones.
    pub(in crate::shard) fn watch_tokens(&self) -> usize {
        self.watches.borrow().count()
    }

    /// `key` is written.
    pub(in crate::shard) fn touch(&self, key: &[u8]) {
        self.watches.borrow_mut().touch(key);
    }

    /// All keys are removed.
    pub(in crate::shard) fn touch_all(&self) {
        self.watches.borrow_mut().touch_all();
    }
}
