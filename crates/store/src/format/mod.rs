//! What is written to flash, byte by byte: records, patches and the log. Bytes in, bytes out:
//! nothing here waits, reads a clock or knows a device. `docs/formats.md` draws every structure.
//!
//! Three rules hold for all of it:
//!
//! * **Identity.** A structure's checksum is seeded with the identity of the block it lies in,
//!   which is never used again, the kind of structure and its offset. Bytes that are whole but
//!   misplaced, or that are left from an earlier life of the superblock, fail like damaged ones.
//! * **End to end.** A record carries a checksum of its own from the moment it is sealed. It is
//!   copied from patch to compacted patch, never computed anew, and verified whenever the record is
//!   read from flash.
//! * **Distrust.** Decoders take any bytes: they return an error instead of a panic, and allocate
//!   no more than a small multiple of what they were given, or what a verified checksum vouches
//!   for.

#![cfg_attr(
    not(test),
    deny(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_lossless
    )
)]

pub mod codec;
pub mod error;
pub mod log;
pub mod patch;
pub mod record;
pub mod version;

pub use error::FormatError;
pub use version::Version;

#[cfg(test)]
pub(crate) mod testing;

/// What kind of structure a checksum stands for, so that one kind never passes for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Domain {
    /// A record, wherever it lies.
    Record = 1,
    /// The fixed header of a patch.
    PatchHeader = 2,
    /// The rest of a patch's metadata.
    PatchMetadata = 3,
    /// A block of a patch.
    PatchBlock = 4,
}

/// The seed of the checksum of a structure of this kind at `offset` under `identity`.
pub(crate) fn seed(identity: u64, domain: Domain, offset: u64) -> u64 {
    softflash_base::checksum::identity(&[identity, domain as u64, offset])
}
