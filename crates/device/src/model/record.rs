//! A block's record to bytes and back, as drawn in the module above.

use super::medium::new_block;
use softflash_base::checksum64;
use softflash_nand::{BlockIndex, BlockRecord, Health, PageDamage};

const HEADER_BYTES: usize = 32;
const NEEDS_ERASE: u32 = u32::MAX;

/// Room for the record of a block with that many pages.
pub(super) fn record_bytes(pages_per_block: u32) -> usize {
    (HEADER_BYTES + pages_per_block as usize).next_multiple_of(64)
}

/// The bytes of a record, as long as `bytes`, which holds them afterwards.
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
    bytes[24..32].copy_from_slice(&record.age_s.to_le_bytes());
    for (page, damage) in &record.damaged {
        bytes[HEADER_BYTES + *page as usize] = match damage {
            PageDamage::Hollow => 1,
            PageDamage::Torn => 2,
        };
    }
    let sum = checksum64(u64::from(block.0), &bytes[8..]);
    bytes[..8].copy_from_slice(&sum.to_le_bytes());
}

/// Reads a record. One that fails its checksum says that nothing is known of the block but that it
/// must be erased.
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
    let damage = |(page, code): (usize, &u8)| match code {
        1 => Some((page as u32, PageDamage::Hollow)),
        2 => Some((page as u32, PageDamage::Torn)),
        _ => None,
    };
    Some(BlockRecord {
        write_pointer: (pointer != NEEDS_ERASE).then_some(pointer),
        erase_count: u32_at(bytes, 12),
        reads: u32_at(bytes, 16),
        age_s: u64_at(bytes, 24),
        health: match bytes[20] {
            0 => Health::Good,
            1 => Health::FactoryBad,
            _ => Health::GrownBad,
        },
        damaged: bytes[HEADER_BYTES..].iter().enumerate().filter_map(damage).collect(),
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
