//! The operations of a phase, which the threads share.

use super::distribution::Order;
use super::workload::{Mix, Workload};
use softflash_console::host;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A phase of the run. Its operations are taken one by one, so that all threads work until the end
/// and none of the last seconds is slow because a thread was done early.
pub struct Work {
    /// The workload.
    pub workload: Workload,
    /// Kinds of operations.
    pub mix: Mix,
    /// Order of the keys.
    pub order: Order,
    /// Number of operations.
    pub operations: u64,
    taken: AtomicU64,
    began: Instant,
}

impl Work {
    /// A phase that begins now.
    pub fn new(workload: Workload, mix: Mix, order: Order, operations: u64) -> Work {
        Work { workload, mix, order, operations, taken: AtomicU64::new(0), began: host::now() }
    }

    /// Takes an operation; false if none is left.
    pub fn take(&self) -> bool {
        self.taken.fetch_add(1, Ordering::Relaxed) < self.operations
    }

    /// Counts an operation that a thread makes whatever the others do.
    pub fn count(&self) -> bool {
        self.taken.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Number of operations that have begun.
    pub fn begun(&self) -> u64 {
        self.taken.load(Ordering::Relaxed).min(self.operations)
    }

    /// Nanoseconds since the start.
    pub fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
