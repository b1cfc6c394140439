//! Finds the frames of volumes on a `file` device by their format, to damage exactly one part.
//!
//! Offsets follow from `docs/formats-ftl.md` and `docs/formats-volume.md`: a second implementation,
//! as in `damage.rs`.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const LABEL_AREA: u64 = 1 << 20;
const HEADER_PAGES: u64 = 2;
const UNIT_BYTES: u64 = 4096;

/// Kinds of entries.
pub const LEAF: u8 = 4;
pub const ROOT: u8 = 5;

/// A frame.
pub struct Frame {
    /// The offset of its head.
    pub head: u64,
    /// The kinds of its entries with the offsets of their mapping units.
    pub entries: Vec<(u8, u64)>,
}

/// The device of a data directory.
pub struct VolumeMap {
    path: PathBuf,
    bytes: Vec<u8>,
    page: u64,
    superblock: u64,
    superblocks_of_unit: u64,
}

impl VolumeMap {
    /// Reads the device in a data directory.
    pub fn read(data: &Path) -> VolumeMap {
        let path = data.join("flash.sfd");
        let geometry = softflash_device::inspect(&path).unwrap().geometry;
        VolumeMap {
            bytes: fs::read(&path).unwrap(),
            path,
            page: geometry.page_bytes.into(),
            superblock: geometry.superblock_bytes(),
            superblocks_of_unit: geometry.blocks_per_plane.into(),
        }
    }

    /// The frames of volumes in a unit.
    pub fn frames(&self, unit: u64) -> Vec<Frame> {
        let first = unit * self.superblocks_of_unit;
        let superblocks = first..first + self.superblocks_of_unit;
        superblocks.flat_map(|number| self.frames_of(number)).collect()
    }

    /// The offsets of the mapping units of a kind in a unit.
    pub fn all(&self, unit: u64, kind: u8) -> Vec<u64> {
        let frames = self.frames(unit).into_iter();
        let entries = frames.flat_map(|frame| frame.entries);
        entries.filter(|(of, _)| *of == kind).map(|(_, offset)| offset).collect()
    }

    fn frames_of(&self, superblock: u64) -> Vec<Frame> {
        let offset = LABEL_AREA + superblock * self.superblock;
        let opening = offset + self.page;
        if self.at(opening, 6) != b"SFopen" || self.at(opening + 56, 4) != b"SFVO" {
            return Vec::new();
        }
        let (mut frames, mut head) = (Vec::new(), offset + HEADER_PAGES * self.page);
        while head + self.page <= offset + self.superblock && self.at(head, 8) == b"SFVFRAME" {
            let count = u64::from(self.at(head + 10, 1)[0]);
            let entries = (0..count).map(|entry| {
                let kind = self.at(head + 64 + 24 * entry, 1)[0];
                (kind, head + (entry + 1) * UNIT_BYTES)
            });
            frames.push(Frame { head, entries: entries.collect() });
            let pages = u32::from_le_bytes(self.at(head + 12, 4).try_into().unwrap());
            head += u64::from(pages.max(1)) * self.page;
        }
        frames
    }

    fn at(&self, offset: u64, bytes: usize) -> &[u8] {
        &self.bytes[offset as usize..][..bytes]
    }

    /// The offsets at which these bytes are on the device.
    pub fn find(&self, content: &[u8]) -> Vec<u64> {
        let units = self.bytes.chunks(UNIT_BYTES as usize);
        let offsets = (0..).step_by(UNIT_BYTES as usize);
        let found = offsets.zip(units).filter(|(_, unit)| unit.starts_with(content));
        found.map(|(offset, _)| offset).collect()
    }

    /// Flips a bit in the device at each of these offsets.
    pub fn flip(&self, offsets: impl IntoIterator<Item = u64>) {
        let file = File::options().write(true).open(&self.path).unwrap();
        for offset in offsets {
            let byte = self.bytes[offset as usize] ^ 8;
            file.write_all_at(&[byte], offset).unwrap();
        }
    }
}
