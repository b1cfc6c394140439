//! The counters of [`StoreStats`] that no other part of the shard keeps.

use crate::stats::{Stalls, StoreStats};
use std::cell::Cell;

/// What a write waits for in its admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StallCause {
    /// A free block.
    Space,
    /// The collector, which gains the space for separated values.
    Cleaning,
    /// Device writes of separated values.
    Values,
    /// Room in memtables.
    Memory,
    /// A shorter log.
    Log,
    /// Fewer runs in level 0.
    Runs,
    /// The end of a merge.
    Merge,
}

/// Counters since the shard was opened.
#[derive(Default)]
pub(super) struct Counters {
    host_bytes: Cell<u64>,
    flush_bytes: Cell<u64>,
    compaction_bytes: Cell<u64>,
    memory_hits: Cell<u64>,
    flash_lookups: Cell<u64>,
    false_positives: Cell<u64>,
    flushes: Cell<u64>,
    compactions: Cell<u64>,
    stall_us: Cell<u64>,
    stall_longest_us: Cell<u64>,
    stalls: Cell<Stalls>,
    refused_writes: Cell<u64>,
    data_losses: Cell<u64>,
    patrols: Cell<u64>,
    patrolled_bytes: Cell<u64>,
    refreshed_bytes: Cell<u64>,
}

fn count(counter: &Cell<u64>, by: u64) {
    counter.set(counter.get() + by);
}

impl Counters {
    /// A client has written `bytes` of keys and values.
    pub(super) fn count_host_bytes(&self, bytes: u64) {
        count(&self.host_bytes, bytes);
    }

    /// A flush has written `bytes`.
    pub(super) fn count_flush(&self, bytes: u64) {
        count(&self.flush_bytes, bytes);
        count(&self.flushes, 1);
    }

    /// A merge has written `bytes`.
    pub(super) fn count_merge(&self, bytes: u64) {
        count(&self.compaction_bytes, bytes);
    }

    /// A compaction is in the tree.
    pub(super) fn count_compaction(&self) {
        count(&self.compactions, 1);
    }

    /// A lookup was answered from memory.
    pub(super) fn count_memory_hit(&self) {
        count(&self.memory_hits, 1);
    }

    /// A lookup reads flash.
    pub(super) fn count_flash_lookup(&self) {
        count(&self.flash_lookups, 1);
    }

    /// A filter has not excluded a key that its patch does not have.
    pub(super) fn count_false_positive(&self) {
        count(&self.false_positives, 1);
    }

    /// A write has waited for its admission, in microseconds.
    pub(super) fn count_stall(&self, us: u64) {
        count(&self.stall_us, us);
        self.stall_longest_us.set(self.stall_longest_us.get().max(us));
    }

    /// A write has waited for this, in microseconds.
    pub(super) fn count_cause(&self, cause: StallCause, us: u64) {
        let mut stalls = self.stalls.get();
        *match cause {
            StallCause::Space => &mut stalls.space,
            StallCause::Cleaning => &mut stalls.cleaning,
            StallCause::Values => &mut stalls.values,
            StallCause::Memory => &mut stalls.memory,
            StallCause::Log => &mut stalls.log,
            StallCause::Runs => &mut stalls.runs,
            StallCause::Merge => &mut stalls.merge,
        } += us;
        self.stalls.set(stalls);
    }

    /// The time that writes have waited, by cause.
    pub(super) fn stalls(&self) -> Stalls {
        self.stalls.get()
    }

    /// A write was refused for lack of space.
    pub(super) fn count_refused_write(&self) {
        count(&self.refused_writes, 1);
    }

    /// Data was found lost.
    pub(super) fn count_data_loss(&self) {
        count(&self.data_losses, 1);
    }

    /// The scrub has read everything once.
    pub(super) fn count_scrub_pass(&self) {
        count(&self.patrols, 1);
    }

    /// The scrub has read `bytes`.
    pub(super) fn count_scrubbed(&self, bytes: u64) {
        count(&self.patrolled_bytes, bytes);
    }

    /// Data that was hard to read was rewritten as `bytes`.
    pub(super) fn count_refreshed(&self, bytes: u64) {
        count(&self.refreshed_bytes, bytes);
    }

    /// The statistics, with zeros for those that are not counted here.
    pub(super) fn stats(&self) -> StoreStats {
        let Stalls { space, cleaning, values, memory, log, runs, merge } = self.stalls();
        StoreStats {
            host_bytes_written: self.host_bytes.get(),
            flush_bytes_written: self.flush_bytes.get(),
            compaction_bytes_written: self.compaction_bytes.get(),
            memory_hits: self.memory_hits.get(),
            flash_lookups: self.flash_lookups.get(),
            filter_false_positives: self.false_positives.get(),
            flushes: self.flushes.get(),
            compactions: self.compactions.get(),
            stall_us: self.stall_us.get(),
            stall_longest_us: self.stall_longest_us.get(),
            stall_space_us: space,
            stall_cleaning_us: cleaning,
            stall_values_us: values,
            stall_memory_us: memory,
            stall_log_us: log,
            stall_runs_us: runs,
            stall_merge_us: merge,
            refused_writes: self.refused_writes.get(),
            data_losses: self.data_losses.get(),
            patrols: self.patrols.get(),
            patrolled_bytes: self.patrolled_bytes.get(),
            refreshed_bytes: self.refreshed_bytes.get(),
            ..StoreStats::default()
        }
    }
}
