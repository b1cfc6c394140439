//! Blocks: consecutive records of a patch, read and verified together.

use super::compress;
use crate::format::codec::{Reader, put_at};
use crate::format::record::{MAX_FRAGMENT_BYTES, MIN_ENCODED_BYTES, Parsed, Record};
use crate::format::{Domain, FormatError, seed};
use crate::layout::Compression;
use crate::value::MAX_KEY_BYTES;
use bytes::Bytes;
use softflash_base::cast::{index, saturating_u32};
use softflash_base::checksum64;
use std::cmp::Ordering;

/// Bytes in front of a block's records.
pub const BLOCK_HEADER_BYTES: usize = 20;
/// The most bytes of records in a block: the largest possible record with its numbers.
pub(super) const MAX_RAW_BYTES: usize = MAX_FRAGMENT_BYTES + MAX_KEY_BYTES + 64;

const WHAT: &str = "a block of a patch";
const CHECKSUM_BYTES: usize = 8;

/// Writes the header of `block`, without the checksum. Both lengths fit 32 bits: a patch is
/// shorter.
pub(super) fn write_header(block: &mut [u8], raw_len: usize, records: u16, stored: Compression) {
    let stored_len = saturating_u32(block.len() - BLOCK_HEADER_BYTES);
    put_at(block, 8, &stored_len.to_le_bytes());
    put_at(block, 12, &saturating_u32(raw_len).to_le_bytes());
    put_at(block, 16, &records.to_le_bytes());
    put_at(block, 18, &[compress::code(stored), 0]);
}

/// Writes the checksum, which binds the block to its place.
pub(super) fn write_checksum(block: &mut [u8], identity: u64, offset: u32) {
    let sum = checksum(block, identity, offset);
    put_at(block, 0, &sum.to_le_bytes());
}

fn checksum(block: &[u8], identity: u64, offset: u32) -> u64 {
    let covered = block.get(CHECKSUM_BYTES..).unwrap_or_default();
    checksum64(seed(identity, Domain::PatchBlock, offset.into()), covered)
}

/// The length of the block at the start of `bytes`, if its header is plausible and `bytes` contain
/// all of it. Nothing is verified.
pub fn block_len(bytes: &[u8]) -> Option<usize> {
    let mut reader = Reader::starting_at(bytes, CHECKSUM_BYTES, WHAT);
    let (stored_len, raw_len) = (index(reader.u32().ok()?), index(reader.u32().ok()?));
    let (count, code, reserved) =
        (usize::from(reader.u16().ok()?), reader.u8().ok()?, reader.u8().ok()?);
    let plausible = stored_len <= raw_len && raw_len <= MAX_RAW_BYTES && reserved == 0;
    let filled = count > 0 && raw_len >= count * MIN_ENCODED_BYTES;
    let whole = stored_len <= reader.remaining();
    let len = BLOCK_HEADER_BYTES + stored_len;
    (plausible && filled && whole && compress::from_code(code).is_some()).then_some(len)
}

/// A block with a valid checksum and records in order.
#[derive(Debug, Clone)]
pub struct Block {
    records: Bytes,
    count: usize,
    /// The start of the last record.
    last: usize,
}

