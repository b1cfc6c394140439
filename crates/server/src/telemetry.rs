//! Counters of a server.

use serde::Serialize;
use softflash_datadir::ShardDomain;
use softflash_ftl::{ProgramBytes, UnitTelemetry};
use softflash_protocol::CommandStat;
use softflash_store::stats::StoreStats;
use softflash_volume::{PairFigures, VolumeFigures, WindowState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one shard's thread, which is their only writer.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ThreadCounters {
    /// Connections that have ended.
    pub left: AtomicU64,
    /// Connections closed because of a time limit.
    pub timeouts: AtomicU64,
}

/// Adds to a counter of this thread.
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// Counters of the whole server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ServerStats {
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Number of shards; each has a thread.
    pub shards: u64,
    /// Current number of connections.
    pub connections: u64,
    /// Connections accepted since the start.
    pub connections_accepted: u64,
    /// Connections refused because of the limit.
    pub connections_rejected: u64,
    /// Connections closed because of a time limit.
    pub connections_timed_out: u64,
    /// Failed logins.
    pub authentication_failures: u64,
    /// Commands denied to users by their permissions for commands or keys.
    pub commands_denied: u64,
    /// Commands executed.
    pub commands: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes held from the budget of request bodies.
    pub request_budget_held_bytes: u64,
    /// Size of the budget of request bodies.
    pub request_budget_bytes: u64,
}

/// The volumes of one set: a mapped domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DomainStats {
    /// The shard.
    pub shard: u64,
    /// The name of the set.
    pub set: String,
    /// The shard or the set, for people.
    #[serde(skip)]
    pub place: String,
    /// Why its volumes are not served; the other figures are 0 then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_mounted: Option<String>,
    /// Bytes that clients have written since the start.
    pub volume_bytes_written: u64,
    /// Bytes that collection has moved since the start.
    pub volume_bytes_collected: u64,
    /// Flushes of the device since the start.
    pub volume_flushes: u64,
    /// Bytes that volumes and snapshots hold.
    pub volume_used_bytes: u64,
    /// Bytes that they may hold.
    pub volume_usable_bytes: u64,
    /// Bytes of data in units that leave the set.
    pub draining_bytes: u64,
    /// 1 while writes that take more space are refused.
    pub volume_full: u64,
    /// Writes refused because there was no space, since the start.
    pub volume_refused_writes: u64,
    /// Bytes programmed on its units since the start, by origin.
    pub programmed: ProgramBytes,
    /// The state of the pair that the set is one of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairFigures>,
    /// Its window, where a pair has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowState>,
    /// Each of its volumes.
    pub by_volume: Vec<VolumeFigures>,
}

impl DomainStats {
    /// A domain without figures.
    pub(crate) fn of(domain: &ShardDomain) -> DomainStats {
        DomainStats {
            shard: domain.shard.0.into(),
            set: domain.name.clone(),
            place: domain.place(),
            ..DomainStats::default()
        }
    }
}

impl Snapshot {
    /// Why writes are refused, if some are.
    pub(crate) fn refusal(&self) -> Option<String> {
        let mut reasons = Vec::new();
        if self.store.full > 0 {
            reasons.push("the flash of the store is full; delete keys".to_owned());
        }
        for domain in self.volumes.iter().filter(|domain| domain.volume_full > 0) {
            reasons.push(format!(
                "the volumes of {} are full ({} of {} bytes); discard data, or delete \
                 volumes or snapshots",
                domain.place, domain.volume_used_bytes, domain.volume_usable_bytes
            ));
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// All counters at one moment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Snapshot {
    /// Counters of the server.
    pub server: ServerStats,
    /// Counters of the store, summed over all shards.
    pub store: StoreStats,
    /// The volumes of each set; empty without sets for volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<DomainStats>,
    /// Telemetry of each unit.
    #[serde(skip)]
    pub units: Vec<UnitTelemetry>,
    /// Counters of each command that was called.
    #[serde(skip)]
    pub commands: Vec<CommandStat>,
}
