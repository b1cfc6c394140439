//! The formats on flash, byte by byte: records, patches, values and the log. The code here encodes
//! and decodes bytes; it does no I/O and reads no clock. `docs/formats.md` draws every structure.
//!
//! Three rules hold for all structures:
//!
//! * **Identity.** A structure's checksum is seeded with the identity of its block, which is never
//!   reused, its kind and its offset. Intact bytes at a wrong place, or from an earlier generation
//!   of the superblock, fail like damaged bytes.
//! * **End to end.** A record carries a checksum of its own from the moment it is sealed.
//!   Compaction copies it, never recomputes it, and every read from flash verifies it.
//! * **Distrust.** Decoders accept any bytes: they return an error instead of a panic, and allocate
//!   no more than a small multiple of their input, or the length that a verified checksum covers.

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
pub mod reference;
pub mod separated;
pub mod value;
pub mod version;

pub use error::FormatError;
pub use version::Version;

#[cfg(test)]
pub(crate) mod testing;

/// The kind of structure that a checksum covers, so that no kind passes for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Domain {
    /// A record, in the log or in a patch.
    Record = 1,
    /// The fixed header of a patch.
    PatchHeader = 2,
    /// The rest of a patch's metadata.
    PatchMetadata = 3,
    /// A block of a patch.
    PatchBlock = 4,
    /// The header of a value in a value block.
    ValueHeader = 5,
    /// A key and its value in a value block.
    Value = 6,
}

/// The seed of the checksum of a structure of this kind at `offset` under `identity`.
pub(crate) fn seed(identity: u64, domain: Domain, offset: u64) -> u64 {
    softflash_base::checksum::identity(&[identity, domain as u64, offset])
}
