//! Finds structures on a `file` device by their format, to damage exactly one of them.
//!
//! Offsets follow from `docs/formats-ftl.md` (headers), `docs/formats.md` (log and patches) and the
//! device label. They are deliberately a second implementation: if program and documents differ,
//! these tests fail.

use softflash_device::DeviceInfo;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Offset of the units; the label's two copies are before it.
const LABEL_AREA: u64 = 1 << 20;
/// Offsets of the label's copies.
pub const LABEL_COPIES: [u64; 2] = [0, 512 << 10];
/// Pages of a superblock before its payload.
const HEADER_PAGES: u64 = 2;

/// Contents of an open superblock, by its owner's tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A segment of a shard's log.
    Log { shard: u64, segment: u64 },
    /// A patch.
    Patch,
}

/// A superblock that is live according to its headers.
#[derive(Debug, Clone, Copy)]
pub struct Superblock {
    /// Offset of its first page in the file: the erase header.
    pub offset: u64,
    /// Offset of the opening header.
    pub opening: u64,
    /// Offset of the payload.
    pub payload: u64,
    pub holds: Holds,
}

/// A frame of the log.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Offset of its header.
    pub offset: u64,
    /// Bytes of payload after the 64 bytes of the header.
    pub payload_len: u64,
}

/// Offsets in a patch.
#[derive(Debug, Clone, Copy)]
pub struct Patch {
    /// The fixed header.
    pub header: u64,
    /// First and last key, after it.
    pub keys: u64,
    /// The fences.
    pub fences: u64,
    /// The filter.
    pub filter: u64,
    /// The first block.
    pub data: u64,
    /// End of the last block.
    pub end: u64,
}

/// A device file opened for inspection.
pub struct DeviceMap {
    path: PathBuf,
    bytes: Vec<u8>,
    page: u64,
    superblock: u64,
    superblocks: u64,
    superblocks_of_unit: u64,
}

impl DeviceMap {
    /// Reads the device in a data directory.
    pub fn read(data: &Path) -> DeviceMap {
        let path = data.join("flash.sfd");
        let info: DeviceInfo = softflash_device::inspect(&path).expect("the label can be read");
        let bytes = fs::read(&path).expect("the device can be read");
        let superblock = info.geometry.superblock_bytes();
        let superblocks = u64::from(info.units) * u64::from(info.geometry.blocks_per_plane);
        let page = u64::from(info.geometry.page_bytes);
        assert_eq!(bytes.len() as u64, LABEL_AREA + superblocks * superblock, "the device's size");
        let superblocks_of_unit = u64::from(info.geometry.blocks_per_plane);
        DeviceMap { path, bytes, page, superblock, superblocks, superblocks_of_unit }
    }

    /// The superblocks that hold a log segment or a patch.
    pub fn superblocks(&self) -> Vec<Superblock> {
        (0..self.superblocks).filter_map(|number| self.superblock(number)).collect()
    }

    fn superblock(&self, number: u64) -> Option<Superblock> {
        let offset = LABEL_AREA + number * self.superblock;
        let opening = offset + self.page;
        let opened = self.magic(opening) == *b"SFopen\0\0";
        let erased_since =
            self.magic(offset) == *b"SFerase\0" && self.word(offset + 40) > self.word(opening + 40);
        let tag = opening + 56;
        if !opened || erased_since || self.bytes[tag as usize..][..4] != *b"SFBL" {
            return None;
        }
        let holds = match self.bytes[tag as usize + 5] {
            1 => Holds::Log { shard: self.word(tag + 8) >> 48, segment: self.word(tag + 16) },
            2 => Holds::Patch,
            _ => return None,
        };
        let payload = offset + HEADER_PAGES * self.page;
        Some(Superblock { offset, opening, payload, holds })
    }

    /// For each shard, the newest log segment that holds more than its announcement; returns the
    /// one with the most frames, and its frames.
    pub fn log(&self) -> (Superblock, Vec<Frame>) {
        let mut all = self.superblocks();
        all.retain(|superblock| self.frames(superblock).len() > 1);
        let newest_of = |shard: u64| {
            let segment = |superblock: &Superblock| match superblock.holds {
                Holds::Log { shard: of, segment } if of == shard => Some(segment),
                _ => None,
            };
            all.iter().filter(|s| segment(s).is_some()).max_by_key(|s| segment(s)).copied()
        };
        (0..64)
            .filter_map(newest_of)
            .map(|superblock| (superblock, self.frames(&superblock)))
            .max_by_key(|(_, frames)| frames.len())
            .expect("a log")
    }

