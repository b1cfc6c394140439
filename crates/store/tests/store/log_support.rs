//! Reads and edits the segments and frames of a log in the file of a [`Testbed`]'s device.

#![expect(clippy::unwrap_used, reason = "tests end at the first error")]
#![allow(dead_code, reason = "each test uses a part")]

use bytes::Bytes;
use softflash_runtime::RealExecutor;
use softflash_store::on_flash::frame::{self, HEADER_BYTES, Slot};
use softflash_store::on_flash::frame::{FrameHeader, FrameRole};
use softflash_store::{Store, StoreError, open_all};
use softflash_testing::Testbed;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// The offset of the first unit.
const LABEL_BYTES: u64 = 1 << 20;
/// Header pages of a superblock.
const HEADER_PAGES: u64 = 2;

/// A frame in the file.
#[derive(Debug, Clone)]
pub struct FoundFrame {
    pub header: FrameHeader,
    pub page: u32,
    /// Its offset in the file.
    pub at: u64,
    /// Header and payload.
    pub covered: u64,
}

/// A segment in the file.
#[derive(Debug, Clone)]
pub struct FoundSegment {
    pub number: u64,
    pub block: u64,
    /// The offset of its payload in the file.
    pub at: u64,
    /// The identity of its block.
    pub identity: u64,
    /// Without its announcement.
    pub frames: Vec<FoundFrame>,
    /// It was allocated in advance, and holds only the announcement of the previous segment.
    pub only_announces: bool,
    /// Its capacity in bytes.
    pub capacity: usize,
}

impl FoundSegment {
    /// The page behind the last frame.
    pub fn end_page(&self) -> u32 {
        self.frames.last().map_or(0, |last| {
            last.page + frame::pages(last.header.payload_len as usize, PAGE) as u32
        })
    }
}

/// The device's file and the size of its superblocks.
pub struct Raw {
    file: File,
    superblock_bytes: u64,
    uuid: u128,
}

impl Raw {
    pub fn open(testbed: &Testbed, superblock_bytes: u64) -> Raw {
        let uuid = testbed.device().info().uuid;
        let file = OpenOptions::new().read(true).write(true).open(testbed.path()).unwrap();
        Raw { file, superblock_bytes, uuid }
    }

    /// All segments of the log of `shard` that were begun, by number.
    pub fn segments(&self, shard: u16) -> Vec<FoundSegment> {
        let mut segments = self.all_segments(shard);
        segments.retain(|segment| !segment.only_announces);
        segments
    }

    /// The segments of `shard` that hold only an announcement, by number.
    pub fn announcing(&self, shard: u16) -> Vec<FoundSegment> {
        let mut segments = self.all_segments(shard);
        segments.retain(|segment| segment.only_announces);
        segments
    }

    /// The unit of a segment, on a device of `units` units.
    pub fn unit_of(&self, segment: &FoundSegment, units: u64) -> u64 {
        (segment.at - LABEL_BYTES) / self.unit_bytes(units)
    }

    /// Replaces the contents of a unit by zeros, on a device of `units` units.
    pub fn lose_unit(&self, unit: u64, units: u64) {
        let bytes = self.unit_bytes(units);
        self.write(LABEL_BYTES + unit * bytes, &vec![0; bytes as usize]);
    }

    fn unit_bytes(&self, units: u64) -> u64 {
        let stride = self.superblock_bytes + HEADER_PAGES * PAGE as u64;
        let superblocks = (self.file.metadata().unwrap().len() - LABEL_BYTES) / stride;
        superblocks / units * stride
    }

    /// Erases the announcements of segments of `shard`, as if the power cut came before their
    /// writes.
    pub fn erase_announcements(&self, shard: u16) {
        for segment in self.announcing(shard) {
            let headers = HEADER_PAGES * PAGE as u64;
            self.write(segment.at - headers, &vec![0; (self.superblock_bytes + headers) as usize]);
        }
    }

