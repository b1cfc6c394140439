//! The two header pages at the start of every superblock. `docs/formats-ftl.md` specifies them byte
//! by byte.
//!
//! The *erase header* is programmed right after an erase, the *opening header* with the first
//! append. The opening header repeats the erase header and adds the data of the owner, so that each
//! page alone gives the blocks of the superblock and their wear.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use crate::stream::Stream;
use crate::superblock::{Owner, OwnerTag};
use softflash_base::cast;
use softflash_base::checksum::{checksum64, identity};

/// The newest format version that this program reads, and writes where there is a table of sets.
pub(crate) const FORMAT_VERSION: u32 = 4;
/// The version of headers with an owner and without the epoch of a table of sets: there is none.
const WITHOUT_EPOCH: u32 = 3;
/// The version of headers without an owner. Those of the block layer have none, so that programs
/// that know no other owner read them.
const WITHOUT_OWNER: u32 = 2;
/// The oldest format version that this program reads. Its checksum is at the end of the page and
/// covers the whole page.
const OLDEST_VERSION: u32 = 1;

const ERASE_MAGIC: [u8; 8] = *b"SFerase\0";
const OPENING_MAGIC: [u8; 8] = *b"SFopen\0\0";

/// Bytes before the list of blocks.
const FIXED_BYTES: usize = 128;
const BLOCK_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 8;

/// Size in bytes of a header with `columns` blocks, at the beginning of its page. The rest of the
/// page has no meaning, and a mount does not read it if the device can read parts of pages.
pub(crate) fn encoded_bytes(columns: u32) -> usize {
    FIXED_BYTES + cast::index(columns) * BLOCK_BYTES + CHECKSUM_BYTES
}

/// Which of the two header pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderKind {
    Erase,
    Opening,
}

impl HeaderKind {
    fn magic(self) -> [u8; 8] {
        match self {
            HeaderKind::Erase => ERASE_MAGIC,
            HeaderKind::Opening => OPENING_MAGIC,
        }
    }
}

/// The place of a header; the seed of its checksum contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeaderPlace {
    pub device_uuid: u128,
    pub unit: u16,
    pub index: u32,
}

/// The block in one stripe column of a superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnRecord {
    pub block: u32,
    pub erase_count: u32,
}

/// The contents of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub generation: u64,
    /// The greatest erase count in the unit when the header was written.
    pub highest_erase_count: u32,
    /// No block of this number or above had been erased in the unit when the header was written.
    pub unused_from: u32,
    /// All superblocks of the unit with smaller generations are void: the whole unit was erased
    /// since, but for bad blocks. 0 in an opening header.
    pub void_below: u64,
    /// The block in each stripe column.
    pub blocks: Vec<ColumnRecord>,
    /// The purpose of the superblock; none in an erase header.
    pub opening: Option<Purpose>,
}

/// The purpose for which a superblock was allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Purpose {
    pub stream: Stream,
    pub owner: Owner,
    pub tag: OwnerTag,
    /// The epoch of the table of sets when the superblock was opened; 0 without a table.
    pub epoch: u32,
}

impl Header {
    pub fn kind(&self) -> HeaderKind {
        match self.opening {
            None => HeaderKind::Erase,
            Some(_) => HeaderKind::Opening,
        }
    }

    fn version(&self) -> u32 {
        match self.opening {
            Some(Purpose { epoch: 1.., .. }) => FORMAT_VERSION,
            None | Some(Purpose { owner: Owner::BLOCKS, .. }) => WITHOUT_OWNER,
            Some(_) => WITHOUT_EPOCH,
        }
    }
}

/// The result of decoding a header page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decoded {
    Valid(Header),
    /// Zeros: never programmed.
    Blank,
    /// A whole header of another device or superblock, or bytes without magic and UUID: left from
    /// an earlier use of the medium, or of a block that has moved to another superblock, or written
    /// there by mistake. Equivalent to blank, except for the opening header of an erased
    /// superblock.
    Foreign,
    /// A whole header of the same superblock of another unit of this device. Equivalent to a
    /// foreign one, unless the whole unit has such headers.
    OfUnit(u16),
    /// None of the above.
    Damaged(String),
    /// Whole, of a format version that this program does not know.
    Newer(u32),
}

