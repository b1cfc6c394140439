//! A conventional drive in virtual time: page-mapped firmware over a flash array, behind a block
//! interface. It is what SoftFlash is compared with.
//!
//! A [`Drive`] is a state machine like the array below it: requests go in with [`Drive::submit`],
//! time is played with [`Drive::step`], and what ended comes out. It keeps times and states, no
//! data.
//!
//! ```
//! use softflash_base::Time;
//! use softflash_drive::{AccessKind, Drive, HostRequest, spec::PageMapped};
//! # let array = softflash_nand::presets::small();
//! # let device = softflash_drive::spec::DeviceSpec::bare("tiny", &array);
//! let mut drive = Drive::new(&device, &PageMapped::default(), 28.0)?;
//! let write = HostRequest { tag: 7, kind: AccessKind::Write, offset_bytes: 8192, bytes: 4096 };
//! drive.submit(Time::ZERO, write)?;
//! let mut done = Vec::new();
//! while drive.step(&mut done) {}
//! // A transfer, then a program.
//! assert_eq!((done[0].tag, done[0].latency_ns()), (7, 10_000 + 200_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layout
//!
//! - [`spec`]: devices and layouts as presets state them; `shape`: what follows from both;
//! - `map`: logical to physical pages and back; `write_frontier`: blocks that are written and
//!   collected together;
//! - `pages`: requests under way in a slab, and the FIFO queues of their pages;
//! - `policy`: which block is collected next;
//! - [`mod@drive`]: the state machine; `front`: link and firmware, where requests come in;
//!   `dispatch`: what a die does next; `collect`: garbage collection; `buffer`: the write buffer;
//!   `completions`: completions to come later;
//! - `figures`: what a drive is and has, in numbers;
//! - `ahead`: playing up to a time, and how long nothing can end;
//! - [`precondition`]: a drive that is full, or in its steady state, at once;
//! - [`as_device`]: a drive as a device of units, for stores.

mod ahead;
pub mod as_device;
mod buffer;
mod collect;
mod completions;
mod counters;
mod dispatch;
pub mod drive;
mod error;
mod figures;
mod front;
mod map;
mod memory;
mod pages;
mod policy;
pub mod precondition;
mod request;
mod shape;
pub mod spec;
mod write_frontier;

pub use as_device::{DriveDevice, Extents};
pub use counters::DriveCounters;
pub use drive::Drive;
pub use error::DriveError;
pub use request::{Done, HostRequest};
pub use softflash_base::AccessKind;
