//! The handle of a superblock, and the errors of the FTL.

use softflash_base::UnitId;
use softflash_device::DeviceError;
use std::fmt;
use thiserror::Error;

/// A superblock in one of its lives: blocks of all dies and planes of a unit that are erased and
/// written together. The generation changes with every erase, so a stale handle is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Superblock {
    /// The unit.
    pub unit: UnitId,
    /// The number of the superblock in the unit: that of its lead block, in plane 0 of die 0.
    pub index: u32,
    /// Rises with every erase in the unit; part of the identity of all data in the superblock.
    pub generation: u64,
}

impl fmt::Display for Superblock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "superblock {}/{} (generation {})", self.unit, self.index, self.generation)
    }
}

/// The layer that interprets the tags of superblocks, and its domain: a set of units with one
/// purpose. A unit has one owner, and the superblocks of others in it are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The number of the layer: 0 is the block layer.
    pub layer: u8,
    /// The domain.
    pub domain: u16,
}

impl Owner {
    /// The block layer, in its only domain.
    pub const BLOCKS: Owner = Owner { layer: 0, domain: 0 };
}

/// Data that the owner of a superblock reads back at a mount. The FTL does not interpret the tag;
/// the opening header stores it under its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerTag(pub [u8; 64]);

/// An error of a request or a mount.
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
    /// A read beyond the last appended page.
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
        /// Length of the data.
        bytes: usize,
        /// The page size.
        page_bytes: u32,
    },
    /// The device failed the request.
    #[error("{superblock}: {error}")]
    Device {
        /// The superblock.
        superblock: Superblock,
        /// The error of the device.
        error: DeviceError,
    },
    /// A flush failed: data that was not durable before may be lost.
    #[error("flush failed: {0}")]
    Flush(DeviceError),
    /// The unit is driven by another queue pair, or has left.
    #[error("unit {unit} does not belong to this shard")]
    NotOurs {
        /// The unit.
        unit: UnitId,
    },
    /// The unit cannot leave.
    #[error("unit {unit} is in use: {reason}")]
    InUse {
        /// The unit.
        unit: UnitId,
        /// Why it is in use.
        reason: String,
    },
    /// The FTL does not support the geometry of the device.
    #[error("unsupported geometry: {reason}")]
    Unsupported {
        /// The unsupported property.
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
    /// The table of sets is an older one, as of a copy that was put back.
    #[error(
        "unit {unit}: the table of sets is older than the flash: it has epoch {epoch}, and a \
         superblock was opened at epoch {found}; put the newest table back"
    )]
    OlderTable {
        /// The unit.
        unit: UnitId,
        /// The epoch of the superblock.
        found: u32,
        /// The epoch of the table.
        epoch: u32,
    },
    /// The metadata on the flash is inconsistent.
    #[error("unit {unit}: {reason}")]
    Damaged {
        /// The unit.
        unit: UnitId,
        /// The inconsistency.
        reason: String,
    },
}
