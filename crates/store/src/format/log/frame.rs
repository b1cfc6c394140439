//! Frames: the log write of one group commit. A frame starts on a page and is padded to whole
//! pages.
//!
//! Each frame names its shard, segment, page and sequence, and the sequence below which all frames
//! were durable when it was written. A checksum bound to the segment's block covers header and
//! payload.

use super::VERSION;
use crate::format::codec::{Reader, put_at};
use softflash_base::cast::index;
use softflash_base::checksum::{checksum64, identity};
use softflash_base::planted::{self, Bug};

/// Bytes of a frame header.
pub const HEADER_BYTES: usize = 64;
/// The longest frame, header included.
pub const MAX_FRAME_BYTES: usize = 1 << 20;

pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"SFLG");
/// The place of the checksum, in every version; it covers the bytes before it, and the payload.
const CHECKSUM_AT: usize = HEADER_BYTES - 8;

/// The purpose of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameRole {
    /// It carries a part of the event stream.
    #[default]
    Stream,
    /// It carries the first part of the checkpoint at the start of a segment; only a copy may come
    /// before it.
    Opening,
    /// It carries a further part of the checkpoint.
    Checkpoint,
    /// It repeats the last frame of the previous segment, with the same sequence, in front of the
    /// opening.
    Copy,
    /// It fills pages; the payload is ignored.
    Padding,
    /// It closes the log: no frame follows it in the segment, and the next writer begins another
    /// segment.
    End,
    /// It is the first page of a segment that was allocated in advance, and records how far the log
    /// was durable in the previous segment. It has no sequence number of its own.
    Announcement,
}

impl FrameRole {
    const FLAGS: [(FrameRole, u16); 7] = [
        (FrameRole::Stream, 0),
        (FrameRole::Opening, 1 | 8),
        (FrameRole::Checkpoint, 1),
        (FrameRole::Copy, 2),
        (FrameRole::Padding, 4),
        (FrameRole::End, 16),
        (FrameRole::Announcement, 32),
    ];

    fn flags(self) -> u16 {
        FrameRole::FLAGS.iter().find(|(role, _)| *role == self).map_or(0, |(_, flags)| *flags)
    }

    fn of(flags: u16, page: u32) -> Option<FrameRole> {
        // Version 1 has no flag for openings; they are on the first page.
        let flags = if flags == 1 && page == 0 { 1 | 8 } else { flags };
        FrameRole::FLAGS.iter().find(|(_, known)| *known == flags).map(|(role, _)| *role)
    }

    /// Whether the payload is part of a checkpoint.
    pub fn is_checkpoint(self) -> bool {
        matches!(self, FrameRole::Opening | FrameRole::Checkpoint)
    }

    /// Whether the payload is part of the event stream.
    pub fn is_stream(self) -> bool {
        matches!(self, FrameRole::Stream | FrameRole::Copy)
    }
}

/// The fields of a frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameHeader {
    /// The shard whose log it is.
    pub shard: u16,
    /// The purpose.
    pub role: FrameRole,
    /// Bytes of payload.
    pub payload_len: u32,
    /// The segment.
    pub segment: u64,
    /// The frame's number, consecutive over all segments of the shard.
    pub sequence: u64,
    /// All frames below this sequence were durable when the frame was written.
    pub durable_before: u64,
    /// The expiry clock, in milliseconds since the Unix epoch.
    pub clock_ms: u64,
    /// The offset of the first event that starts in the payload; `u32::MAX` if none does.
    pub first_event: u32,
}

/// The contents of a page where a frame may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// A whole frame.
    Frame(FrameHeader),
    /// No frame: blank pages, an older generation, or a damaged frame.
    Nothing,
    /// The start of a possible frame, with the bytes that are needed to verify it.
    Incomplete(usize),
    /// A whole frame of a newer version.
    NewerVersion(u16),
}

/// Pages that a frame with this payload takes.
pub fn pages(payload_len: usize, page_bytes: usize) -> usize {
    (HEADER_BYTES + payload_len).div_ceil(page_bytes)
}

