//! The two pages that open every superblock, byte by byte as `docs/formats-ftl.md` draws them.
//!
//! The *erase header* is programmed right after an erase, the *opening header* with the first
//! append. The second repeats the first and adds what the owner wants to find again, so that either
//! page alone tells which blocks make up the superblock and how worn they are.

use crate::hint::Stream;
use crate::superblock::OwnerTag;
use softflash_base::checksum::{checksum64, identity};

/// The newest format that this program reads and writes.
pub(crate) const FORMAT_VERSION: u32 = 2;
/// The oldest that it reads. Its checksum is at the end of the page, and covers all of it.
const OLDEST_VERSION: u32 = 1;

const ERASE_MAGIC: [u8; 8] = *b"SFerase\0";
const OPENING_MAGIC: [u8; 8] = *b"SFopen\0\0";

/// Bytes before the list of blocks.
const FIXED_BYTES: usize = 128;
const BLOCK_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 8;

/// Bytes of a header of `seats` blocks, at the beginning of its page. The rest of the page says nothing, and a mount need not
/// read it where the device gives parts of pages.
pub(crate) fn encoded_bytes(seats: u32) -> usize {
    FIXED_BYTES + seats as usize * BLOCK_BYTES + CHECKSUM_BYTES
}

/// Which of the two.
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

/// The place where a header belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeaderPlace {
    pub device_uuid: u128,
    pub unit: u16,
    pub index: u32,
}

/// A block of a superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeatRecord {
    pub block: u32,
    pub erase_count: u32,
}

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub generation: u64,
    /// The greatest erase count in the unit when the header was written.
    pub highest_erase_count: u32,
    /// No block of this number or above had been erased in the unit by then.
    pub unused_from: u32,
    /// The block in every seat.
    pub blocks: Vec<SeatRecord>,
    /// Nothing in an erase header.
    pub opening: Option<(Stream, OwnerTag)>,
}

/// What a page that should hold a header holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decoded {
    Valid(Header),
    /// Zeros: never written.
    Blank,
    /// A whole header of another device or another superblock, or bytes that are no header at all: left from
    /// an earlier use of the medium, or of a block that was given to another superblock. As good as
    /// blank.
    Foreign,
    /// Neither.
    Damaged(String),
    /// Whole, and of a format that this program does not know.
    Newer(u32),
}

/// The parts of a header that are fixed while a superblock lives.
pub(crate) struct HeaderFields<'a> {
    pub place: HeaderPlace,
    pub generation: u64,
    pub highest_erase_count: u32,
    pub unused_from: u32,
    pub opening: Option<(Stream, &'a OwnerTag)>,
}

/// Writes a header over a whole page.
pub(crate) fn encode(
    fields: &HeaderFields<'_>,
    blocks: impl ExactSizeIterator<Item = SeatRecord>,
    page: &mut [u8],
) {
    let seats = blocks.len() as u32;
    assert!(encoded_bytes(seats) <= page.len(), "a header fits its page");
    page.fill(0);
    let kind = match fields.opening {
        None => HeaderKind::Erase,
        Some(_) => HeaderKind::Opening,
    };
    let place = fields.place;
    put(page, 0, &kind.magic());
    put(page, 8, &FORMAT_VERSION.to_le_bytes());
    put(page, 12, &seats.to_le_bytes());
    put(page, 16, &place.device_uuid.to_le_bytes());
    put(page, 32, &place.index.to_le_bytes());
    put(page, 36, &place.unit.to_le_bytes());
    put(page, 40, &fields.generation.to_le_bytes());
    put(page, 48, &fields.highest_erase_count.to_le_bytes());
    put(page, 52, &fields.unused_from.to_le_bytes());
    if let Some((stream, tag)) = fields.opening {
        page[38] = stream_code(stream);
        put(page, 56, &tag.0);
    }
    for (seat, record) in blocks.enumerate() {
        let at = FIXED_BYTES + seat * BLOCK_BYTES;
        put(page, at, &record.block.to_le_bytes());
        put(page, at + 4, &record.erase_count.to_le_bytes());
    }
    seal(kind, place, seats, page);
}

