//! What may differ from one run of a store to the next.

use crate::format::record::MAX_FRAGMENT_BYTES;
use softflash_blocks::PlacementKind;
use softflash_ftl::FtlConfig;
use std::time::Duration;

/// A week, as other stores take for a pass that reads everything (Ceph's deep scrub).
const SCRUB_PERIOD: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A sweep looks at all watches: so rarely, it costs each of them next to nothing.
const WATCH_SWEEP: usize = 1024;

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When it is on flash.
    Flash,
    /// At once; it is on flash within the interval.
    Interval(Duration),
}

/// Settings of a running store, for all of its shards together.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreOptions {
    /// Bytes that memtables, the read cache and request buffers may take.
    pub memory_bytes: u64,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// Which unit takes a new block.
    pub placement: PlacementKind,
    /// How long a pass of the patrol takes, which reads everything once and writes anew what is
    /// hard to read; without one there is none.
    pub scrub: Option<Duration>,
    /// Longer values are cut into fragments of at most so many bytes when they are written, or of a
    /// few more where the number of fragments would be too large. What was cut otherwise is read
    /// all the same.
    pub fragment_bytes: usize,
    /// Watches after which those are dropped that nobody holds any more.
    pub watch_sweep: usize,
    /// How the FTL below runs the flash.
    pub ftl: FtlConfig,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            memory_bytes: 256 << 20,
            durability: Durability::Flash,
            placement: PlacementKind::default(),
            scrub: Some(SCRUB_PERIOD),
            fragment_bytes: MAX_FRAGMENT_BYTES,
            watch_sweep: WATCH_SWEEP,
            ftl: FtlConfig::default(),
        }
    }
}
