//! Stores on software-defined flash: formats, the log and the key-value engine.
//!
//! All code here is `async` on a [`softflash_runtime::Runtime`] and single-threaded: one shard per
//! core owns its units, its log and its slices, and shares nothing. [`Store`] is one thread's
//! handle to all shards.

pub mod capacity;
pub mod check;
pub mod clock;
mod error;
mod export;
mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod headless;
mod kv;
pub mod layout;
pub mod options;
pub mod repair;
mod shard;
mod spare;
pub mod stats;
mod store;
pub mod value;

pub use error::StoreError;
pub use export::Export;
pub use layout::StoreLayout;
pub use options::{ClockSource, Durability, StoreOptions};
pub use shard::{ScanPage, WatchToken};
pub use store::{CommitToken, Exclusive, LongWork, Store, Transaction, open_all};
pub use value::Entry;

/// The opening of shards on threads of their own, and of stores with a separate log device.
pub mod opening {
    pub use crate::store::{Inbox, Mesh, ShardSpec, open_all_with_log};
}

/// Memory that the store shares with its owner.
pub mod memory {
    pub use crate::shard::resources::budget::REQUEST_SHARE;
    pub use crate::spare::{HeldValues, SpareMemory};
}

/// Encodings on flash, for tests and tools that read or change raw flash.
pub mod on_flash {
    pub use crate::format::log::{event, frame};
    pub use crate::format::patch::{HEADER_BYTES, PatchHeader};
    pub use crate::format::value::{VALUE_HEADER_BYTES, stored_len};
    pub use crate::format::{FormatError, Version};
}
