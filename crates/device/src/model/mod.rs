//! The `model` device: the NAND array of `softflash-nand` behind the same queue pairs as hardware.
//!
//! The array runs on the time that its callers pass. With virtual time the device is a simulator
//! that reports when it must be polled; with real time the same code behaves like flash with the
//! configured latencies. Pages are in memory, or in a file:
//!
//! ```text
//! 0        1 MiB                      D, a multiple of 1 MiB
//! │ label  │ record of block 0 │ ...  │ page 0 of block 0 │ page 1 │ ... │ page 0 of block 1 ...
//!
//! a record, a multiple of 64 bytes (integers little-endian; all zero: a new block):
//!   0  8  XXH3-64 of the rest, seeded with the block's number
//!   8  4  next page to program; all ones if the block must be erased first
//!  12  4  erases so far
//!  16  4  reads since the last erase
//!  20  1  0 good, 1 bad from the factory, 2 gone bad; plus 128 after an interrupted erase that
//!         left it usable
//!  21  3  milliseconds until the first of the block's unstable pages decays, plus 1; 0 for never
//!  24  8  seconds since the last program
//!  32  P  for each of the block's P pages: 0 whole, 1 reads as erased, 2 torn, 3 holds the
//!         contents of another page; unstable: 4 + the reads that it still survives (at most 250),
//!         or 255 for any number
//! ```
//!
//! Blocks are numbered through channels, chips, dies and planes. The file is sparse: an erase frees
//! the block's pages. An operation reaches the file when it completes in the model's time: first
//! the page, then the record. An operation in progress when the process is killed has no effect; an
//! erase that is interrupted between its two steps leaves a block that must be erased again.
//!
//! Units are channels or chips. Those that share a channel share its bus, so they must be in one
//! queue pair; each queue pair runs an array of its own over its channels,
//! whichever they are.

mod channels;
mod config;
mod device;
mod engine;
mod faults;
mod format;
mod group;
mod image;
mod medium;
mod observation;
mod persisted;
mod queue_pair;
mod record;

pub(crate) use device::BACKEND;
#[cfg(any(test, fuzzing))]
pub(crate) use persisted::file_bytes;
#[cfg(any(test, fuzzing))]
pub(crate) use record::fuzz as fuzz_record;

pub use config::{Contents, ModelConfig, PRESETS, UnitKind};
pub use device::ModelDevice;
pub use format::{ModelFormat, format_model};
pub use image::UnitsImage;
pub use observation::BusyTimes;
