//! Settings that may change from one run of a store to the next.

use crate::format::record::MAX_FRAGMENT_BYTES;
use crate::spare::SpareMemory;
use crate::value::DEFAULT_VALUE_BYTES;
use softflash_ftl::FtlConfig;
use softflash_policy::{Chosen, PlacementPolicy, VictimPolicy};
use std::time::Duration;

/// A week, the period of a deep scrub in Ceph.
const SCRUB_PERIOD: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// By measurement (`docs/results/value-blocks.md`): values of 4 KiB gain, too, and take four times
/// as much memory a byte of data for their references.
const VALUE_THRESHOLD: usize = 16 << 10;

/// By simulation: see the policy's file.
const AGE_POWER_PERCENT: u32 = 75;

/// A sweep visits all watches: at this interval its cost per watch is small.
const WATCH_SWEEP: usize = 1024;

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the write is on flash.
    Flash,
    /// Immediately; the write is on flash within the interval.
    Interval(Duration),
}

/// Where the time for expiry comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockSource {
    /// The wall clock, forward only: for a store that serves clients.
    #[default]
    Wall,
    /// The time that the log records, which stands still: for commands that only copy data, so
    /// that a wrong wall clock of theirs does not move the store's.
    Recorded,
    /// This time, in milliseconds since the Unix epoch, whatever the log records: only for setting
    /// the clock back ([`set_clock_back`](crate::clock::set_clock_back)).
    Fixed(u64),
}

/// Settings of a running store, for all of its shards together.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreOptions {
    /// Memory of memtables, read cache and request buffers, in bytes.
    pub memory_bytes: u64,
    /// Further memory, of the store's owner, for the read cache while the owner does not use it.
    pub spare: SpareMemory,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// The policy that chooses the unit of a new block: one that does not depend on pages' numbers.
    pub placement: PlacementPolicy,
    /// The policy that chooses the value block to collect.
    pub value_victim: VictimPolicy,
    /// The period of the scrub, which reads all data once and rewrites patches that are hard to
    /// read; `None` for no scrub.
    pub scrub: Option<Duration>,
    /// The most bytes of a fragment of a new value, or a few more where the number of fragments
    /// would be too large. Values with other fragments stay readable.
    pub fragment_bytes: usize,
    /// The least size of a separated value, which is written to a value block; `None` for no
    /// separated values. Values that were written under another setting stay readable.
    pub value_threshold: Option<usize>,
    /// The most bytes of a new value, at most [`MAX_VALUE_BYTES`](crate::value::MAX_VALUE_BYTES).
    /// Longer ones that were written under another setting stay readable.
    pub max_value_bytes: usize,
    /// The most bytes of a frame of the log, header included; `None` for the format's limit. Logs
    /// with longer frames stay readable.
    pub frame_bytes: Option<usize>,
    /// The number of watches after which the released ones are dropped.
    pub watch_sweep: usize,
    /// The source of the time for expiry.
    pub clock: ClockSource,
    /// Settings of the FTL.
    pub ftl: FtlConfig,
}

impl StoreOptions {
    /// These settings, with the policies that were chosen.
    pub fn with_policies(self, chosen: &Chosen) -> StoreOptions {
        StoreOptions {
            value_victim: chosen.victim.unwrap_or(self.value_victim),
            placement: chosen.placement.unwrap_or(self.placement),
            ftl: FtlConfig {
                wear: chosen.wear.unwrap_or(self.ftl.wear),
                order: chosen.order.unwrap_or(self.ftl.order),
                ..self.ftl
            },
            ..self
        }
    }
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            memory_bytes: 256 << 20,
            spare: SpareMemory::default(),
            durability: Durability::Flash,
            placement: PlacementPolicy::LEAST_LOADED,
            value_victim: VictimPolicy::aged_cost_benefit(AGE_POWER_PERCENT),
            scrub: Some(SCRUB_PERIOD),
            fragment_bytes: MAX_FRAGMENT_BYTES,
            value_threshold: Some(VALUE_THRESHOLD),
            max_value_bytes: DEFAULT_VALUE_BYTES,
            frame_bytes: None,
            watch_sweep: WATCH_SWEEP,
            clock: ClockSource::default(),
            ftl: FtlConfig::default(),
        }
    }
}
