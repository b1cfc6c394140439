//! The device label, which makes a file or block device a SoftFlash device.
//!
//! The file starts with two copies of the label, so that one torn or damaged copy does no harm.
//! Data begins after the label area.
//!
//! ```text
//! byte 0          copy A ┐
//! byte 512 KiB    copy B ┴ label area, 1 MiB
//! byte 1 MiB      the backend's data
//!
//! one copy (integers little-endian):
//!   0   8  magic, the bytes "SFLABEL" and 0x1A
//!   8   4  format version, now 1
//!  12   4  length C of the configuration in bytes
//!  16   8  sequence: rises by one with every rewrite; the greater one is the newer copy
//!  24   4  number N of bad blocks
//!  28   4  zero
//!  32   8  XXH3-64 of bytes 0..32 followed by the configuration and the bad-block table,
//!          seeded with the magic
//!  40   C  configuration: TOML in UTF-8 (backend, uuid, units, geometry, backend's own table)
//!  40+C 8N bad-block table in ascending order; an entry is unit u16, die u8, plane u8, block u32
//! ```
//!
//! Magic, version, lengths and checksum keep their places in every later version, so that an older
//! program can distinguish a newer label from a damaged one. The copies are rewritten one after the
//! other, each durable before the next begins: at least one is intact at any time.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]

mod codec;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod locked_file;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use locked_file::LockedFile;
pub(crate) use store::{LabelStore, open_exclusive, open_label, read_label};

use crate::geometry::UnitGeometry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The newest format version that this program reads, and the one that it writes.
pub const FORMAT_VERSION: u32 = 1;

/// The offset of the backend's data.
pub(crate) const LABEL_AREA_BYTES: u64 = 1 << 20;

/// The bytes reserved for one copy.
pub(crate) const COPY_BYTES: usize = 512 << 10;

/// Both copies' offsets.
pub(crate) const COPY_OFFSETS: [u64; 2] = [0, COPY_BYTES as u64];

/// A block that must not be used, as an entry of the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BadBlock {
    pub(crate) unit: u16,
    pub(crate) die: u8,
    pub(crate) plane: u8,
    pub(crate) block: u32,
}

/// The configuration part of the label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Configuration {
    /// `file` or `model`.
    pub(crate) backend: String,
    /// 32 hexadecimal digits, as TOML has no integers of 128 bits.
    #[serde(with = "uuid_hex")]
    pub(crate) uuid: u128,
    pub(crate) units: u16,
    pub(crate) geometry: UnitGeometry,
    /// The backend's own options.
    #[serde(default)]
    pub(crate) options: toml::Table,
}

/// A whole label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Label {
    pub(crate) sequence: u64,
    pub(crate) configuration: Configuration,
    pub(crate) bad_blocks: BTreeSet<BadBlock>,
}

impl Label {
    /// The first label of a new device.
    pub(crate) fn new(configuration: Configuration) -> Label {
        Label { sequence: 1, configuration, bad_blocks: BTreeSet::new() }
    }
}

mod uuid_hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(uuid: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{uuid:032x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<u128, D::Error> {
        let digits = String::deserialize(input)?;
        u128::from_str_radix(&digits, 16)
            .map_err(|_| D::Error::custom(format!("uuid `{digits}` is not hexadecimal")))
    }
}
