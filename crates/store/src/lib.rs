//! Stores on software-defined flash: formats, the log and the key-value engine.
//!
//! All code here is `async` on a [`softflash_runtime::Runtime`] and single-threaded: one [`Shard`]
//! per core owns its units, its log and its slices, and shares nothing. [`Store`] is one thread's
//! handle to all shards.

pub mod check;
mod error;
pub mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod kv;
pub mod layout;
mod options;
pub mod repair;
mod shard;
mod spare;
pub mod stats;
mod store;
pub mod value;

pub use check::{CheckReport, check};
pub use error::StoreError;
pub use layout::StoreLayout;
pub use options::{Durability, StoreOptions};
pub use shard::budget::REQUEST_SHARE;
pub use shard::{ScanPage, Shard, WatchToken};
pub use softflash_blocks::PlacementKind;
pub use spare::SpareMemory;
pub use store::{
    CommitToken, Exclusive, Inbox, Mesh, ShardSpec, Store, Transaction, open_all, open_all_with_log,
};
pub use value::{Entry, Value, Wanted};