/// Writes the header of a frame whose payload is already in place. `block` is the identity of the
/// segment's block, `page` the page of the frame in it.
///
/// # Panics
/// Where the frame is shorter than header and payload, or longer than [`MAX_FRAME_BYTES`].
pub fn seal(frame: &mut [u8], header: &FrameHeader, block: u64, page: u32) {
    let end = HEADER_BYTES + index(header.payload_len);
    assert!(
        end <= frame.len() && end <= MAX_FRAME_BYTES,
        "{} bytes of payload do not fit a frame of {} bytes",
        header.payload_len,
        frame.len()
    );
    let flags = header.role.flags();
    put_at(frame, 0, &MAGIC.to_le_bytes());
    put_at(frame, 4, &VERSION.to_le_bytes());
    put_at(frame, 6, &flags.to_le_bytes());
    put_at(frame, 8, &header.shard.to_le_bytes());
    put_at(frame, 10, &[0; 2]);
    put_at(frame, 12, &header.payload_len.to_le_bytes());
    put_at(frame, 16, &header.segment.to_le_bytes());
    put_at(frame, 24, &header.sequence.to_le_bytes());
    put_at(frame, 32, &header.durable_before.to_le_bytes());
    put_at(frame, 40, &header.clock_ms.to_le_bytes());
    put_at(frame, 48, &header.first_event.to_le_bytes());
    put_at(frame, 52, &page.to_le_bytes());
    let sum = checksum(frame, index(header.payload_len), block);
    put_at(frame, CHECKSUM_AT, &sum.to_le_bytes());
}

fn checksum(frame: &[u8], payload_len: usize, block: u64) -> u64 {
    let header = frame.get(..CHECKSUM_AT).unwrap_or_default();
    let payload = frame.get(HEADER_BYTES..HEADER_BYTES + payload_len).unwrap_or_default();
    checksum64(identity(&[block, checksum64(block, header)]), payload)
}

/// The fields of a header that is not verified.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw {
    pub magic: u32,
    version: u16,
    role: Option<FrameRole>,
    page: u32,
    checksum: u64,
    pub header: FrameHeader,
}

/// Reads a header without verifying it; `None` where the bytes end inside it.
pub(super) fn raw_header(bytes: &[u8]) -> Option<Raw> {
    let mut reader = Reader::new(bytes.get(..HEADER_BYTES)?, "a log frame");
    let (magic, version, flags) = (reader.u32().ok()?, reader.u16().ok()?, reader.u16().ok()?);
    let (shard, _) = (reader.u16().ok()?, reader.u16().ok()?);
    let payload_len = reader.u32().ok()?;
    let mut header = FrameHeader {
        shard,
        role: FrameRole::default(),
        payload_len,
        segment: reader.u64().ok()?,
        sequence: reader.u64().ok()?,
        durable_before: reader.u64().ok()?,
        clock_ms: reader.u64().ok()?,
        first_event: reader.u32().ok()?,
    };
    let (page, checksum) = (reader.u32().ok()?, reader.u64().ok()?);
    let role = FrameRole::of(flags, page);
    header.role = role.unwrap_or_default();
    Some(Raw { magic, version, role, page, checksum, header })
}

/// The header at `page` of a superblock whose block is not known, so that the checksum cannot be
/// verified.
pub fn claimed_header(bytes: &[u8], page: u32) -> Option<FrameHeader> {
    let raw = raw_header(bytes)?;
    (raw.magic == MAGIC && raw.page == page).then_some(raw.header)
}

