//! A frame: a head, and the mapping units that its entries name, in their order. The head is the
//! frame's first mapping unit.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use super::MAPPING_UNIT_BYTES;
use super::bytes::Reader;
use super::entry::{ENTRY_BYTES, Entry};
use softflash_base::{cast, checksum};

const MAGIC: [u8; 8] = *b"SFVFRAME";
const VERSION: u16 = 1;
/// Magic, version, entries, pages, sequence, durable below, checksum, reserved.
const FIXED_BYTES: usize = 64;
const CHECKSUM_AT: usize = 32;

/// The most entries of a frame.
pub(crate) const MOST_ENTRIES: usize = (MAPPING_UNIT_BYTES - FIXED_BYTES) / ENTRY_BYTES;

/// The head of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The number of the frame in its domain: later frames have greater ones.
    pub sequence: u64,
    /// All frames with lower numbers were durable when this one was written.
    pub durable_below: u64,
    /// Pages of the frame, its head included.
    pub pages: u32,
    pub entries: Vec<Entry>,
}

/// The position of a frame, which seeds the checksum of its head: a head is valid nowhere else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    pub device_uuid: u128,
    pub unit: u16,
    pub index: u32,
    pub generation: u64,
    pub page: u32,
}

impl Position {
    fn seed(self) -> u64 {
        let (low, high) = (self.device_uuid & u128::from(u64::MAX), self.device_uuid >> 64);
        let half = |part: u128| u64::try_from(part).unwrap_or(u64::MAX);
        checksum::identity(&[
            half(low),
            half(high),
            u64::from(self.unit) << 32 | u64::from(self.index),
            self.generation,
            u64::from(self.page),
        ])
    }
}

/// Encodes a head into the first mapping unit of a frame.
///
/// # Panics
/// If `into` is no mapping unit, or there are more entries than [`MOST_ENTRIES`].
pub(crate) fn encode(head: &Head, position: Position, into: &mut [u8]) {
    assert!(head.entries.len() <= MOST_ENTRIES, "{} entries in a frame", head.entries.len());
    let (fixed, entries) = into.split_at_mut(FIXED_BYTES);
    fixed.fill(0);
    fixed[..8].copy_from_slice(&MAGIC);
    fixed[8..10].copy_from_slice(&VERSION.to_le_bytes());
    fixed[10..12].copy_from_slice(&cast::saturating_u16(head.entries.len()).to_le_bytes());
    fixed[12..16].copy_from_slice(&head.pages.to_le_bytes());
    fixed[16..24].copy_from_slice(&head.sequence.to_le_bytes());
    fixed[24..32].copy_from_slice(&head.durable_below.to_le_bytes());
    let (used, unused) = entries.split_at_mut(head.entries.len() * ENTRY_BYTES);
    for (place, entry) in used.chunks_exact_mut(ENTRY_BYTES).zip(&head.entries) {
        place.copy_from_slice(&entry.encode());
    }
    unused.fill(0);
    let sum = checksum::checksum64(position.seed(), into);
    into[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Decodes the head in a mapping unit; `None` if it is none, torn, or of another position.
pub(crate) fn decode(unit: &[u8], position: Position) -> Option<Head> {
    if unit.len() != MAPPING_UNIT_BYTES || unit.get(..8)? != MAGIC {
        return None;
    }
    let mut unsummed = unit.to_vec();
    let place = unsummed.get_mut(CHECKSUM_AT..CHECKSUM_AT + 8)?;
    let sum = u64::from_le_bytes((&*place).try_into().ok()?);
    place.fill(0);
    if sum != checksum::checksum64(position.seed(), &unsummed) {
        return None;
    }
    let mut reader = Reader(unit.get(8..)?);
    let (version, count) = (reader.u16()?, reader.u16()?);
    let (pages, sequence, durable_below) = (reader.u32()?, reader.u64()?, reader.u64()?);
    if version != VERSION || usize::from(count) > MOST_ENTRIES {
        return None;
    }
    let mut entries = Vec::with_capacity(count.into());
    for entry in unit.get(FIXED_BYTES..)?.chunks_exact(ENTRY_BYTES).take(count.into()) {
        entries.push(Entry::decode(entry)?);
    }
    Some(Head { sequence, durable_below, pages, entries })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::ImageId;

    fn position(page: u32) -> Position {
        Position { device_uuid: 7 << 90 | 3, unit: 1, index: 2, generation: 9, page }
    }

    fn head(entries: usize) -> Head {
        let entry = |number: usize| Entry::Data {
            image: ImageId(1),
            lba: cast::saturating_u32(number),
            checksum: 3,
        };
        let entries: Vec<Entry> = (0..entries).map(entry).collect();
        Head { sequence: 1 << 50, durable_below: 77, pages: 33, entries }
    }

    #[test]
    fn heads_decode_to_what_was_encoded() {
        assert_eq!(MOST_ENTRIES, 168);
        for entries in [0, 1, MOST_ENTRIES] {
            let mut unit = vec![0xee; MAPPING_UNIT_BYTES];
            encode(&head(entries), position(4), &mut unit);
            assert_eq!(decode(&unit, position(4)), Some(head(entries)));
        }
    }

    #[test]
    fn a_head_is_valid_at_its_own_position_only() {
        let mut unit = vec![0; MAPPING_UNIT_BYTES];
        encode(&head(3), position(4), &mut unit);
        assert_eq!(decode(&unit, position(5)), None);
        assert_eq!(decode(&unit, Position { generation: 10, ..position(4) }), None);
        assert_eq!(decode(&unit, Position { device_uuid: 3, ..position(4) }), None);
    }

    #[test]
    fn every_flipped_byte_is_detected() {
        let mut unit = vec![0; MAPPING_UNIT_BYTES];
        encode(&head(MOST_ENTRIES), position(4), &mut unit);
        for at in 0..unit.len() {
            unit[at] ^= 0x41;
            assert_eq!(decode(&unit, position(4)), None, "byte {at}");
            unit[at] ^= 0x41;
        }
    }
}
