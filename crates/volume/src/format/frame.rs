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
use super::record::Record;
use softflash_base::{cast, checksum};

const MAGIC: [u8; 8] = *b"SFVFRAME";
const VERSION: u16 = 2;
/// The version without numbers of changes and without records of other frames.
const FIRST_VERSION: u16 = 1;
/// Magic, version, entries, pages, sequence, durable below, checksum, change, proven below, bytes
/// of records, generation.
const FIXED_BYTES: usize = 64;
const CHECKSUM_AT: usize = 32;
const GENERATION_AT: usize = 58;
/// Bytes of the generation, which has the lower ones only.
const GENERATION_BYTES: usize = 6;

/// Entries that a head has room for.
const ROOM_FOR_ENTRIES: usize = (MAPPING_UNIT_BYTES - FIXED_BYTES) / ENTRY_BYTES;

/// The most entries of a new frame: beside them is room for the record of another such frame.
pub(crate) const MOST_ENTRIES: usize = 120;

/// The head of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Head {
    /// The number of the frame in its domain: later frames have greater ones.
    pub sequence: u64,
    /// All frames with lower numbers were durable when this one was written.
    pub durable_below: u64,
    /// Pages of the frame, its head included.
    pub pages: u32,
    /// The number of the frame among those that change the map by themselves; 0 for the others,
    /// and in version 1.
    pub change: u64,
    /// All changes with lower numbers were durable when this frame was written, and the loss of any
    /// of their units leaves a record of them.
    pub proven_below: u64,
    pub entries: Vec<Entry>,
    /// Records of other frames.
    pub records: Vec<Record>,
}

/// Bytes for records in the head of a frame of so many entries.
pub(crate) fn room_for_records(entries: usize) -> usize {
    MAPPING_UNIT_BYTES.saturating_sub(FIXED_BYTES + entries * ENTRY_BYTES)
}

/// The position of a frame, which seeds the checksum of its head: a head is valid nowhere else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    pub device_uuid: u128,
    pub unit: u16,
    pub index: u32,
    pub generation: u64,
    /// The domain, where its superblocks are bound to it.
    pub domain: Option<u16>,
    pub page: u32,
}

impl Position {
    fn seed(self) -> u64 {
        let (low, high) = (self.device_uuid & u128::from(u64::MAX), self.device_uuid >> 64);
        let half = |part: u128| u64::try_from(part).unwrap_or(u64::MAX);
        let place = checksum::identity(&[
            half(low),
            half(high),
            u64::from(self.unit) << 32 | u64::from(self.index),
            self.generation,
            u64::from(self.page),
        ]);
        match self.domain {
            None => place,
            Some(domain) => checksum::identity(&[place, domain.into()]),
        }
    }
}

/// Encodes a head into the first mapping unit of a frame.
///
/// # Panics
/// If `into` is no mapping unit, or has no room for the entries and records.
pub(crate) fn encode(head: &Head, position: Position, into: &mut [u8]) {
    let mut records = Vec::new();
    head.records.iter().for_each(|record| record.encode(&mut records));
    assert!(head.entries.len() <= ROOM_FOR_ENTRIES, "{} entries in a frame", head.entries.len());
    assert!(records.len() <= room_for_records(head.entries.len()), "too many records in a head");
    let (fixed, entries) = into.split_at_mut(FIXED_BYTES);
    fixed.fill(0);
    fixed[..8].copy_from_slice(&MAGIC);
    fixed[8..10].copy_from_slice(&VERSION.to_le_bytes());
    fixed[10..12].copy_from_slice(&cast::saturating_u16(head.entries.len()).to_le_bytes());
    fixed[12..16].copy_from_slice(&head.pages.to_le_bytes());
    fixed[16..24].copy_from_slice(&head.sequence.to_le_bytes());
    fixed[24..32].copy_from_slice(&head.durable_below.to_le_bytes());
    fixed[40..48].copy_from_slice(&head.change.to_le_bytes());
    fixed[48..56].copy_from_slice(&head.proven_below.to_le_bytes());
    fixed[56..58].copy_from_slice(&cast::saturating_u16(records.len()).to_le_bytes());
    let [generation @ .., _, _] = position.generation.to_le_bytes();
    fixed[GENERATION_AT..GENERATION_AT + GENERATION_BYTES].copy_from_slice(&generation);
    let (used, unused) = entries.split_at_mut(head.entries.len() * ENTRY_BYTES);
    for (bytes, entry) in used.chunks_exact_mut(ENTRY_BYTES).zip(&head.entries) {
        bytes.copy_from_slice(&entry.encode());
    }
    let (described, unused) = unused.split_at_mut(records.len());
    described.copy_from_slice(&records);
    unused.fill(0);
    let sum = checksum::checksum64(position.seed(), into);
    into[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&sum.to_le_bytes());
}

/// The generation of the superblock, as a head says itself; `None` for heads of older programs, and
/// for what is no head. Only with the right one is the head [decoded](decode).
pub(crate) fn stated_generation(unit: &[u8]) -> Option<u64> {
    if unit.get(..8)? != MAGIC {
        return None;
    }
    let mut bytes = [0; 8];
    let stated = unit.get(GENERATION_AT..GENERATION_AT + GENERATION_BYTES)?;
    bytes[..GENERATION_BYTES].copy_from_slice(stated);
    Some(u64::from_le_bytes(bytes)).filter(|&generation| generation > 0)
}

