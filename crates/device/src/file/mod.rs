//! The `file` device: units are extents of one preallocated file or of a block device.
//!
//! ```text
//! 0        1 MiB    1 MiB + U             1 MiB + 2U
//! │ label  │ unit 0 │ unit 1              │ unit 2 ...        U = unit_bytes
//!          ├────────┴───
//!          │ superblock 0 │ superblock 1 │ ...  blocks_per_plane of them
//!          │ page 0 │ page 1 │ ...              pages_per_block of page_bytes each
//! ```
//!
//! A unit has one die with one plane, so a superblock is one erase block. Pages are transferred
//! through io_uring with O_DIRECT and registered buffers if the system allows them;
//! [`DeviceInfo::detail`](crate::DeviceInfo) names those that it does not allow.
//!
//! Not supported: the device does not know which pages were programmed since the last erase. A read
//! of an unprogrammed page returns the bytes of the file at that place, and the order of programs
//! is not checked. The layers above recognise their own pages by identity and checksum.
//!
//! Power cuts: a program that is neither durable nor followed by a completed flush may leave any
//! subset of its 4 KiB sectors.

mod calls;
mod device;
mod extent;
mod format;
mod growth;
mod options;
mod plan;
mod probe;
mod queue_pair;
mod ring;
mod room;
mod scratch;
mod settled;
mod setup;
mod sqe;
mod sync;

pub(crate) use device::BACKEND;
#[cfg(any(test, fuzzing))]
pub(crate) use device::check_configuration;
pub(crate) use format::NewFile;
pub(crate) use probe::check_sparse_place;
pub(crate) use scratch::ScratchFile;

pub use calls::FileCalls;
pub use device::FileDevice;
pub use format::{FileFormat, FormatError, HEADER_PAGES, MIN_BLOCKS_PER_UNIT, format_file};
pub use options::{Discard, OpenOptions, Use};
