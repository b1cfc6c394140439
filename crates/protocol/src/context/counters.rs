//! The counters of a server, which all threads add to.

use crate::command::Lookups;
use crate::shared::error_stats::ErrorStats;
use crate::shared::rate::Rate;
use softflash_base::Time;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start or the last CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections accepted.
    pub connections: AtomicU64,
    /// Connections rejected by the server.
    pub rejected_connections: AtomicU64,
    /// Commands run.
    pub commands: AtomicU64,
    /// Error replies.
    pub errors: AtomicU64,
    /// Bytes received.
    pub input_bytes: AtomicU64,
    /// Bytes sent.
    pub output_bytes: AtomicU64,
    /// Reads from sockets that brought bytes.
    pub socket_reads: AtomicU64,
    /// Batches of replies sent.
    pub socket_writes: AtomicU64,
    /// Lookups of commands that return something of a key which existed.
    pub keyspace_hits: AtomicU64,
    /// Those of keys that did not exist.
    pub keyspace_misses: AtomicU64,
    pub(crate) error_stats: ErrorStats,
    pub(crate) command_rate: Rate,
    pub(crate) input_rate: Rate,
    pub(crate) output_rate: Rate,
    /// What the store, whose counters nothing resets, had counted as expired at the last reset.
    pub(crate) expired_before: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    if count > 0 {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

impl Counters {
    /// A connection has received bytes.
    pub fn count_input(&self, bytes: u64, now: Time) {
        add(&self.input_bytes, bytes);
        add(&self.socket_reads, 1);
        self.input_rate.add(bytes, now);
    }

    /// A connection has sent the replies of a batch.
    pub fn count_output(&self, bytes: u64, now: Time) {
        add(&self.output_bytes, bytes);
        add(&self.socket_writes, 1);
        self.output_rate.add(bytes, now);
    }

    /// Commands have run.
    pub(crate) fn count_commands(&self, commands: u64, now: Time) {
        add(&self.commands, commands);
        self.command_rate.add(commands, now);
    }

    /// Commands that have run have looked keys up.
    pub(crate) fn count_lookups(&self, Lookups { hits, misses }: Lookups) {
        add(&self.keyspace_hits, hits);
        add(&self.keyspace_misses, misses);
    }

    /// An error reply with this text.
    pub(crate) fn count_error(&self, text: &[u8]) {
        add(&self.errors, 1);
        self.error_stats.count(text);
    }

    /// CONFIG RESETSTAT
    pub(crate) fn reset(&self, expired_keys: u64) {
        let zeroed = [
            &self.connections,
            &self.rejected_connections,
            &self.commands,
            &self.errors,
            &self.input_bytes,
            &self.output_bytes,
            &self.socket_reads,
            &self.socket_writes,
            &self.keyspace_hits,
            &self.keyspace_misses,
        ];
        zeroed.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
        self.expired_before.store(expired_keys, Ordering::Relaxed);
        self.error_stats.reset();
        let rates = [&self.command_rate, &self.input_rate, &self.output_rate];
        rates.iter().for_each(|rate| rate.reset());
    }
}
