//! The fixed header of a patch: counts, and the lengths of the sections of the metadata.

use super::compress;
use super::fence::MAX_DATA_BYTES;
use crate::format::codec::{Reader, put_at};
use crate::format::{Domain, FormatError, seed};
use crate::layout::Compression;
use softflash_base::cast::{index, low_u8, saturating_u32, wide};
use softflash_base::checksum64;

/// Bytes of the fixed header.
pub const HEADER_BYTES: usize = 128;
/// The newest version of the format: of a patch with values that expire.
pub const VERSION: u16 = 3;
/// The version of a patch with references and without values that expire.
const VERSION_WITH_REFERENCES: u16 = 2;
/// The version of a patch without both.
const VERSION_PLAIN: u16 = 1;

const MAGIC: [u8; 8] = *b"SFPATCH\0";
const WHAT: &str = "a patch header";
/// The place of the header's checksum, in every version; it covers the bytes before it.
const CHECKSUM_AT: usize = HEADER_BYTES - 8;

/// The fields of a patch header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchHeader {
    /// The patch's id.
    pub patch_id: u64,
    /// The slice that it belongs to.
    pub slice: u16,
    /// The level that it was written for; it may have moved since.
    pub level_hint: u8,
    /// The compression of blocks that shrink.
    pub compression: Compression,
    /// Bytes of a page of the flash: a power of two.
    pub page_bytes: u32,
    /// Records inside.
    pub entries: u32,
    /// Values inside: records that are neither deletions nor fragments after the first.
    pub puts: u32,
    /// Deletions inside.
    pub tombstones: u32,
    /// Different keys inside.
    pub keys: u32,
    /// The lowest sequence number inside.
    pub min_seq: u64,
    /// The highest sequence number inside.
    pub max_seq: u64,
    /// Bytes of metadata, whole pages; the data section follows.
    pub metadata_len: u32,
    /// Bytes of blocks.
    pub data_len: u32,
    /// Blocks.
    pub blocks: u32,
    /// Bytes of the first key, which follows the header.
    pub first_key_len: u32,
    /// Bytes of the last key, which follows the first.
    pub last_key_len: u32,
    /// Bytes of the fences, which follow the keys.
    pub fences_len: u32,
    /// Bytes of the hashes of deleted keys, which follow the fences.
    pub tombstones_len: u32,
    /// Bytes of the filter, which follows; 0 where there is none.
    pub filter_len: u32,
    /// Bytes of the references, which follow; 0 where there are none.
    pub references_len: u32,
    /// Values that expire; 0 in patches of older programs, which did not count them.
    pub expiring: u32,
    /// Checksum of the metadata behind the header.
    pub metadata_checksum: u64,
}

