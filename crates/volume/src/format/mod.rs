//! The bytes of a mapped domain on the flash: bytes in, bytes out. `docs/formats-volume.md` draws
//! them.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]

pub(crate) mod bytes;
pub(crate) mod entry;
pub(crate) mod frame;
pub(crate) mod leaf;
pub(crate) mod operation;
pub(crate) mod pair;
pub(crate) mod pair_state;
pub(crate) mod record;
pub(crate) mod root;
pub(crate) mod settings;
pub(crate) mod tag;

/// Bytes of a mapping unit: the piece of a volume that is mapped, written and checked as a whole.
pub const MAPPING_UNIT_BYTES: usize = 4096;
