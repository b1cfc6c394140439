//! Builds a patch from records that come in order.

use super::block::{self, BLOCK_HEADER_BYTES, MAX_RAW_BYTES};
use super::compress::BlockCompressor;
use super::fence::{FenceBuilder, MAX_DATA_BYTES};
use super::filter::Filter;
use super::header::{HEADER_BYTES, PatchHeader};
use super::index::PatchIndex;
use super::references::{ENTRY_BYTES, ReferenceEntry, ReferenceTable};
use crate::format::record::{Fields, Record};
use crate::layout::Compression;
use softflash_base::cast::{index, saturating_u32};
use softflash_base::{SliceId, checksum};
use std::cmp::Ordering;

/// The settings of a builder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuilderConfig {
    /// The most bytes of a patch: the payload of a superblock.
    pub capacity_bytes: usize,
    /// Bytes of a page of the flash: a power of two.
    pub page_bytes: usize,
    /// Bytes of records in a block; a longer record has a block of its own.
    pub block_bytes: usize,
    /// How blocks are compressed.
    pub compression: Compression,
    /// The level of Zstandard.
    pub zstd_level: i32,
    /// The level of the tree that the patch is written for, for its header.
    pub level_hint: u8,
}

impl BuilderConfig {
    /// The usual settings: blocks of 4 KiB of records.
    pub fn new(
        capacity_bytes: usize,
        page_bytes: usize,
        compression: Compression,
    ) -> BuilderConfig {
        BuilderConfig {
            capacity_bytes,
            page_bytes,
            block_bytes: 4096,
            compression,
            zstd_level: 3,
            level_hint: 0,
        }
    }
}

/// The result of adding a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Added {
    /// It is in the patch.
    Added,
    /// It does not fit; the patch is unchanged.
    Full,
}

/// A patch as it is written to flash: the metadata, then the data, then zeros to the end of the
/// page.
#[derive(Debug)]
pub struct PatchImage {
    /// Header, fences and filter: whole pages.
    pub metadata: Vec<u8>,
    /// The blocks, not padded.
    pub data: Vec<u8>,
    /// The index, which stays in memory.
    pub index: PatchIndex,
}

/// Builds a patch from records in order, until the patch is full.
pub struct PatchBuilder {
    config: BuilderConfig,
    slice: SliceId,
    compressor: BlockCompressor,
    /// Closed blocks, and the header and raw records of the open one.
    data: Vec<u8>,
    /// The start of the open block.
    open_at: usize,
    /// Records in the open block.
    open_records: u16,
    fences: FenceBuilder,
    first_key: Vec<u8>,
    last: Option<Last>,
    hashes: Vec<u64>,
    /// A number of keys, and a bound of the filter's length up to that number.
    filter_bound: (usize, usize),
    deleted: Vec<u64>,
    references: Vec<ReferenceEntry>,
    /// The sequence number of the newest version of the last key.
    newest_seq: u64,
    entries: u32,
    puts: u32,
    expiring: u32,
    tombstones: u32,
    min_seq: u64,
    max_seq: u64,
}

/// The record added last.
struct Last {
    key: Vec<u8>,
    seq: u64,
    fragment: u16,
}

impl Last {
    fn is_before(&self, next: &Fields<'_>) -> bool {
        let last = Fields {
            key: &self.key,
            seq: self.seq,
            put: true,
            reference: false,
            expires_at_ms: 0,
            fragment: self.fragment,
            fragments: u16::MAX,
            value: &[],
        };
        last.order(next) == Ordering::Less
    }
}

