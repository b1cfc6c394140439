//! What FLASH.SET needs of a server with a data directory. This crate knows no directories itself.

use crate::resp::reply::Reply;
use futures_util::future::BoxFuture;
use softflash_store::stats::{StoreStats, UnitTelemetry};

/// The sets of units of a server.
pub trait SetAdmin: Send + Sync {
    /// Each set as a map of its fields, by the counters and the units of each shard of the store.
    fn list(&self, store: Vec<(StoreStats, Vec<UnitTelemetry>)>) -> BoxFuture<'static, Vec<Reply>>;
}
