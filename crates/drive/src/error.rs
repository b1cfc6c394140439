//! Errors of the construction of a drive, and of requests.

use softflash_nand::ConfigError;
use softflash_policy::LifetimePolicy;
use thiserror::Error;

/// An error, whose message names the problem and the remedy.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum DriveError {
    /// The flash.
    #[error(transparent)]
    Flash(#[from] ConfigError),
    /// Over-provisioning out of range.
    #[error("over-provisioning is {0} %; it must be 0 to 1000 (spare / logical)")]
    OverProvisioning(f64),
    /// Pages whose size is no power of two.
    #[error("pages of {0} bytes; a page-mapped layout needs a power of two, as 4096 or 16384")]
    PageSize(u32),
    /// A mapping unit that does not divide a page, or is too small.
    #[error(
        "mapping_unit = {unit}: pages of {page_bytes} bytes take a power of two from {least} to {page_bytes}, \
         or \"page\""
    )]
    MappingUnit {
        /// Bytes of the mapping unit.
        unit: u32,
        /// Bytes of a page.
        page_bytes: u32,
        /// The smallest mapping unit.
        least: u32,
    },
    /// Copyback of parts of pages.
    #[error(
        "copyback = true: a die moves whole pages inside, and parts of {page_bytes} bytes are mapped; use \
         mapping_unit = \"page\""
    )]
    PackedCopyback {
        /// Bytes of the mapping unit.
        page_bytes: u32,
    },
    /// Too little flash for a page-mapped layout.
    #[error(
        "this page-mapped layout needs at least {least} blocks in every plane; the device has {blocks}"
    )]
    TooFewBlocks {
        /// Blocks of a plane.
        blocks: u32,
        /// The fewest that the layout can use.
        least: u32,
    },
    /// Too many pages for the map.
    #[error("{pages} pages of flash; the map of a page-mapped layout holds {most}")]
    TooManyPages {
        /// Pages of the device.
        pages: u64,
        /// The most that the map holds.
        most: u64,
    },
    /// More pages in a block than the count of valid pages can hold.
    #[error(
        "{pages} pages are collected together; at most {most} can be: use write_frontier = \"plane\""
    )]
    LargeFrontier {
        /// Pages of a block, or of a block in all planes of a die.
        pages: u32,
        /// The most.
        most: u32,
    },
    /// A chip with one command at a time that cannot be modelled as one die.
    #[error(
        "die_interleaving = false: {problem}; use write_frontier = \"plane\" and at most 4 planes a chip, or \
         die_interleaving = true"
    )]
    Interleaving {
        /// What does not fit.
        problem: String,
    },
    /// An SLC cache with flash or a layout that it cannot work with.
    #[error("slc_cache: {problem}; {remedy}")]
    SlcCache {
        /// The obstacle.
        problem: String,
        /// What to change.
        remedy: String,
    },
    /// Bands with a layout that they cannot work with.
    #[error("bands: {problem}; {remedy}")]
    Bands {
        /// The obstacle.
        problem: String,
        /// What to change.
        remedy: String,
    },
    /// Classes of the host and predicted ones.
    #[error(
        "lifetime = \"{0}\": placement = \"by-hint\" takes the classes of the host; choose one of the two"
    )]
    TwoClasses(LifetimePolicy),
    /// A scrub of a length that is none.
    #[error("scrub_hours = {0}: between 0 (no scrub) and 1000000 hours")]
    ScrubHours(f64),
    /// A request beyond the end.
    #[error(
        "a request for bytes {offset_bytes} to {end_bytes} of a drive of {capacity_bytes} bytes; \
         wrap the requests onto the drive, or use a larger one"
    )]
    BeyondEnd {
        /// Offset of the request.
        offset_bytes: u64,
        /// End of the request.
        end_bytes: u64,
        /// Bytes of the drive.
        capacity_bytes: u64,
    },
    /// Extents that exceed the drive, or are no multiple of its pages.
    #[error(
        "{units} units of extents of {extent_bytes} bytes on a drive of {capacity_bytes} bytes with pages of \
         {page_bytes}; an extent must be a multiple of a page, and every unit needs one: choose fewer units or \
         other extents"
    )]
    Extents {
        /// Units wanted.
        units: u16,
        /// Bytes of an extent.
        extent_bytes: u64,
        /// Bytes of the drive.
        capacity_bytes: u64,
        /// Bytes of its pages.
        page_bytes: u32,
    },
    /// A request for 0 bytes.
    #[error("a request for 0 bytes at {offset_bytes}")]
    Empty {
        /// Where.
        offset_bytes: u64,
    },
}