impl PatchHeader {
    /// The encoded header.
    pub fn encode(&self, identity: u64) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        put_at(&mut out, 0, &MAGIC);
        put_at(&mut out, 8, &self.version().to_le_bytes());
        put_at(&mut out, 10, &self.slice.to_le_bytes());
        let shift = low_u8(self.page_bytes.trailing_zeros().into());
        put_at(&mut out, 12, &[self.level_hint, compress::code(self.compression), shift, 0]);
        put_at(&mut out, 16, &self.patch_id.to_le_bytes());
        put_at(&mut out, 24, &self.min_seq.to_le_bytes());
        put_at(&mut out, 32, &self.max_seq.to_le_bytes());
        for (number, value) in self.numbers().into_iter().enumerate() {
            put_at(&mut out, 40 + 4 * number, &value.to_le_bytes());
        }
        put_at(&mut out, 88, &self.references_len.to_le_bytes());
        put_at(&mut out, 92, &self.expiring.to_le_bytes());
        put_at(&mut out, 112, &self.metadata_checksum.to_le_bytes());
        let sum = checksum(&out, identity);
        put_at(&mut out, CHECKSUM_AT, &sum.to_le_bytes());
        out
    }

    fn version(&self) -> u16 {
        match (self.expiring, self.references_len) {
            (0, 0) => VERSION_PLAIN,
            (0, _) => VERSION_WITH_REFERENCES,
            _ => VERSION,
        }
    }

    fn numbers(&self) -> [u32; 12] {
        [
            self.entries,
            self.puts,
            self.tombstones,
            self.keys,
            self.metadata_len,
            self.data_len,
            self.blocks,
            self.first_key_len,
            self.last_key_len,
            self.fences_len,
            self.tombstones_len,
            self.filter_len,
        ]
    }

    /// Reads the header at the start of a patch.
    ///
    /// # Errors
    /// [`FormatError`] where there is no patch, or a damaged or misplaced one, or one of a newer
    /// version.
    pub fn decode(bytes: &[u8], identity: u64) -> Result<PatchHeader, FormatError> {
        let mut reader = Reader::new(bytes, WHAT);
        let header = Reader::new(bytes, WHAT).take(HEADER_BYTES)?;
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(FormatError::NotFound { what: "patch header" });
        }
        if Reader::starting_at(header, CHECKSUM_AT, WHAT).u64()? != checksum(header, identity) {
            return Err(FormatError::Checksum { what: WHAT });
        }
        let version = reader.u16()?;
        if !(VERSION_PLAIN..=VERSION).contains(&version) {
            return Err(FormatError::Version { what: "a patch", found: version, known: VERSION });
        }
        let slice = reader.u16()?;
        let (level_hint, code, shift) = (reader.u8()?, reader.u8()?, reader.u8()?);
        let reserved = reader.u8()?;
        let compression = compress::from_code(code)
            .ok_or_else(|| reader.malformed("its compression is unknown"))?;
        let decoded = PatchHeader {
            slice,
            level_hint,
            compression,
            page_bytes: 1u32.checked_shl(shift.into()).unwrap_or(0),
            patch_id: reader.u64()?,
            min_seq: reader.u64()?,
            max_seq: reader.u64()?,
            entries: reader.u32()?,
            puts: reader.u32()?,
            tombstones: reader.u32()?,
            keys: reader.u32()?,
            metadata_len: reader.u32()?,
            data_len: reader.u32()?,
            blocks: reader.u32()?,
            first_key_len: reader.u32()?,
            last_key_len: reader.u32()?,
            fences_len: reader.u32()?,
            tombstones_len: reader.u32()?,
            filter_len: reader.u32()?,
            references_len: reader.u32()?,
            expiring: reader.u32()?,
            metadata_checksum: Reader::starting_at(bytes, 112, WHAT).u64()?,
        };
        if version != decoded.version() {
            return Err(reader.malformed("its version does not fit its contents"));
        }
        if reserved != 0 || reader.take(16)?.iter().any(|byte| *byte != 0) {
            return Err(reader.malformed("a reserved byte is not zero"));
        }
        decoded.check(&reader)?;
        Ok(decoded)
    }

    fn check(&self, reader: &Reader<'_>) -> Result<(), FormatError> {
        let sections = [
            self.first_key_len,
            self.last_key_len,
            self.fences_len,
            self.tombstones_len,
            self.filter_len,
            self.references_len,
        ];
        let content = sections.into_iter().map(u64::from).sum::<u64>() + wide(HEADER_BYTES);
        let whole_pages = self.page_bytes != 0 && self.metadata_len.is_multiple_of(self.page_bytes);
        if !whole_pages || content > u64::from(self.metadata_len) {
            return Err(reader.malformed("its sections do not fit"));
        }
        let end = u64::from(self.metadata_len) + u64::from(self.data_len);
        if end > wide(MAX_DATA_BYTES) || self.entries == 0 {
            return Err(reader.malformed("its data section is impossible"));
        }
        let entry_bytes = saturating_u32(super::references::ENTRY_BYTES);
        let entries = self.references_len / entry_bytes;
        if !self.references_len.is_multiple_of(entry_bytes) || entries > self.entries {
            return Err(reader.malformed("its references do not fit"));
        }
        if self.puts > self.entries || self.expiring > self.puts {
            return Err(reader.malformed("its values do not fit"));
        }
        if !self.tombstones_len.is_multiple_of(8) || self.tombstones_len / 8 > self.tombstones {
            return Err(reader.malformed("its deletions do not fit"));
        }
        Ok(())
    }

    /// The checksum of the metadata behind the header.
    pub(super) fn checksum_of(metadata: &[u8], identity: u64) -> u64 {
        checksum64(seed(identity, Domain::PatchMetadata, wide(HEADER_BYTES)), metadata)
    }
}

fn checksum(header: &[u8], identity: u64) -> u64 {
    let covered = header.get(..CHECKSUM_AT).unwrap_or_default();
    checksum64(seed(identity, Domain::PatchHeader, 0), covered)
}

/// Bytes of a patch's metadata, whole pages, found from its first page.
///
/// # Errors
/// [`FormatError`] where there is no patch, or a damaged or misplaced one, or one of a newer
/// version.
pub fn metadata_len(first_page: &[u8], identity: u64) -> Result<usize, FormatError> {
    PatchHeader::decode(first_page, identity).map(|header| index(header.metadata_len))
}