/// Decodes and verifies the frame at `page` of a segment; `bytes` are the segment from that page
/// on, as far as it was read.
pub fn open(bytes: &[u8], block: u64, page: u32) -> Slot {
    let Some(raw) = raw_header(bytes) else { return Slot::Nothing };
    let end = HEADER_BYTES.saturating_add(index(raw.header.payload_len));
    if raw.magic != MAGIC || raw.page != page || end > MAX_FRAME_BYTES {
        return Slot::Nothing;
    }
    if bytes.len() < end {
        return Slot::Incomplete(end);
    }
    let whole = checksum(bytes, end - HEADER_BYTES, block) == raw.checksum;
    if !whole && !planted::bug(Bug::FrameChecksumIgnored) {
        return Slot::Nothing;
    }
    match raw.role {
        Some(_) if (1..=VERSION).contains(&raw.version) => Slot::Frame(raw.header),
        _ => Slot::NewerVersion(raw.version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{cases, noise, rng};
    use proptest::prelude::*;

    fn header(payload_len: u32) -> FrameHeader {
        FrameHeader {
            shard: 3,
            role: FrameRole::FLAGS[payload_len as usize % FrameRole::FLAGS.len()].0,
            payload_len,
            segment: 9,
            sequence: 1_000,
            durable_before: 998,
            clock_ms: 1_700_000_000_000,
            first_event: 5,
        }
    }

    fn sealed(payload: &[u8], page: u32) -> Vec<u8> {
        let mut frame = vec![0; pages(payload.len(), 512) * 512];
        frame[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
        seal(&mut frame, &header(payload.len() as u32), 77, page);
        frame
    }

    #[test]
    fn frames_are_read_back() {
        let mut rng = rng(61);
        for len in [0, 1, 447, 448, 449, 5_000, MAX_FRAME_BYTES - HEADER_BYTES] {
            let payload = noise(&mut rng, len);
            let frame = sealed(&payload, 4);
            assert_eq!(open(&frame, 77, 4), Slot::Frame(header(len as u32)));
            for cut in [HEADER_BYTES, HEADER_BYTES + len / 2] {
                if cut < HEADER_BYTES + len {
                    assert_eq!(open(&frame[..cut], 77, 4), Slot::Incomplete(HEADER_BYTES + len));
                }
            }
            assert_eq!(open(&frame[..HEADER_BYTES - 1], 77, 4), Slot::Nothing);
        }
    }

    #[test]
    fn openings_of_version_1_are_identified_by_their_page() {
        for (page, role) in [(0, FrameRole::Opening), (1, FrameRole::Checkpoint)] {
            let mut frame = vec![0; 512];
            let header = FrameHeader { role: FrameRole::Checkpoint, ..header(0) };
            seal(&mut frame, &header, 77, page);
            put_at(&mut frame, 4, &1u16.to_le_bytes());
            let sum = checksum(&frame, 0, 77);
            put_at(&mut frame, CHECKSUM_AT, &sum.to_le_bytes());
            assert_eq!(open(&frame, 77, page), Slot::Frame(FrameHeader { role, ..header }));
        }
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed_and_padding_does_not_count() {
        let mut rng = rng(62);
        let frame = sealed(&noise(&mut rng, 700), 4);
        for at in 0..frame.len() {
            for bit in 0..8 {
                let mut bytes = frame.clone();
                bytes[at] ^= 1 << bit;
                let whole = matches!(open(&bytes, 77, 4), Slot::Frame(_));
                assert_eq!(whole, at >= HEADER_BYTES + 700, "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn frames_at_a_wrong_page_or_of_an_earlier_generation_are_refused() {
        let frame = sealed(b"payload", 4);
        assert_eq!(open(&frame, 77, 5), Slot::Nothing);
        assert_eq!(open(&frame, 76, 4), Slot::Nothing);
    }

    #[test]
    fn only_the_stream_and_its_copies_carry_events() {
        let carrying = FrameRole::FLAGS.map(|(role, _)| (role.is_stream(), role.is_checkpoint()));
        let expected = [(true, false), (false, true), (false, true), (true, false)];
        assert_eq!(carrying[..4], expected);
        assert_eq!(carrying[4..], [(false, false); 3]);
        let flags = FrameRole::FLAGS.map(|(role, _)| role.flags());
        assert_eq!(flags, [0, 9, 1, 2, 4, 16, 32], "as docs/formats.md has them");
    }

    #[test]
    fn a_claimed_header_needs_the_magic_number_and_its_own_page() {
        let mut frame = sealed(b"payload", 4);
        assert_eq!(claimed_header(&frame, 4), Some(header(7)));
        assert_eq!(claimed_header(&frame, 5), None);
        frame[0] ^= 1;
        assert_eq!(claimed_header(&frame, 4), None);
    }

    #[test]
    fn a_newer_version_is_distinguished_from_damage() {
        let mut frame = sealed(b"payload", 0);
        put_at(&mut frame, 4, &7u16.to_le_bytes());
        let sum = checksum(&frame, 7, 77);
        put_at(&mut frame, CHECKSUM_AT, &sum.to_le_bytes());
        assert_eq!(open(&frame, 77, 0), Slot::NewerVersion(7));
    }

    proptest! {
        #![proptest_config(cases(2_000, 63))]

        #[test]
        fn any_bytes_are_no_frame(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut tempting = b"SFLG\x01\0\0\0".to_vec();
            tempting.extend_from_slice(&bytes);
            for bytes in [bytes, tempting] {
                let slot = open(&bytes, 1, 2);
                prop_assert!(matches!(slot, Slot::Nothing | Slot::Incomplete(_)), "{slot:?}");
            }
        }
    }
}