impl PatchBuilder {
    /// A builder of one patch of `slice`. Reserves address space for a whole patch; only used pages
    /// cost memory.
    ///
    /// # Panics
    /// Where the page size is not a power of two that can hold a header.
    pub fn new(mut config: BuilderConfig, slice: SliceId) -> PatchBuilder {
        assert!(
            config.page_bytes.is_power_of_two() && config.page_bytes >= HEADER_BYTES,
            "a page of {} bytes cannot hold a patch header",
            config.page_bytes
        );
        config.capacity_bytes = config.capacity_bytes.min(MAX_DATA_BYTES);
        config.capacity_bytes -= config.capacity_bytes % config.page_bytes;
        config.block_bytes = config.block_bytes.min(MAX_RAW_BYTES);
        PatchBuilder {
            compressor: BlockCompressor::new(config.compression, config.zstd_level),
            data: Vec::with_capacity(config.capacity_bytes),
            config,
            slice,
            open_at: 0,
            open_records: 0,
            fences: FenceBuilder::default(),
            first_key: Vec::new(),
            last: None,
            hashes: Vec::new(),
            filter_bound: (0, 0),
            deleted: Vec::new(),
            references: Vec::new(),
            newest_seq: 0,
            entries: 0,
            puts: 0,
            expiring: 0,
            tombstones: 0,
            min_seq: u64::MAX,
            max_seq: 0,
        }
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Whether a record can be added.
    #[cfg(test)]
    pub fn fits(&mut self, record: &Record) -> bool {
        let fields = record.fields();
        self.has_room_for(&fields, fields.encoded_len(0))
    }

    /// Adds a record, which must follow the previous one in order. [`Added::Full`] where it does
    /// not fit; a record that does not fit an empty patch fits none.
    ///
    /// # Panics
    /// Where the record does not follow the previous one in order.
    pub fn add(&mut self, record: &Record) -> Added {
        let fields = record.fields();
        assert!(
            self.last.as_ref().is_none_or(|last| last.is_before(&fields)),
            "records of a patch must come in order: sequence {} of key {:?}",
            fields.seq,
            record.key
        );
        let len = fields.encoded_len(0);
        if !self.has_room_for(&fields, len) {
            return Added::Full;
        }
        if self.must_close_for(len) {
            self.close_block();
        }
        if self.open_records == 0 {
            self.open_block(fields.key);
        }
        fields.encode(record.checksum(), 0, &mut self.data);
        self.open_records += 1;
        self.note(&fields);
        Added::Added
    }

    /// Whether the open block must be closed before a record of `len` bytes is added.
    fn must_close_for(&self, len: usize) -> bool {
        let end = self.data.len() + len;
        let room_ends = self.open_at + BLOCK_HEADER_BYTES + self.config.block_bytes;
        self.open_records > 0 && (end > room_ends || self.open_records == u16::MAX)
    }

    /// Whether the patch with this record stays within its capacity in the worst case.
    fn has_room_for(&mut self, fields: &Fields<'_>, len: usize) -> bool {
        let keys = self.hashes.len() + 1;
        if keys > self.filter_bound.0 {
            // The bound grows in steps, so that it is not computed for each record.
            let good_for = keys + keys / 32 + 64;
            self.filter_bound = (good_for, Filter::encoded_bound(good_for));
        }
        let first_key = if self.is_empty() { fields.key.len() } else { self.first_key.len() };
        let metadata = HEADER_BYTES
            + first_key
            + fields.key.len()
            + self.fences.encoded_bound()
            + fields.key.len()
            + 7
            + 8 * (self.deleted.len() + 1)
            + ENTRY_BYTES * (self.references.len() + usize::from(fields.reference))
            + self.filter_bound.1;
        let data = self.data.len() + BLOCK_HEADER_BYTES + len;
        metadata.next_multiple_of(self.config.page_bytes) + data <= self.config.capacity_bytes
    }

    fn open_block(&mut self, first_key: &[u8]) {
        self.open_at = self.data.len();
        let last_key = self.last.as_ref().map_or(&[][..], |last| &last.key);
        self.fences.push(saturating_u32(self.open_at), last_key, first_key);
        self.data.extend_from_slice(&[0; BLOCK_HEADER_BYTES]);
    }

    fn close_block(&mut self) {
        let records_at = self.open_at + BLOCK_HEADER_BYTES;
        let raw = self.data.get(records_at..).unwrap_or_default();
        let raw_len = raw.len();
        let mut stored = Compression::None;
        if let Some(compressed) = self.compressor.compress(raw) {
            stored = self.config.compression;
            self.data.truncate(records_at);
            self.data.extend_from_slice(compressed);
        }
        let block = self.data.get_mut(self.open_at..).unwrap_or_default();
        block::write_header(block, raw_len, self.open_records, stored);
        self.open_records = 0;
    }

    /// Counts a record that was added.
    fn note(&mut self, fields: &Fields<'_>) {
        self.entries += 1;
        self.min_seq = self.min_seq.min(fields.seq);
        self.max_seq = self.max_seq.max(fields.seq);
        let is_value = fields.put && fields.fragment == 0;
        self.puts += u32::from(is_value);
        self.expiring += u32::from(is_value && fields.expires_at_ms != 0);
        self.tombstones += u32::from(!fields.put);
        if self.last.as_ref().is_none_or(|last| last.key != fields.key) {
            self.newest_seq = fields.seq;
        }
        if fields.seq == self.newest_seq {
            self.references.extend(ReferenceEntry::of(fields));
        }
        match &mut self.last {
            Some(last) if last.key == fields.key => {
                (last.seq, last.fragment) = (fields.seq, fields.fragment);
                return;
            }
            Some(last) => {
                last.key.clear();
                last.key.extend_from_slice(fields.key);
                (last.seq, last.fragment) = (fields.seq, fields.fragment);
            }
            None => {
                self.first_key = fields.key.to_vec();
                let key = fields.key.to_vec();
                self.last = Some(Last { key, seq: fields.seq, fragment: fields.fragment });
            }
        }
        let hash = checksum::hash64(fields.key);
        self.hashes.push(hash);
        if !fields.put {
            self.deleted.push(hash);
        }
    }

    /// Ends the patch. All checksums are bound to `identity`, the identity of the patch's block.
    ///
    /// # Panics
    /// Where nothing was added.
    pub fn finish(mut self, patch_id: u64, identity: u64) -> PatchImage {
        assert!(!self.is_empty(), "a patch holds at least one record");
        self.close_block();
        let data_len = saturating_u32(self.data.len());
        let last_key = self.last.take().map(|last| last.key).unwrap_or_default();
        let fences = std::mem::take(&mut self.fences).finish(data_len);
        for number in 0..fences.block_count() {
            let range = fences.block_range(number);
            let place = index(range.start)..index(range.end);
            let bytes = self.data.get_mut(place).unwrap_or_default();
            block::write_checksum(bytes, identity, range.start);
        }
        self.deleted.sort_unstable();
        self.deleted.dedup();
        let keys = saturating_u32(self.hashes.len());
        let filter = Filter::build(&mut self.hashes);
        let mut patch_index = PatchIndex {
            header: self.header(patch_id, keys, data_len, fences.block_count()),
            first_key: std::mem::take(&mut self.first_key).into(),
            last_key: last_key.into(),
            fences,
            deleted: std::mem::take(&mut self.deleted).into(),
            filter,
            references: ReferenceTable::new(std::mem::take(&mut self.references)),
        };
        let metadata = encode_metadata(&mut patch_index, identity);
        let image = PatchImage { metadata, data: self.data, index: patch_index };
        assert!(
            image.metadata.len() + image.data.len() <= self.config.capacity_bytes,
            "a patch outgrew its superblock: {} bytes of metadata, {} of data",
            image.metadata.len(),
            image.data.len()
        );
        image
    }

    /// The header, without the lengths and the checksum of the metadata.
    fn header(&self, patch_id: u64, keys: u32, data_len: u32, blocks: usize) -> PatchHeader {
        PatchHeader {
            patch_id,
            slice: self.slice.0,
            level_hint: self.config.level_hint,
            compression: self.config.compression,
            page_bytes: saturating_u32(self.config.page_bytes),
            entries: self.entries,
            puts: self.puts,
            tombstones: self.tombstones,
            keys,
            min_seq: self.min_seq,
            max_seq: self.max_seq,
            metadata_len: 0,
            data_len,
            blocks: saturating_u32(blocks),
            first_key_len: 0,
            last_key_len: 0,
            fences_len: 0,
            tombstones_len: 0,
            filter_len: 0,
            references_len: 0,
            expiring: self.expiring,
            metadata_checksum: 0,
        }
    }
}

/// Encodes the metadata and fills in its lengths and checksum.
fn encode_metadata(patch: &mut PatchIndex, identity: u64) -> Vec<u8> {
    let filter_len = patch.filter.as_ref().map_or(0, Filter::encoded_len);
    let guess = patch.memory_bytes() + filter_len + HEADER_BYTES;
    let page = index(patch.header.page_bytes);
    let mut out = Vec::with_capacity(guess.next_multiple_of(page));
    out.resize(HEADER_BYTES, 0);
    let mut at = out.len();
    let mut section_len = |out: &Vec<u8>| {
        let len = out.len() - at;
        at = out.len();
        saturating_u32(len)
    };
    out.extend_from_slice(&patch.first_key);
    patch.header.first_key_len = section_len(&out);
    out.extend_from_slice(&patch.last_key);
    patch.header.last_key_len = section_len(&out);
    patch.fences.encode(&mut out);
    patch.header.fences_len = section_len(&out);
    patch.deleted.iter().for_each(|hash| out.extend_from_slice(&hash.to_le_bytes()));
    patch.header.tombstones_len = section_len(&out);
    if let Some(filter) = &patch.filter {
        filter.encode(&mut out);
    }
    patch.header.filter_len = section_len(&out);
    patch.references.encode(&mut out);
    patch.header.references_len = section_len(&out);
    out.resize(out.len().next_multiple_of(page), 0);
    patch.header.metadata_len = saturating_u32(out.len());
    let rest = out.get(HEADER_BYTES..).unwrap_or_default();
    patch.header.metadata_checksum = PatchHeader::checksum_of(rest, identity);
    let header = patch.header.encode(identity);
    if let Some(place) = out.get_mut(..HEADER_BYTES) {
        place.copy_from_slice(&header);
    }
    out
}
