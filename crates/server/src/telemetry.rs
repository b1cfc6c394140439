//! What a server tells about itself.

use serde::Serialize;
use softflash_ftl::UnitTelemetry;
use softflash_store::stats::StoreStats;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one shard's thread, which alone writes them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ThreadCounters {
    /// Connections that have ended.
    pub left: AtomicU64,
    /// Connections cut off for being slow.
    pub timeouts: AtomicU64,
}

/// Adds to a counter that only this thread writes.
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// Counters of the server as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ServerStats {
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Shards, each with a thread.
    pub shards: u64,
    /// Connections now.
    pub connections: u64,
    /// Connections accepted since the start.
    pub connections_accepted: u64,
    /// Connections refused because there were too many.
    pub connections_rejected: u64,
    /// Connections closed because they were too slow or idle.
    pub connections_timed_out: u64,
    /// Wrong passwords.
    pub authentication_failures: u64,
    /// Commands refused to users who may not run them, or not with these keys.
    pub commands_denied: u64,
    /// Commands executed.
    pub commands: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes that request bodies hold of their budget.
    pub request_budget_held_bytes: u64,
    /// The budget of request bodies.
    pub request_budget_bytes: u64,
}

/// Everything, at one moment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Snapshot {
    /// The server.
    pub server: ServerStats,
    /// The store, all shards added up.
    pub store: StoreStats,
    /// Each unit.
    #[serde(skip)]
    pub units: Vec<UnitTelemetry>,
}
