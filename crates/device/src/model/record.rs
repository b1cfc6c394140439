//! Encoding and decoding of a block's record; the parent module has the format.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]

use super::medium::new_block;
use softflash_base::checksum64;
use softflash_nand::faults::{UNSTABLE_MS_MAX, UNSTABLE_READS_MAX};
use softflash_nand::{BlockIndex, BlockRecord, Health, PageDamage};

const HEADER_BYTES: usize = 32;
const NEEDS_ERASE: u32 = u32::MAX;
/// Flag in the byte of a block's health: its last erase was interrupted.
const WEAK: u8 = 128;
/// Codes of unstable pages: `UNSTABLE` plus the reads that are left, or `EVER` for no limit.
const UNSTABLE: u8 = 4;
const EVER: u8 = u8::MAX;

/// The size in bytes of the record of a block with that many pages.
pub(super) fn record_bytes(pages_per_block: u32) -> usize {
    (HEADER_BYTES + pages_per_block as usize).next_multiple_of(64)
}

/// Encodes a record into `bytes`, which has the size of a record.
pub(super) fn encode(block: BlockIndex, record: &BlockRecord, bytes: &mut [u8]) {
    bytes.fill(0);
    let pointer = record.write_pointer.unwrap_or(NEEDS_ERASE);
    bytes[8..12].copy_from_slice(&pointer.to_le_bytes());
    bytes[12..16].copy_from_slice(&record.erase_count.to_le_bytes());
    bytes[16..20].copy_from_slice(&record.reads.to_le_bytes());
    bytes[20] = match record.health {
        Health::Good => 0,
        Health::FactoryBad => 1,
        Health::GrownBad => 2,
    };
    if record.weak {
        bytes[20] |= WEAK;
    }
    bytes[24..32].copy_from_slice(&record.age_s.to_le_bytes());
    let mut soonest_ms = None;
    for (page, damage) in &record.damaged {
        bytes[HEADER_BYTES + *page as usize] = match *damage {
            PageDamage::Hollow => 1,
            PageDamage::Torn => 2,
            PageDamage::Stray => 3,
            PageDamage::Unstable { reads_left, ms_left } => {
                soonest_ms = soonest_ms.into_iter().chain(ms_left).min();
                reads_left.map_or(EVER, |left| UNSTABLE + left.min(UNSTABLE_READS_MAX))
            }
        };
    }
    let stated = soonest_ms.map_or(0, |ms: u32| ms.min(UNSTABLE_MS_MAX) + 1);
    bytes[21..24].copy_from_slice(&stated.to_le_bytes()[..3]);
    let sum = checksum64(u64::from(block.0), &bytes[8..]);
    bytes[..8].copy_from_slice(&sum.to_le_bytes());
}

/// Decodes a record. If its checksum is wrong, the state of the block is unknown, and it must be
/// erased.
pub(super) fn decode(block: BlockIndex, bytes: &[u8]) -> BlockRecord {
    if bytes.iter().all(|byte| *byte == 0) {
        return new_block();
    }
    match whole(block, bytes) {
        Some(record) => record,
        None => {
            tracing::warn!(block = block.0, "record damaged; the block's pages are lost");
            BlockRecord::default()
        }
    }
}

fn whole(block: BlockIndex, bytes: &[u8]) -> Option<BlockRecord> {
    if bytes.len() < HEADER_BYTES || u64_at(bytes, 0) != checksum64(u64::from(block.0), &bytes[8..])
    {
        return None;
    }
    let pointer = u32_at(bytes, 8);
    let ms_left = (u32_at(bytes, 21) & 0x00ff_ffff).checked_sub(1);
    let damage = |(page, code): (u32, &u8)| {
        let damage = match *code {
            1 => PageDamage::Hollow,
            2 => PageDamage::Torn,
            3 => PageDamage::Stray,
            EVER => PageDamage::Unstable { reads_left: None, ms_left },
            UNSTABLE.. => PageDamage::Unstable { reads_left: Some(code - UNSTABLE), ms_left },
            _ => return None,
        };
        Some((page, damage))
    };
    Some(BlockRecord {
        write_pointer: (pointer != NEEDS_ERASE).then_some(pointer),
        erase_count: u32_at(bytes, 12),
        reads: u32_at(bytes, 16),
        age_s: u64_at(bytes, 24),
        health: match bytes[20] & !WEAK {
            0 => Health::Good,
            1 => Health::FactoryBad,
            _ => Health::GrownBad,
        },
        weak: bytes[20] & WEAK != 0,
        damaged: (0..).zip(&bytes[HEADER_BYTES..]).filter_map(damage).collect(),
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Decodes any bytes as a record. A decoded record must encode to an equal one.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz(data: &[u8]) {
    let block = BlockIndex(7);
    let mut bytes = data.to_vec();
    let pages = u32::try_from(data.len().saturating_sub(HEADER_BYTES)).unwrap_or(u32::MAX);
    bytes.resize(record_bytes(pages), 0);
    let sum = checksum64(u64::from(block.0), &bytes[8..]);
    bytes[..8].copy_from_slice(&sum.to_le_bytes());
    let record = decode(block, &bytes);
    encode(block, &record, &mut bytes);
    // A record has one decay time, the soonest, for all unstable pages of the block.
    let soonest = decode(block, &bytes);
    encode(block, &soonest, &mut bytes);
    assert_eq!(decode(block, &bytes), soonest);
    assert_eq!(
        BlockRecord { damaged: Vec::new(), ..soonest },
        BlockRecord { damaged: Vec::new(), ..record }
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: BlockIndex = BlockIndex(7);

    fn round_trip(record: &BlockRecord) -> BlockRecord {
        let mut bytes = vec![0xee; record_bytes(300)];
        encode(BLOCK, record, &mut bytes);
        assert_eq!(decode(BlockIndex(8), &bytes).write_pointer, None, "of another block");
        decode(BLOCK, &bytes)
    }

    #[test]
    fn records_come_back_with_every_kind_of_damage() {
        let unstable = |reads_left| PageDamage::Unstable { reads_left, ms_left: Some(90_000) };
        let record = BlockRecord {
            write_pointer: Some(299),
            erase_count: 5,
            reads: 6,
            age_s: 7,
            health: Health::GrownBad,
            weak: true,
            damaged: vec![
                (0, PageDamage::Hollow),
                (1, PageDamage::Torn),
                (2, unstable(Some(0))),
                (3, unstable(Some(250))),
                (298, unstable(None)),
                (299, PageDamage::Stray),
            ],
        };
        assert_eq!(round_trip(&record), record);
        let patient = PageDamage::Unstable { reads_left: Some(1), ms_left: None };
        let calm = BlockRecord { weak: false, damaged: vec![(9, patient)], ..record };
        assert_eq!(round_trip(&calm), calm);
    }

    #[test]
    fn unstable_pages_of_a_block_last_as_long_as_the_soonest() {
        let page = |ms_left| PageDamage::Unstable { reads_left: None, ms_left };
        let damaged = vec![(1, page(Some(50))), (2, page(None)), (3, page(Some(20)))];
        let record = BlockRecord { write_pointer: Some(9), damaged, ..BlockRecord::default() };
        let soonest = [1, 2, 3].map(|number| (number, page(Some(20))));
        assert_eq!(round_trip(&record).damaged, soonest);
    }
}
