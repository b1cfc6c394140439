//! What FLASH.SET needs of a server with a data directory. This crate knows no directories itself.

use crate::resp::reply::Reply;
use futures_util::future::BoxFuture;
use softflash_store::stats::{StoreStats, UnitTelemetry};

/// A growth of the device. Kinds of units that are not named share the rest of the new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Growth {
    /// Its size afterwards in bytes; without one, all of a block device.
    pub size_bytes: Option<u64>,
    /// New units for keys.
    pub store: Option<u16>,
    /// New units for the sets for volumes.
    pub volumes: Option<u16>,
    /// New units in no set.
    pub spare: Option<u16>,
}

/// A change of the sets of units, or of the units that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetChange {
    /// A new set of spare units.
    Create {
        /// Its name.
        name: String,
        /// How many units it has.
        units: u16,
        /// The shard whose thread serves it; without one, that with the fewest units for volumes.
        shard: Option<u16>,
        /// Spare space for collection in percent of the usable space, unless it is the default.
        op_percent: Option<u8>,
    },
    /// Another number of units.
    Resize {
        /// The set.
        name: String,
        /// How many units it has afterwards.
        units: u16,
    },
    /// The set is deleted, and its units are spare.
    Delete {
        /// The set, which holds no volumes.
        name: String,
    },
    /// Two sets with a copy each of the same volumes.
    Pair {
        /// The set by which its volumes are used.
        first: String,
        /// The other one.
        second: String,
    },
    /// Other windows of a pair.
    Window {
        /// One of its sets.
        name: String,
        /// The time for which a set takes writes, as `100ms`, or `none`.
        length: String,
    },
    /// The device gets more units.
    Grow(Growth),
}

/// The sets of units of a server.
pub trait SetAdmin: Send + Sync {
    /// Each set as a map of its fields, by the counters and the units of each shard of the store.
    fn list(&self, store: Vec<(StoreStats, Vec<UnitTelemetry>)>) -> BoxFuture<'static, Vec<Reply>>;

    /// Carries out a change, which is durable when the future is ready, and goes on where nobody
    /// waits for it. Errors are texts for people, which name the remedy.
    fn change(&self, change: SetChange) -> BoxFuture<'static, Result<(), String>>;
}