    /// All frames of all log segments.
    pub fn all_frames(&self) -> Vec<Frame> {
        self.superblocks().iter().flat_map(|superblock| self.frames(superblock)).collect()
    }

    fn frames(&self, segment: &Superblock) -> Vec<Frame> {
        let end = segment.offset + self.superblock;
        let (mut frames, mut offset) = (Vec::new(), segment.payload);
        while offset < end && self.bytes[offset as usize..][..4] == *b"SFLG" {
            let payload_len = self.word(offset + 12) & 0xffff_ffff;
            frames.push(Frame { offset, payload_len });
            offset += (64 + payload_len).div_ceil(self.page) * self.page;
        }
        frames
    }

    /// The patches that contain these bytes, with the offset of the bytes in each.
    pub fn patches_with(&self, bytes: &[u8]) -> Vec<(Superblock, Patch, u64)> {
        let patches = self.superblocks().into_iter().filter(|s| s.holds == Holds::Patch);
        patches
            .filter_map(|superblock| {
                let patch = self.patch(&superblock)?;
                let within = &self.bytes[patch.data as usize..patch.end as usize];
                let at = find(within, bytes)? as u64;
                Some((superblock, patch, patch.data + at))
            })
            .collect()
    }

    fn patch(&self, superblock: &Superblock) -> Option<Patch> {
        let header = superblock.payload;
        if self.magic(header) != *b"SFPATCH\0" {
            return None;
        }
        let number = |place: u64| self.word(header + 40 + 4 * place) & 0xffff_ffff;
        let (metadata, data_len) = (number(4), number(5));
        let (first_key, last_key) = (number(7), number(8));
        let (fences_len, deleted_len, filter_len) = (number(9), number(10), number(11));
        let keys = header + 128;
        let fences = keys + first_key + last_key;
        let filter = fences + fences_len + deleted_len;
        let data = header + metadata;
        assert!(fences_len > 0 && filter_len > 0 && filter + filter_len <= data, "{header}");
        Some(Patch { header, keys, fences, filter, data, end: data + data_len })
    }

    /// Flips a bit in each of these bytes of a copy of the device.
    pub fn flip(&self, copy: &Path, offsets: &[u64]) {
        let file = File::options().write(true).open(copy).expect("the copy can be written");
        for offset in offsets {
            let byte = self.bytes[*offset as usize] ^ 0x10;
            file.write_all_at(&[byte], *offset).expect("the copy can be written");
        }
    }

    /// Start and end of a unit.
    pub fn unit(&self, unit: u64) -> (u64, u64) {
        let bytes = self.superblocks_of_unit * self.superblock;
        (LABEL_AREA + unit * bytes, LABEL_AREA + (unit + 1) * bytes)
    }

    /// The contents of a unit of the device as they are now.
    pub fn image(&self, unit: u64) -> Vec<u8> {
        let (start, end) = self.unit(unit);
        let mut bytes = vec![0; (end - start) as usize];
        let file = File::open(&self.path).expect("the device");
        file.read_exact_at(&mut bytes, start).expect("the device can be read");
        bytes
    }

    /// Puts an image of a unit in its place.
    pub fn restore(&self, unit: u64, image: &[u8]) {
        let file = File::options().write(true).open(&self.path).expect("the device");
        file.write_all_at(image, self.unit(unit).0).expect("the device can be written");
    }

    /// Exchanges the contents of two units of the device.
    pub fn exchange(&self, one: u64, other: u64) {
        let (of_one, of_other) = (self.image(one), self.image(other));
        self.restore(one, &of_other);
        self.restore(other, &of_one);
    }

    /// The device's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn magic(&self, offset: u64) -> [u8; 8] {
        self.word(offset).to_le_bytes()
    }

    fn word(&self, offset: u64) -> u64 {
        let at = offset as usize;
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }
}

/// Offset of `part` in `whole`.
fn find(whole: &[u8], part: &[u8]) -> Option<usize> {
    let (first, _) = part.split_first_chunk::<8>()?;
    let starts = whole.array_windows::<8>().enumerate().filter(|(_, window)| *window == first);
    starts.map(|(at, _)| at).find(|at| whole[*at..].starts_with(part))
}
