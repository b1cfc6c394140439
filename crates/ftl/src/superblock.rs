//! The handle by which the layers above name a superblock, and the errors they can meet.

use softflash_base::UnitId;
use softflash_device::DeviceError;
use std::fmt;
use thiserror::Error;

/// A superblock in one of its lives: blocks erased and written together across the dies and planes
/// of a unit. The generation changes with every erase, so a handle kept too long is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Superblock {
    /// The unit.
    pub unit: UnitId,
    /// The superblock in the unit: the number of its lead block, in plane 0 of die 0.
    pub index: u32,
    /// Rises with every erase in the unit; part of the identity of all that is written inside.
    pub generation: u64,
}

impl fmt::Display for Superblock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "superblock {}/{} (generation {})", self.unit, self.index, self.generation)
    }
}

/// What the owner of a superblock wants to find again after a crash; opaque to the FTL, written and
/// checksummed with the superblock's opening header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerTag(pub [u8; 64]);

/// Why the FTL refuses or fails a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FtlError {
    /// No superblock is free in the unit.
    #[error("unit {unit} has no free superblock")]
    NoSpace {
        /// The unit.
        unit: UnitId,
    },
    /// The handle names an earlier life of the superblock.
    #[error("{superblock} was released")]
    Stale {
        /// The handle.
        superblock: Superblock,
    },
    /// An append beyond the end, or to a superblock that is sealed or has failed.
    #[error("{superblock} takes no more data")]
    Sealed {
        /// The handle.
        superblock: Superblock,
    },
    /// A read beyond what was appended.
    #[error("pages {first}..{end} of {superblock} were never written")]
    Unwritten {
        /// The handle.
        superblock: Superblock,
        /// First page asked for.
        first: u32,
        /// Page after the last.
        end: u32,
    },
    /// The data's length is not a whole number of pages.
    #[error("{bytes} bytes are not whole pages of {page_bytes} bytes")]
    NotWholePages {
        /// What was given.
        bytes: usize,
        /// The page size.
        page_bytes: u32,
    },
    /// The device failed the request.
    #[error("{superblock}: {error}")]
    Device {
        /// Where.
        superblock: Superblock,
        /// Why.
        error: DeviceError,
    },
    /// A flush failed: what was not durable before it may be lost.
    #[error("flush failed: {0}")]
    Flush(DeviceError),
    /// The unit is driven by another queue pair.
    #[error("unit {unit} does not belong to this shard")]
    NotOurs {
        /// The unit.
        unit: UnitId,
    },
    /// The device's shape is beyond what the FTL can manage.
    #[error("unsupported geometry: {reason}")]
    Unsupported {
        /// What does not fit.
        reason: String,
    },
    /// The flash was written by a later version.
    #[error(
        "unit {unit}: header format {found} is newer than {supported}, the newest this program \
         reads; use a newer softflash"
    )]
    NewerFormat {
        /// The unit.
        unit: UnitId,
        /// The version found.
        found: u32,
        /// The newest version supported.
        supported: u32,
    },
    /// The metadata on flash cannot be understood.
    #[error("unit {unit}: {reason}")]
    Damaged {
        /// The unit.
        unit: UnitId,
        /// What was found.
        reason: String,
    },
}