/// Decodes the head in a mapping unit; `None` if it is none, torn, or of another position.
pub(crate) fn decode(unit: &[u8], position: Position) -> Option<Head> {
    if unit.len() != MAPPING_UNIT_BYTES || unit.get(..8)? != MAGIC {
        return None;
    }
    let mut unsummed = unit.to_vec();
    let stored = unsummed.get_mut(CHECKSUM_AT..CHECKSUM_AT + 8)?;
    let sum = u64::from_le_bytes((&*stored).try_into().ok()?);
    stored.fill(0);
    if sum != checksum::checksum64(position.seed(), &unsummed) {
        return None;
    }
    let mut reader = Reader(unit.get(8..)?);
    let (version, count) = (reader.u16()?, reader.u16()?);
    let (pages, sequence, durable_below) = (reader.u32()?, reader.u64()?, reader.u64()?);
    if !(FIRST_VERSION..=VERSION).contains(&version) || usize::from(count) > ROOM_FOR_ENTRIES {
        return None;
    }
    reader.take(8)?;
    let (change, proven_below, bytes) = (reader.u64()?, reader.u64()?, reader.u16()?);
    let (used, rest) = unit.get(FIXED_BYTES..)?.split_at(usize::from(count) * ENTRY_BYTES);
    let mut entries = Vec::with_capacity(count.into());
    for entry in used.chunks_exact(ENTRY_BYTES) {
        entries.push(Entry::decode(entry)?);
    }
    let records = Record::decode_all(rest.get(..bytes.into())?)?;
    Some(Head { sequence, durable_below, pages, change, proven_below, entries, records })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record::Contents;
    use crate::image::ImageId;

    fn position(page: u32) -> Position {
        Position { device_uuid: 7 << 90 | 3, unit: 1, index: 2, generation: 9, domain: None, page }
    }

    fn head(entries: usize) -> Head {
        let entry = |number: usize| Entry::Data {
            image: ImageId(1),
            lba: cast::saturating_u32(number),
            checksum: 3,
        };
        let entries: Vec<Entry> = (0..entries).map(entry).collect();
        let (change, proven_below) = (1 << 49, 1 << 48);
        let records = vec![];
        let (sequence, durable_below, pages) = (1 << 50, 77, 33);
        Head { sequence, durable_below, pages, change, proven_below, entries, records }
    }

    /// A record of a frame of `MOST_ENTRIES` entries that do not follow each other.
    fn longest_record() -> Record {
        let entries: Vec<Entry> = (0..MOST_ENTRIES)
            .map(|at| Entry::Data {
                image: ImageId(1),
                lba: 2 * cast::saturating_u32(at),
                checksum: 1,
            })
            .collect();
        let contents = Contents::of(&entries, &[]).unwrap();
        Record { change: 1, sequence: 2, unit: 3, contents }
    }

    #[test]
    fn heads_decode_to_what_was_encoded() {
        assert_eq!(ROOM_FOR_ENTRIES, 168);
        for entries in [0, 1, MOST_ENTRIES, ROOM_FOR_ENTRIES] {
            let mut unit = vec![0xee; MAPPING_UNIT_BYTES];
            encode(&head(entries), position(4), &mut unit);
            assert_eq!(decode(&unit, position(4)), Some(head(entries)));
        }
    }

    #[test]
    fn the_longest_head_has_room_for_the_record_of_another() {
        let mut unit = vec![0xee; MAPPING_UNIT_BYTES];
        let head = Head { records: vec![longest_record()], ..head(MOST_ENTRIES) };
        encode(&head, position(4), &mut unit);
        assert_eq!(decode(&unit, position(4)), Some(head));
    }

    #[test]
    fn heads_of_version_1_have_no_changes_and_more_entries() {
        let older = Head { change: 0, proven_below: 0, ..head(ROOM_FOR_ENTRIES) };
        let mut unit = vec![0; MAPPING_UNIT_BYTES];
        encode(&older, position(4), &mut unit);
        for (version, is_known) in [(1, true), (3, false)] {
            unit[8] = version;
            unit[CHECKSUM_AT..CHECKSUM_AT + 8].fill(0);
            let sum = checksum::checksum64(position(4).seed(), &unit);
            unit[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&sum.to_le_bytes());
            let expected = is_known.then(|| older.clone());
            assert_eq!(decode(&unit, position(4)), expected, "version {version}");
        }
    }

    #[test]
    fn a_head_is_valid_at_its_own_position_only() {
        let mut unit = vec![0; MAPPING_UNIT_BYTES];
        encode(&head(3), position(4), &mut unit);
        assert_eq!(decode(&unit, position(5)), None);
        assert_eq!(decode(&unit, Position { generation: 10, ..position(4) }), None);
        assert_eq!(decode(&unit, Position { device_uuid: 3, ..position(4) }), None);
        assert_eq!(decode(&unit, Position { domain: Some(1), ..position(4) }), None);
    }

    #[test]
    fn a_head_states_the_generation_that_its_checksum_needs() {
        for generation in [1, 9, (1 << 48) - 1] {
            let mut unit = vec![0; MAPPING_UNIT_BYTES];
            let position = Position { generation, ..position(4) };
            encode(&head(3), position, &mut unit);
            assert_eq!(stated_generation(&unit), Some(generation));
            assert_eq!(decode(&unit, position), Some(head(3)));
            unit[GENERATION_AT..FIXED_BYTES].fill(0);
            assert_eq!(stated_generation(&unit), None, "a head of an older program");
        }
        assert_eq!(stated_generation(&[0; MAPPING_UNIT_BYTES]), None);
        assert_eq!(stated_generation(b"SFVFRAME"), None);
    }

    #[test]
    fn every_flipped_byte_is_detected() {
        let mut unit = vec![0; MAPPING_UNIT_BYTES];
        let head = Head { records: vec![longest_record()], ..head(MOST_ENTRIES) };
        encode(&head, position(4), &mut unit);
        for at in 0..unit.len() {
            unit[at] ^= 0x41;
            assert_eq!(decode(&unit, position(4)), None, "byte {at}");
            unit[at] ^= 0x41;
        }
    }
}