/// Writes a header over a whole page.
pub(crate) fn encode(place: HeaderPlace, header: &Header, page: &mut [u8]) {
    let Ok(columns) = u32::try_from(header.blocks.len()) else {
        unreachable!("a superblock of {} blocks", header.blocks.len());
    };
    assert!(encoded_bytes(columns) <= page.len(), "a header of {columns} blocks fits its page");
    page.fill(0);
    let kind = header.kind();
    put(page, 0, &kind.magic());
    put(page, 8, &header.version().to_le_bytes());
    put(page, 12, &columns.to_le_bytes());
    put(page, 16, &place.device_uuid.to_le_bytes());
    put(page, 32, &place.index.to_le_bytes());
    put(page, 36, &place.unit.to_le_bytes());
    put(page, 40, &header.generation.to_le_bytes());
    put(page, 48, &header.highest_erase_count.to_le_bytes());
    put(page, 52, &header.unused_from.to_le_bytes());
    if header.opening.is_none() {
        put(page, 56, &header.void_below.to_le_bytes());
    }
    if let Some(Purpose { stream, owner, tag, epoch }) = &header.opening {
        page[38] = stream_code(*stream);
        put(page, 56, &tag.0);
        page[120] = owner.layer;
        put(page, 122, &owner.domain.to_le_bytes());
        put(page, 124, &epoch.to_le_bytes());
    }
    for (column, record) in header.blocks.iter().enumerate() {
        let at = FIXED_BYTES + column * BLOCK_BYTES;
        put(page, at, &record.block.to_le_bytes());
        put(page, at + 4, &record.erase_count.to_le_bytes());
    }
    seal(kind, place, columns, page);
}

/// Writes the checksum.
fn seal(kind: HeaderKind, place: HeaderPlace, columns: u32, page: &mut [u8]) {
    let end = encoded_bytes(columns) - CHECKSUM_BYTES;
    let checksum = checksum64(seed(kind, place), &page[..end]);
    put(page, end, &checksum.to_le_bytes());
}

/// The stream in an opening header.
pub(crate) fn named_stream(page: &[u8]) -> Option<Stream> {
    stream_of(*page.get(38)?)
}