/// Verifies and decodes `bytes`, which are one whole block at `offset` of the data section.
///
/// # Errors
/// [`FormatError`] where the bytes are damaged, from another place, or from another generation of
/// the superblock.
pub fn decode_block(bytes: Bytes, identity: u64, offset: u32) -> Result<Block, FormatError> {
    let mut reader = Reader::new(&bytes, WHAT);
    let sum = reader.u64()?;
    let (stored_len, raw_len) = (index(reader.u32()?), index(reader.u32()?));
    let (count, code, reserved) = (usize::from(reader.u16()?), reader.u8()?, reader.u8()?);
    if sum != checksum(&bytes, identity, offset) {
        return Err(FormatError::Checksum { what: WHAT });
    }
    let malformed = |reason| FormatError::Malformed { what: WHAT, reason };
    if stored_len != reader.remaining() || reserved != 0 {
        return Err(malformed("its length is wrong"));
    }
    let compression =
        compress::from_code(code).ok_or_else(|| malformed("its compression is unknown"))?;
    if raw_len > MAX_RAW_BYTES || raw_len < count * MIN_ENCODED_BYTES {
        return Err(malformed("its records have an impossible length"));
    }
    let records = match compression {
        Compression::None if stored_len == raw_len => bytes.slice(BLOCK_HEADER_BYTES..),
        Compression::None => return Err(malformed("its length is wrong")),
        _ => {
            let mut raw = vec![0; raw_len];
            let stored = bytes.get(BLOCK_HEADER_BYTES..).unwrap_or_default();
            if !compress::decompress(compression, stored, &mut raw) {
                return Err(malformed("it cannot be decompressed"));
            }
            Bytes::from(raw)
        }
    };
    let last = check_records(&records, count)?;
    Ok(Block { records, count, last })
}

/// Checks the order and the number of the records; returns the start of the last one.
fn check_records(bytes: &[u8], count: usize) -> Result<usize, FormatError> {
    let malformed = |reason| FormatError::Malformed { what: WHAT, reason };
    let (mut at, mut last, mut found) = (0, 0, 0);
    let mut before: Option<Parsed> = None;
    while at < bytes.len() {
        let record = Parsed::at(bytes, at, 0)?;
        let fields = record.fields(bytes);
        if before.is_some_and(|before| before.fields(bytes).order(&fields) != Ordering::Less) {
            return Err(malformed("its records are not in order"));
        }
        (last, at) = (at, record.end());
        before = Some(record);
        found += 1;
    }
    if found != count || found == 0 {
        return Err(malformed("its count of records is wrong"));
    }
    Ok(last)
}

impl Block {
    /// Records inside; at least one.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Always false: a block holds at least one record.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Block>() + self.records.len()
    }

    /// The highest key inside.
    pub fn last_key(&self) -> &[u8] {
        match Parsed::at(&self.records, self.last, 0) {
            Ok(parsed) => parsed.fields(&self.records).key,
            Err(_) => &[],
        }
    }

    /// The newest record of `key` that is not newer than `max_seq`; of a value in fragments, the
    /// first fragment in the block.
    ///
    /// # Errors
    /// [`FormatError::Checksum`] where the record does not match its checksum.
    pub fn find(&self, key: &[u8], max_seq: u64) -> Result<Option<Record>, FormatError> {
        let mut records = self.seek(key, max_seq);
        match records.peek() {
            Some(parsed) if parsed.fields(&self.records).key == key => records.next().transpose(),
            _ => Ok(None),
        }
    }

    /// The records from version `max_seq` of `key` on, or from the first one behind it.
    pub fn seek(&self, key: &[u8], max_seq: u64) -> Records {
        let mut records = self.records();
        while let Some(parsed) = records.peek() {
            let fields = parsed.fields(&self.records);
            match fields.key.cmp(key) {
                Ordering::Less => {}
                Ordering::Equal if fields.seq > max_seq => {}
                _ => break,
            }
            records.at = parsed.end();
        }
        records
    }

    /// The records in order.
    pub fn records(&self) -> Records {
        Records { bytes: self.records.clone(), at: 0 }
    }

    /// The records in order.
    pub fn into_records(self) -> Records {
        Records { bytes: self.records, at: 0 }
    }
}

/// Records of a block, each verified against the checksum that it was sealed with.
#[derive(Debug, Clone)]
pub struct Records {
    bytes: Bytes,
    at: usize,
}

impl Records {
    fn peek(&self) -> Option<Parsed> {
        if self.at >= self.bytes.len() {
            return None;
        }
        // Decoding has parsed every record, so this cannot fail.
        Parsed::at(&self.bytes, self.at, 0).ok()
    }
}

impl Iterator for Records {
    type Item = Result<Record, FormatError>;

    fn next(&mut self) -> Option<Result<Record, FormatError>> {
        let parsed = self.peek()?;
        self.at = parsed.end();
        Some(parsed.record(&self.bytes))
    }
}
