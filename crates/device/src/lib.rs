//! The Common SSD Layer: one queue-pair trait over interchangeable flash devices.
//!
//! A [`Device`] is a set of independent units. A shard opens a [`QueuePair`] over the units that it
//! owns, submits [`Command`]s and polls for [`Completion`]s. Time is an argument. No backend
//! interprets the stored data, and no layer above depends on the backend.
//!
//! # Layout
//!
//! - [`command`], [`hint`], [`geometry`], [`queue_pair`]: the interface;
//! - [`file`](mod@file): units as extents of a file or block device, through io_uring;
//! - [`model`]: the NAND array as a device, in virtual or real time, in memory or in a file;
//! - `opening`: opens the device at a path for an [`Access`]; `size`: devices that are cut short;
//!   `label`: the label at the start of a device, with its format;
//! - `growth`: devices that get more units;
//! - `backends`: what a backend says of itself, among it its [`Capabilities`];
//! - [`backend`]: shared checks of all backends, also for backends in other crates (`validate`,
//!   `claims`, `accepted`).

pub mod backend {
    //! The parts that every backend needs.

    pub use crate::accepted::Accepted;
    pub use crate::claims::{Claim, Claims};
    pub use crate::validate::check;
}

mod accepted;
mod access;
mod backends;
mod claims;
pub mod command;
pub mod file;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod geometry;
mod growth;
mod growth_error;
pub mod hint;
mod label;
pub mod model;
mod opening;
pub mod queue_pair;
mod size;
mod sync;
mod validate;

pub use access::Access;
pub use backends::Capabilities;
pub use command::{Command, Completion, DeviceError, Operation, Tag, Target};
pub use file::{FileCalls, FileDevice, FileFormat, FormatError, OpenOptions, format_file};
pub use geometry::{DeviceInfo, UnitGeometry};
pub use growth::{bytes_with, check_growth, drive_bytes, settle_size, units_in};
pub use growth_error::GrowthError;
pub use hint::{Hint, LifetimeClass, Origin, Priority};
pub use model::{
    BusyTimes, Contents, ModelConfig, ModelDevice, ModelFormat, UnitsImage, format_model,
};
pub use opening::{Cut, capabilities, cut_of, extend, inspect, open, open_with};
pub use queue_pair::{Decorator, Described, Device, OpenError, QueuePair, Submit, Wake};
pub use size::CUT_SHORT;
