//! Calls, errors and latency of each command.
//!
//! All threads add to the same counters, once for a batch of commands, without locks.

use crate::command::{COMMANDS, CommandId, Spec};
use crate::shared::latency_buckets::LatencyBuckets;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of each command since the start or the last CONFIG RESETSTAT.
pub(crate) struct CommandStats {
    /// In the order of [`CommandId::ALL`].
    commands: Box<[Counters]>,
}

/// On cache lines of its own: threads mostly run the same few commands.
#[derive(Default)]
#[repr(align(128))]
struct Counters {
    latency: LatencyBuckets,
    refused: AtomicU64,
    failed: AtomicU64,
}

/// The counters of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandStat {
    /// Its name, of a subcommand as `client|list`.
    pub name: &'static str,
    /// Calls that ran.
    pub calls: u64,
    /// Calls refused before they ran: wrong arguments, or no permission.
    pub refused: u64,
    /// Calls that ended with an error.
    pub failed: u64,
    /// The sum of all latencies in microseconds.
    pub sum_us: u64,
    /// For each of [`EDGES_US`](softflash_base::EDGES_US): calls that took at most so long,
    /// and longer than the edge before it. The last number is of those longer than all edges.
    pub by_edge: Vec<u64>,
    /// Median, 99th and 99.9th percentile: the upper edges of their buckets, in microseconds.
    pub percentiles_us: [u64; 3],
}

impl CommandStats {
    /// No calls.
    pub fn new() -> CommandStats {
        CommandStats { commands: CommandId::ALL.iter().map(|_| Counters::default()).collect() }
    }

    /// Adds calls with the same latency.
    pub fn add_calls(&self, id: CommandId, calls: u64, took_ns: u64) {
        if let Some(counters) = self.of(id) {
            counters.latency.add(calls, took_ns);
        }
    }

    /// A call was refused before it ran.
    pub fn add_refused(&self, id: CommandId) {
        if let Some(counters) = self.of(id) {
            counters.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A call ended with an error.
    pub fn add_failed(&self, id: CommandId) {
        if let Some(counters) = self.of(id) {
            counters.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn of(&self, id: CommandId) -> Option<&Counters> {
        self.commands.get(id as usize)
    }

    /// The commands that were called or refused, each with its counters.
    pub fn known(&self) -> Vec<(&'static Spec, CommandStat)> {
        let specs = COMMANDS.iter().flat_map(|spec| [spec].into_iter().chain(spec.subcommands));
        let stats = specs.filter_map(|spec| Some((spec, self.of(spec.id)?.stat(spec.name))));
        stats.filter(|(_, stat)| stat.calls + stat.refused > 0).collect()
    }

    /// Sets all counters to 0.
    pub fn reset(&self) {
        for Counters { latency, refused, failed } in &self.commands {
            latency.reset();
            refused.store(0, Ordering::Relaxed);
            failed.store(0, Ordering::Relaxed);
        }
    }
}

impl Counters {
    fn stat(&self, name: &'static str) -> CommandStat {
        let summary = self.latency.summary();
        CommandStat {
            name,
            calls: summary.count,
            refused: self.refused.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            sum_us: summary.sum_us,
            by_edge: summary.by_edge,
            percentiles_us: summary.percentiles_us,
        }
    }
}