/// Puts the checksum.
fn seal(kind: HeaderKind, place: HeaderPlace, seats: u32, page: &mut [u8]) {
    let end = encoded_bytes(seats) - CHECKSUM_BYTES;
    let checksum = checksum64(seed(kind, place), &page[..end]);
    put(page, end, &checksum.to_le_bytes());
}

/// The stream that an opening header names.
pub(crate) fn named_stream(page: &[u8]) -> Option<Stream> {
    stream_of(*page.get(38)?)
}

/// Reads a header from its page, or from the beginning of it: what is valid there is valid. `seats` and `blocks_per_plane` bound what it may say.
pub(crate) fn decode(
    kind: HeaderKind,
    expected: HeaderPlace,
    seats: u32,
    blocks_per_plane: u32,
    page: &[u8],
) -> Decoded {
    let damaged = |reason: &str| Decoded::Damaged(reason.to_owned());
    if page.len() < encoded_bytes(seats) {
        return damaged("the page is too short");
    }
    let magic_fits = page[..8] == kind.magic();
    if !magic_fits && u128::from_le_bytes(array(page, 16)) != expected.device_uuid {
        // Nothing says that it was ever meant to be a header of this device.
        // Without an early end, which would keep the compiler from taking many bytes at once.
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
        _ => &page[..encoded_bytes(seats)],
    };
    let (covered, checksum) = header.split_at(header.len() - CHECKSUM_BYTES);
    if checksum != checksum64(seed(kind, place), covered).to_le_bytes() {
        return damaged("the checksum does not match");
    }
    if version > FORMAT_VERSION && place.device_uuid == expected.device_uuid {
        return Decoded::Newer(version);
    }
    if place != expected {
        return Decoded::Foreign;
    }
    if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&version)
        || u32::from_le_bytes(array(page, 12)) != seats
    {
        return damaged("the version or the number of blocks does not match");
    }
    let blocks: Vec<SeatRecord> = (0..seats as usize)
        .map(|seat| FIXED_BYTES + seat * BLOCK_BYTES)
        .map(|at| SeatRecord {
            block: u32::from_le_bytes(array(page, at)),
            erase_count: u32::from_le_bytes(array(page, at + 4)),
        })
        .collect();
    if blocks[0].block != expected.index
        || blocks.iter().any(|record| record.block >= blocks_per_plane)
    {
        return damaged("it names blocks that the superblock cannot have");
    }
    let opening = match kind {
        HeaderKind::Erase => None,
        HeaderKind::Opening => match stream_of(page[38]) {
            Some(stream) => Some((stream, OwnerTag(array(page, 56)))),
            None => return damaged("the stream is unknown"),
        },
    };
    Decoded::Valid(Header {
        generation: u64::from_le_bytes(array(page, 40)),
        highest_erase_count: u32::from_le_bytes(array(page, 48)),
        unused_from: u32::from_le_bytes(array(page, 52)),
        blocks,
        opening,
    })
}

/// Makes a page a header of this kind, place and number of blocks, whatever else stands in it.
#[cfg(any(test, fuzzing))]
pub(crate) fn claim(kind: HeaderKind, place: HeaderPlace, seats: u32, page: &mut [u8]) {
    put(page, 0, &kind.magic());
    put(page, 8, &FORMAT_VERSION.to_le_bytes());
    put(page, 12, &seats.to_le_bytes());
    put(page, 16, &place.device_uuid.to_le_bytes());
    put(page, 32, &place.index.to_le_bytes());
    put(page, 36, &place.unit.to_le_bytes());
    seal(kind, place, seats, page);
}

fn seed(kind: HeaderKind, place: HeaderPlace) -> u64 {
    identity(&[
        u64::from_le_bytes(kind.magic()),
        place.device_uuid as u64,
        (place.device_uuid >> 64) as u64,
        u64::from(place.unit),
        u64::from(place.index),
    ])
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

/// `N` bytes at `at`; the length of the page has been checked.
fn array<const N: usize>(page: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&page[at..at + N]);
    bytes
}

#[cfg(test)]
mod tests;