/// Decodes a header from its page, or from the beginning of the page. `columns` and
/// `blocks_per_plane` limit the values that are valid.
pub(crate) fn decode(
    kind: HeaderKind,
    expected: HeaderPlace,
    columns: u32,
    blocks_per_plane: u32,
    page: &[u8],
) -> Decoded {
    let damaged = |reason: &str| Decoded::Damaged(reason.to_owned());
    if page.len() < encoded_bytes(columns) {
        return damaged("the page is too short");
    }
    let magic_fits = page[..8] == kind.magic();
    if !magic_fits && u128::from_le_bytes(array(page, 16)) != expected.device_uuid {
        // Neither magic nor UUID: this was never a header of this device. The fold does not end
        // early, because an early end would keep the compiler from vectorizing it.
        let blank = page.iter().fold(0, |bits, byte| bits | byte) == 0;
        return if blank { Decoded::Blank } else { Decoded::Foreign };
    }
    if !magic_fits {
        return damaged("not a header of this kind");
    }
    let place = HeaderPlace {
        device_uuid: u128::from_le_bytes(array(page, 16)),
        index: u32::from_le_bytes(array(page, 32)),
        unit: u16::from_le_bytes(array(page, 36)),
    };
    let version = u32::from_le_bytes(array(page, 8));
    let header = match version {
        OLDEST_VERSION => page,
        _ => &page[..encoded_bytes(columns)],
    };
    let (covered, checksum) = header.split_at(header.len() - CHECKSUM_BYTES);
    if checksum != checksum64(seed(kind, place), covered).to_le_bytes() {
        return damaged("the checksum does not match");
    }
    if version > FORMAT_VERSION && place.device_uuid == expected.device_uuid {
        return Decoded::Newer(version);
    }
    if place != expected {
        let is_of_unit = place == HeaderPlace { unit: place.unit, ..expected };
        return if is_of_unit { Decoded::OfUnit(place.unit) } else { Decoded::Foreign };
    }
    if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&version)
        || u32::from_le_bytes(array(page, 12)) != columns
    {
        return damaged("the version or the number of blocks does not match");
    }
    let blocks: Vec<ColumnRecord> = (0..cast::index(columns))
        .map(|column| FIXED_BYTES + column * BLOCK_BYTES)
        .map(|at| ColumnRecord {
            block: u32::from_le_bytes(array(page, at)),
            erase_count: u32::from_le_bytes(array(page, at + 4)),
        })
        .collect();
    if blocks[0].block != expected.index
        || blocks.iter().any(|record| record.block >= blocks_per_plane)
    {
        return damaged("a block number is out of range");
    }
    let opening = match kind {
        HeaderKind::Erase => None,
        HeaderKind::Opening => match stream_of(page[38]) {
            Some(stream) => {
                let named =
                    Owner { layer: page[120], domain: u16::from_le_bytes(array(page, 122)) };
                let owner = if version > WITHOUT_OWNER { named } else { Owner::BLOCKS };
                let epoch = match version > WITHOUT_EPOCH {
                    true => u32::from_le_bytes(array(page, 124)),
                    false => 0,
                };
                Some(Purpose { stream, owner, tag: OwnerTag(array(page, 56)), epoch })
            }
            None => return damaged("the stream is unknown"),
        },
    };
    Decoded::Valid(Header {
        generation: u64::from_le_bytes(array(page, 40)),
        highest_erase_count: u32::from_le_bytes(array(page, 48)),
        unused_from: u32::from_le_bytes(array(page, 52)),
        void_below: match kind {
            HeaderKind::Erase => u64::from_le_bytes(array(page, 56)),
            HeaderKind::Opening => 0,
        },
        blocks,
        opening,
    })
}

/// Sets magic, version, place, number of blocks and checksum of a page, and leaves its other bytes.
#[cfg(any(test, fuzzing))]
pub(crate) fn claim(kind: HeaderKind, place: HeaderPlace, columns: u32, page: &mut [u8]) {
    put(page, 0, &kind.magic());
    put(page, 8, &FORMAT_VERSION.to_le_bytes());
    put(page, 12, &columns.to_le_bytes());
    put(page, 16, &place.device_uuid.to_le_bytes());
    put(page, 32, &place.index.to_le_bytes());
    put(page, 36, &place.unit.to_le_bytes());
    seal(kind, place, columns, page);
}

fn seed(kind: HeaderKind, place: HeaderPlace) -> u64 {
    let [low, high] = uuid_halves(place.device_uuid);
    identity(&[
        u64::from_le_bytes(kind.magic()),
        low,
        high,
        u64::from(place.unit),
        u64::from(place.index),
    ])
}

/// The low and the high half of a device's UUID.
pub(crate) fn uuid_halves(uuid: u128) -> [u64; 2] {
    let bytes = uuid.to_le_bytes();
    [0, 8].map(|at| u64::from_le_bytes(array(&bytes, at)))
}

fn stream_code(stream: Stream) -> u8 {
    match stream {
        Stream::Log => 0,
        Stream::User => 1,
        Stream::Compaction => 2,
    }
}

fn stream_of(code: u8) -> Option<Stream> {
    match code {
        0 => Some(Stream::Log),
        1 => Some(Stream::User),
        2 => Some(Stream::Compaction),
        _ => None,
    }
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

/// The `N` bytes at `at`; the caller has checked the length of the page.
fn array<const N: usize>(page: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&page[at..at + N]);
    bytes
}

#[cfg(test)]
mod tests;
