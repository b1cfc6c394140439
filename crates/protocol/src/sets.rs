//! What FLASH.SET needs of a server with a data directory. This crate knows no directories itself.

use futures_util::future::BoxFuture;
use softflash_store::stats::{StoreStats, UnitTelemetry};

/// A set of units, as FLASH.SET LIST shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct SetEntry {
    /// Its number.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// The number of its shard.
    pub shard: u16,
    /// `store` or `mapped`.
    pub kind: &'static str,
    /// Its units.
    pub units: Vec<u16>,
    /// Spare space for collection in percent of the usable space; of mapped sets.
    pub op_percent: Option<u8>,
    /// Bytes that its data take, if it is mounted.
    pub used_bytes: Option<u64>,
    /// Bytes that its data may take.
    pub usable_bytes: u64,
    /// Mean erases of a block, if it is mounted.
    pub erases_mean: Option<f64>,
    /// Bytes programmed for each byte that clients wrote, since the start.
    pub waf: Option<f64>,
    /// The set with the other copy of its volumes.
    pub pair: Option<String>,
    /// The time for which it only reads, in milliseconds.
    pub window: Option<u64>,
}

/// The sets of a server.
pub trait SetAdmin: Send + Sync {
    /// All sets, by the counters and the units of each shard of the store.
    fn list(
        &self,
        store: Vec<(StoreStats, Vec<UnitTelemetry>)>,
    ) -> BoxFuture<'static, Vec<SetEntry>>;
}
