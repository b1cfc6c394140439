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
mod commands;
pub mod config;
mod convert;
mod counters;
mod dispatch;
mod due;
mod erase;
mod erase_ahead;
mod failure;
mod free_index;
mod ftl;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod header;
mod headers;
mod inventory;
mod layout;
mod mount;
mod op;
mod owners;
pub mod policy;
mod program_bytes;
mod recovery;
mod requests;
mod scheduler;
mod service;
mod slab;
mod slots;
mod stream;
pub mod superblock;
pub mod telemetry;
mod unit;
mod units;

pub use config::FtlConfig;
pub use ftl::Ftl;
pub use inventory::{DamagedSuperblock, FoundSuperblock, Inventory, KeptSuperblock};
pub use layout::payload_bytes;
pub use mount::Mounting;
pub use owners::{Owners, Ownership};
pub use program_bytes::ProgramBytes;
pub use requests::{Done, RequestId};
pub use service::Service;
pub use softflash_device::{Hint, LifetimeClass, Origin, Priority};
pub use stream::Stream;
pub use superblock::{FtlError, Owner, OwnerTag, Superblock};
pub use telemetry::{SpaceAccount, UnitState, UnitTelemetry};
