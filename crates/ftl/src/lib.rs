//! The host flash translation layer: a state machine over one queue pair.
//!
//! It runs on the host in place of a drive's firmware: it composes superblocks of good blocks,
//! erases ahead of need, levels wear, replaces bad blocks, schedules one queue per die, and
//! recovers its state from the headers on the flash. It reads no clock and spawns no thread: time
//! is an argument. Buffers come from the pool of the queue pair.
//!
//! The layers above allocate *superblocks*, append whole pages to them, read and release them. They
//! never see a physical address. See [`Ftl`].

mod blocks;
mod completion;
pub mod config;
mod convert;
mod dispatch;
mod erase_ahead;
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
