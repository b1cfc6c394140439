//! The shard's background tasks: their signals, and their end.

use crate::error::StoreError;
use softflash_runtime::Notify;
use std::cell::{Cell, RefCell};
use std::future::Future;

/// The signals between clients and background tasks.
#[derive(Default)]
pub(in crate::shard) struct Tasks {
    /// A memtable may need a flush.
    flush: Notify,
    /// A slice may need a compaction.
    compact: Notify,
    /// A value block may need the collector.
    collect: Notify,
    /// Wakes the scrub when the shard closes.
    scrub: Notify,
    /// Compaction has no work.
    compaction_idle: Cell<bool>,
    /// Memory or flash space was freed.
    room: Notify,
    /// The number of running tasks.
    running: Cell<usize>,
    closing: Cell<bool>,
    /// The error that stopped background work.
    failure: RefCell<Option<StoreError>>,
}

impl Tasks {
    /// Wakes the flush.
    pub(in crate::shard) fn request_flush(&self) {
        self.flush.notify_one();
    }

    /// Waits for [`request_flush`](Self::request_flush).
    pub(in crate::shard) fn flush_requested(&self) -> impl Future<Output = ()> + use<> {
        self.flush.notified()
    }

    /// Wakes compaction.
    pub(in crate::shard) fn request_compaction(&self) {
        self.compact.notify_one();
    }

    /// Waits for [`request_compaction`](Self::request_compaction).
    pub(super) fn compaction_requested(&self) -> impl Future<Output = ()> + use<> {
        self.compact.notified()
    }

    /// Wakes the collector.
    pub(in crate::shard) fn request_collection(&self) {
        self.collect.notify_one();
    }

    /// Waits for [`request_collection`](Self::request_collection).
    pub(in crate::shard) fn collection_requested(&self) -> impl Future<Output = ()> + use<> {
        self.collect.notified()
    }

    /// Waits until the shard closes.
    pub(super) fn scrub_woken(&self) -> impl Future<Output = ()> + use<> {
        self.scrub.notified()
    }

    /// Memory or flash space was freed, or can no more be freed.
    pub(in crate::shard) fn announce_room(&self) {
        self.room.notify_all();
    }

    /// Waits for [`announce_room`](Self::announce_room).
    pub(in crate::shard) fn room_announced(&self) -> impl Future<Output = ()> + use<> {
        self.room.notified()
    }

    /// Whether compaction has no work.
    pub(in crate::shard) fn is_compaction_idle(&self) -> bool {
        self.compaction_idle.get()
    }

    /// Compaction has no work, or begins work.
    pub(in crate::shard) fn set_compaction_idle(&self, is_idle: bool) {
        self.compaction_idle.set(is_idle);
    }

    /// A task starts.
    pub(super) fn note_start(&self) {
        self.running.set(self.running.get() + 1);
    }

    /// A task has ended.
    pub(super) fn note_end(&self) {
        self.running.set(self.running.get() - 1);
        self.room.notify_all();
    }

    /// Whether any task runs.
    pub(in crate::shard) fn are_running(&self) -> bool {
        self.running.get() > 0
    }

    /// Whether the shard closes.
    pub(in crate::shard) fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// The shard closes. Returns false where it did before.
    pub(in crate::shard) fn begin_closing(&self) -> bool {
        !self.closing.replace(true)
    }

    /// Wakes all tasks, which end when the shard closes.
    pub(in crate::shard) fn wake_all(&self) {
        self.flush.notify_one();
        self.compact.notify_one();
        self.scrub.notify_one();
        self.collect.notify_one();
    }

    /// Waits until all tasks have ended.
    pub(in crate::shard) async fn all_ended(&self) {
        while self.running.get() > 0 {
            self.room.notified().await;
        }
    }

    /// Background work has failed: the shard refuses further writes.
    pub(in crate::shard) fn fail(&self, error: StoreError) {
        *self.failure.borrow_mut() = Some(error);
        self.room.notify_all();
    }

    #[cfg(test)]
    pub(in crate::shard) fn forget_failure(&self) {
        self.failure.take();
    }

    /// The error that stopped background work.
    pub(in crate::shard) fn failure(&self) -> Option<StoreError> {
        self.failure.borrow().clone()
    }
}
