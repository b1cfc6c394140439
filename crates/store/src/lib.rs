//! Stores on software-defined flash: the block layer, the log and the key-value engine.
//!
//! Everything here is `async` on a [`softflash_runtime::Runtime`] and single-threaded: one
//! [`Shard`] per core owns its units, its log and its slices, and nothing is shared.
//! [`Store`] is one thread's handle to all shards.

pub mod check;
pub mod error;
pub mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod kv;
pub mod layout;
pub mod options;
pub mod repair;
pub mod shard;
pub mod stats;
pub mod store;
pub mod value;
pub mod view;

pub use check::{CheckReport, check};
pub use error::StoreError;
pub use layout::StoreLayout;
pub use options::{Durability, StoreOptions};
pub use shard::{Shard, ShardSpec, open_all, open_all_with_log};
pub use softflash_blocks::PlacementKind;
pub use store::{Exclusive, Inbox, Mesh, ScanPage, Store, Ticket, WatchToken};
pub use value::{Entry, Value};
pub use view::View;
