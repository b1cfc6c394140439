//! A conventional drive in virtual time: page-mapped firmware over a flash array, behind a block
//! interface. SoftFlash is compared with it.
//!
//! A [`Drive`] is a state machine like the array below it: [`Drive::submit`] takes a request,
//! [`Drive::step`] plays the next event and returns the completed requests. It simulates times and
//! states, but stores no data.
//!
//! ```
//! use softflash_base::Time;
//! use softflash_drive::{AccessKind, Drive, HostRequest, spec::PageMapped};
//! # let array = softflash_nand::presets::small();
//! # let device = softflash_drive::spec::DeviceSpec::bare("tiny", &array);
//! let mut drive = Drive::new(&device, &PageMapped::default(), 28.0)?;
//! let write = HostRequest::new(7, AccessKind::Write, 8192, 4096);
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
//! - [`spec`]: devices and layouts, as presets define them; `shape`: numbering and capacity,
//!   computed from both;
//! - `write_frontier`: blocks that are written and collected together; `space`: the page map, the
//!   blocks (both are `softflash_mapping`'s, with the choice of victims) and the write frontiers,
//!   without time; `space/streams`: write frontiers that share their blocks;
//! - `mapping`: what a kind of map needs beside its table, a file each: nothing for a static
//!   stripe in memory, otherwise the choice of a write frontier for each page, streams, and a map
//!   on flash;
//! - `pages`: requests under way in a slab, and the FIFO queues of their pages;
//! - `host_interface`: link and firmware, where requests come in; `buffer`: the write buffer;
//!   `dies`: the flash, and the pages to be read; `dispatch`: the order of a die's commands;
//!   `collect`: the commands of garbage collection; `completions`: pending completions;
//!   `host_queue`: requests beyond the queue depth, and completions that the host has not taken;
//! - `controller`: the state machine, which assembles these parts, compiled for each kind of
//!   mapping; `controller/requests`: the way of a request through them; `controller/follow_ups`:
//!   the map's own pages, pages that wait for them, and the collection of bands;
//!   `controller/figures`: capacity, busy times, memory and other figures; [`mod@drive`]: a drive
//!   with the controller that its layout needs;
//! - `bands`: superblocks over several write frontiers; `space/banded` opens and collects them;
//! - `ahead`: lower bounds of completion times;
//! - `precondition`: fills a drive, or sets its steady state, in no virtual time; `sibling`: a
//!   smaller drive that settles for a large one, and `space/arrangement` the state that it gives;
//! - [`as_device`]: a drive as a device of units, for stores.

mod ahead;
pub mod as_device;
mod bands;
mod buffer;
mod collect;
mod completions;
mod controller;
mod counters;
mod dies;
mod dispatch;
pub mod drive;
mod error;
mod host_interface;
mod host_queue;
mod interleaving;
mod mapping;
mod pages;
mod precondition;
mod request;
mod shape;
mod sibling;
mod space;
pub mod spec;
mod thermal;
mod write_frontier;

pub use as_device::{DriveDevice, Extents};
pub use counters::{DriveCounters, MapCounters};
pub use drive::Drive;
pub use error::DriveError;
pub use request::{Done, HostRequest};
pub use sibling::Sibling;
pub use softflash_base::{AccessKind, Durability};
