//! The part of a patch that stays in memory.

use super::block::BLOCK_HEADER_BYTES;
use super::fence::Fences;
use super::filter::Filter;
use super::header::{HEADER_BYTES, PatchHeader};
use super::references::ReferenceTable;
use crate::format::FormatError;
use crate::format::codec::Reader;
use softflash_base::cast::{index, saturating_u32};
use softflash_base::planted::{self, Bug};
use std::ops::Range;

const WHAT: &str = "the metadata of a patch";

/// The index of a patch: enough to find any record with one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchIndex {
    pub(super) header: PatchHeader,
    pub(super) first_key: Box<[u8]>,
    pub(super) last_key: Box<[u8]>,
    pub(super) fences: Fences,
    /// Hashes of keys with a deletion, ascending.
    pub(super) deleted: Box<[u64]>,
    pub(super) filter: Option<Filter>,
    pub(super) references: ReferenceTable,
}

/// Decodes the metadata of a patch from its first bytes; `bytes` may continue behind the metadata.
///
/// # Errors
/// [`FormatError`] where it is damaged, misplaced, of another generation of the superblock, or of a
/// newer version.
pub fn decode_metadata(bytes: &[u8], identity: u64) -> Result<PatchIndex, FormatError> {
    let header = PatchHeader::decode(bytes, identity)?;
    let mut reader = Reader::new(bytes, WHAT);
    let whole = reader.take(index(header.metadata_len))?;
    let rest = whole.get(HEADER_BYTES..).unwrap_or_default();
    if PatchHeader::checksum_of(rest, identity) != header.metadata_checksum {
        return Err(FormatError::Checksum { what: WHAT });
    }
    let mut reader = Reader::new(rest, WHAT);
    let mut section = |len: u32| reader.take(index(len));
    let (first_key, last_key) = (section(header.first_key_len)?, section(header.last_key_len)?);
    let fences = section(header.fences_len)?;
    let deleted = section(header.tombstones_len)?;
    let filter = section(header.filter_len)?;
    let references = section(header.references_len)?;
    if first_key > last_key {
        return Err(reader.malformed("keys are not in order"));
    }
    // ORs all bytes, which vectorises; a search for the first nonzero byte does not, and a start
    // checks the padding of every patch.
    if reader.take(reader.remaining())?.iter().fold(0, |any, byte| any | byte) != 0 {
        return Err(reader.malformed("the padding is not zero"));
    }
    Ok(PatchIndex {
        header,
        first_key: first_key.into(),
        last_key: last_key.into(),
        fences: Fences::decode(
            fences,
            index(header.blocks),
            header.data_len,
            saturating_u32(BLOCK_HEADER_BYTES),
        )?,
        deleted: decode_hashes(deleted)?,
        filter: if filter.is_empty() { None } else { Some(Filter::decode(filter)?) },
        references: ReferenceTable::decode(references)?,
    })
}

fn decode_hashes(bytes: &[u8]) -> Result<Box<[u64]>, FormatError> {
    let mut reader = Reader::new(bytes, WHAT);
    let hashes = (0..bytes.len() / 8).map(|_| reader.u64()).collect::<Result<Box<[u64]>, _>>()?;
    if hashes.is_sorted_by(|a, b| a < b) {
        Ok(hashes)
    } else {
        Err(reader.malformed("hashes of deleted keys are not in order"))
    }
}

impl PatchIndex {
    /// Counts, lengths and sequence numbers.
    pub fn header(&self) -> &PatchHeader {
        &self.header
    }

    /// The lowest key inside.
    pub fn first_key(&self) -> &[u8] {
        &self.first_key
    }

    /// The highest key inside.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Records inside.
    pub fn entries(&self) -> u64 {
        self.header.entries.into()
    }

    /// Deletions inside.
    pub fn tombstones(&self) -> u64 {
        self.header.tombstones.into()
    }

    /// Different keys inside.
    pub fn keys(&self) -> u64 {
        self.header.keys.into()
    }

    /// The byte offset of the data section, at a page boundary.
    pub fn data_offset(&self) -> u32 {
        self.header.metadata_len
    }

    /// Bytes of the data section.
    pub fn data_len(&self) -> u32 {
        self.fences.data_len()
    }

    /// Bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        size_of::<PatchIndex>()
            + self.first_key.len()
            + self.last_key.len()
            + self.fences.memory_bytes()
            + size_of_val(&*self.deleted)
            + self.filter.as_ref().map_or(0, Filter::memory_bytes)
            + self.references.memory_bytes()
    }

    /// Whether a key with this [`hash64`](softflash_base::checksum::hash64) may be inside. An
    /// absent key passes once in 65,536 times.
    pub fn may_contain(&self, key_hash: u64) -> bool {
        let denied = planted::bug(Bug::FilterSaysNo) && key_hash.is_multiple_of(61);
        !denied && self.filter.as_ref().is_none_or(|filter| filter.contains(key_hash))
    }

    /// Where the separated values of the newest versions of its keys are.
    pub fn references(&self) -> &ReferenceTable {
        &self.references
    }

    /// Whether the newest record of a key with this hash is a deletion; wrong only where two hashes
    /// are equal.
    pub fn is_tombstone(&self, key_hash: u64) -> bool {
        self.deleted.binary_search(&key_hash).is_ok()
    }

    /// The first block that can hold `key`: if the patch has the key, this block has its newest
    /// version. `None` where the key is outside the patch's range.
    pub fn locate(&self, key: &[u8]) -> Option<usize> {
        let inside = *self.first_key <= *key && *key <= *self.last_key;
        inside.then(|| self.fences.first_candidate(key))
    }

    /// The block to start with when reading all keys from `key` on; the number of blocks where
    /// there are none.
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        if *self.last_key < *key { self.block_count() } else { self.fences.first_candidate(key) }
    }

    /// Whether the index shows that block `number` holds only keys above `key`. A reader that
    /// searched the located block for an old version continues with the next block while this is
    /// false.
    pub fn block_starts_after(&self, number: usize, key: &[u8]) -> bool {
        self.fences.starts_after(number, key)
    }

    /// Whether block `number` begins with the last key of the previous block.
    pub fn is_continued(&self, number: usize) -> bool {
        self.fences.is_continued(number)
    }

    /// Blocks inside; at least one.
    pub fn block_count(&self) -> usize {
        self.fences.block_count()
    }

    /// The byte range of block `number` in the data section.
    pub fn block_range(&self, number: usize) -> Range<u32> {
        self.fences.block_range(number)
    }

    /// The pages of the patch that block `number` touches, and its offset in the first of them.
    pub fn block_pages(&self, number: usize) -> (Range<u32>, usize) {
        let page = self.header.page_bytes;
        let range = self.block_range(number);
        let (start, end) = (self.data_offset() + range.start, self.data_offset() + range.end);
        (start / page..end.div_ceil(page), index(start % page))
    }

    /// The byte ranges of all blocks in the data section, in order.
    pub fn blocks(&self) -> impl Iterator<Item = Range<u32>> {
        (0..self.block_count()).map(|number| self.block_range(number))
    }
}
