//! A leaf of the map: the slots of 1024 neighbouring mapping units of an image, with 32 bits of
//! the checksum of each. A leaf takes two mapping units, its halves.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use super::MAPPING_UNIT_BYTES;
use super::bytes::Reader;

/// Mapping units of a leaf.
pub(crate) const LEAF_UNITS: u32 = 1024;
/// Mapping units that a leaf takes on the flash.
pub(crate) const HALVES: u32 = 2;
/// Entries of a half.
pub(crate) const HALF_ENTRIES: u32 = LEAF_UNITS / HALVES;

/// Encodes half of a leaf, whose entries `entry` returns as slot and checksum.
pub(crate) fn encode(half: u32, entry: impl Fn(u32) -> (u32, u32)) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MAPPING_UNIT_BYTES);
    for index in half * HALF_ENTRIES..(half + 1) * HALF_ENTRIES {
        let (slot, checksum) = entry(index);
        bytes.extend_from_slice(&slot.to_le_bytes());
        bytes.extend_from_slice(&checksum.to_le_bytes());
    }
    bytes
}

/// Calls `found` with index, slot and checksum of every entry of a half.
pub(crate) fn decode(half: u32, bytes: &[u8], mut found: impl FnMut(u32, u32, u32)) {
    let mut reader = Reader(bytes);
    for index in half * HALF_ENTRIES..(half + 1) * HALF_ENTRIES {
        let (Some(slot), Some(checksum)) = (reader.u32(), reader.u32()) else { return };
        found(index, slot, checksum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_decode_to_what_was_encoded() {
        let mut entries = Vec::new();
        for half in 0..HALVES {
            let bytes = encode(half, |index| (index * 3, !index));
            assert_eq!(bytes.len(), MAPPING_UNIT_BYTES);
            decode(half, &bytes, |index, slot, checksum| entries.push((index, slot, checksum)));
        }
        let expected: Vec<_> = (0..LEAF_UNITS).map(|index| (index, index * 3, !index)).collect();
        assert_eq!(entries, expected);
    }
}