    fn all_segments(&self, shard: u16) -> Vec<FoundSegment> {
        let stride = self.superblock_bytes + HEADER_PAGES * PAGE as u64;
        let end = self.file.metadata().unwrap().len();
        let mut segments = Vec::new();
        let mut at = LABEL_BYTES;
        while at + stride <= end {
            let mut opening = vec![0; PAGE];
            self.file.read_exact_at(&mut opening, at + PAGE as u64).unwrap();
            let word = |at: usize| u64::from_le_bytes(opening[at..at + 8].try_into().unwrap());
            let is_log = opening.starts_with(b"SFopen")
                && opening[56..60] == b"SFBL"[..]
                && opening[61] == 1;
            if is_log && word(64) >> 48 == u64::from(shard) {
                segments.push(self.segment(word(72), word(64), at + HEADER_PAGES * PAGE as u64));
            }
            at += stride;
        }
        segments.sort_by_key(|segment| (segment.number, segment.block));
        segments
    }

    fn segment(&self, number: u64, block: u64, at: u64) -> FoundSegment {
        let parts = [self.uuid as u64, (self.uuid >> 64) as u64, block];
        let identity = softflash_base::checksum::identity(&parts);
        let capacity = self.superblock_bytes as usize;
        let mut bytes = vec![0; capacity];
        self.file.read_exact_at(&mut bytes, at).unwrap();
        let (mut frames, mut page, mut announces) = (Vec::new(), 0u32, false);
        while let Some(rest) = bytes.get(page as usize * PAGE..)
            && let Slot::Frame(header) = frame::open(rest, identity, page)
        {
            if header.role == FrameRole::Announcement {
                announces = true;
                page += 1;
                continue;
            }
            frames.push(FoundFrame {
                header,
                page,
                at: at + u64::from(page) * PAGE as u64,
                covered: (HEADER_BYTES + header.payload_len as usize) as u64,
            });
            page += frame::pages(header.payload_len as usize, PAGE) as u32;
        }
        let only_announces = announces && frames.is_empty();
        FoundSegment { number, block, at, identity, frames, only_announces, capacity }
    }

    /// Flips a bit.
    pub fn flip(&self, at: u64, bit: u8) {
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, at).unwrap();
        self.file.write_all_at(&[byte[0] ^ 1 << bit], at).unwrap();
    }

    /// Overwrites.
    pub fn write(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at).unwrap();
    }

    /// Zeros a frame, its padding included.
    pub fn zero(&self, frame: &FoundFrame) {
        let pages = frame::pages(frame.header.payload_len as usize, PAGE);
        self.write(frame.at, &vec![0; pages * PAGE]);
    }

    /// The payload of a frame.
    pub fn payload(&self, frame: &FoundFrame) -> Vec<u8> {
        let mut payload = vec![0; frame.header.payload_len as usize];
        self.file.read_exact_at(&mut payload, frame.at + HEADER_BYTES as u64).unwrap();
        payload
    }

    /// Replaces the payload of a frame by one of the same length.
    pub fn reseal(&self, segment: &FoundSegment, frame: &FoundFrame, payload: &[u8]) {
        assert_eq!(payload.len(), frame.header.payload_len as usize);
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.extend_from_slice(payload);
        frame::seal(&mut bytes, &frame.header, segment.identity, frame.page);
        self.write(frame.at, &bytes);
    }

    /// Writes a frame behind the last one of a segment, like a writer that dies in the middle of an
    /// event. Returns false where there is no room.
    pub fn append(&self, segment: &FoundSegment, durable_before: u64, payload: &[u8]) -> bool {
        let page = segment.end_page();
        let mut bytes = vec![0; frame::pages(payload.len(), PAGE) * PAGE];
        if page as usize * PAGE + bytes.len() > segment.capacity {
            return false;
        }
        let Some(last) = segment.frames.last() else { return false };
        bytes[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
        let header = FrameHeader {
            role: FrameRole::Stream,
            payload_len: payload.len() as u32,
            sequence: last.header.sequence + 1,
            durable_before,
            first_event: 0,
            ..last.header
        };
        frame::seal(&mut bytes, &header, segment.identity, page);
        self.write(segment.at + u64::from(page) * PAGE as u64, &bytes);
        true
    }
}

/// Tries to open the store.
pub fn try_open(testbed: &Testbed) -> Result<(), StoreError> {
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    executor.block_on(async {
        open_all(testbed.device(), &testbed.layout, &testbed.options, &runtime).await.map(drop)
    })
}

/// The value of a key.
pub async fn get(store: &Store, key: &Bytes) -> Option<Bytes> {
    store.begin().get(key).await.unwrap().map(|entry| entry.value.to_bytes())
}
