//! The host flash translation layer: a state machine over one queue pair.
//!
//! It owns what firmware hides in an ordinary drive: superblocks made of good blocks, explicit
//! erase prepared ahead, wear levelling, bad-block replacement, one scheduler queue per die,
//! and recovery from what is written on the flash itself. It reads no clock, spawns nothing and
//! allocates buffers only from the queue pair's pool; time is an argument.
//!
//! The layers above see *superblocks* that are allocated, appended to in whole pages, read, and
//! released; never a physical address. See [`Ftl`].

mod blocks;
mod completion;
pub mod config;
mod dispatch;
mod failure;
mod ftl;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod header;
pub mod hint;
mod layout;
mod lifecycle;
mod mount;
pub mod policy;
mod preparation;
mod recovery;
mod request;
mod scheduler;
mod slab;
pub mod superblock;
pub mod telemetry;
mod transfer;
mod unit;
mod verification;

pub use config::FtlConfig;
pub use ftl::Ftl;
pub use hint::{Hint, Priority, Stream};
pub use mount::{DamagedSuperblock, FoundSuperblock, Inventory, Mounting};
pub use request::{Done, RequestId};
pub use superblock::{FtlError, OwnerTag, Superblock};
pub use telemetry::{SpaceAccount, UnitState, UnitTelemetry};
