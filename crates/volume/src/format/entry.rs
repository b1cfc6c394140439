//! An entry of a frame: one mapping unit that the frame holds, or a range that it discards.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use super::bytes::Reader;
use crate::image::ImageId;

/// Bytes of an entry.
pub(crate) const ENTRY_BYTES: usize = 24;

/// The greatest number of an image: entries have 24 bits for it.
pub(crate) const LAST_IMAGE: u32 = (1 << 24) - 1;

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Data that a client wrote to a volume.
    Data { image: ImageId, lba: u32, checksum: u64 },
    /// Data of an image that collection moved: unlike a write, this lets no snapshot keep older
    /// data.
    Moved { image: ImageId, lba: u32, checksum: u64 },
    /// Data that were overwritten while collection moved them.
    Void,
    /// A range of an image that reads as zeros from now on.
    Discard { image: ImageId, lba: u32, count: u32 },
    /// A change of the images, `bytes` long in its mapping unit.
    Operation { bytes: u32, checksum: u64 },
    /// One half of a leaf of the map.
    Leaf { leaf: u32, half: u32, checksum: u64 },
    /// A part of a root, of `parts`.
    Root { root: u64, part: u32, parts: u32, checksum: u64 },
}

impl Entry {
    /// The checksum of the mapping unit that the frame holds for this entry; `None` if there is
    /// nothing to check.
    pub fn checksum(self) -> Option<u64> {
        match self {
            Entry::Data { checksum, .. }
            | Entry::Moved { checksum, .. }
            | Entry::Operation { checksum, .. }
            | Entry::Leaf { checksum, .. }
            | Entry::Root { checksum, .. } => Some(checksum),
            Entry::Discard { .. } | Entry::Void => None,
        }
    }

    /// Whether the frame holds a mapping unit for this entry.
    pub fn has_data(self) -> bool {
        !matches!(self, Entry::Discard { .. })
    }

    /// The seed of that checksum: the identity of the contents, which a move does not change.
    pub fn seed(self) -> u64 {
        match self {
            Entry::Data { .. } | Entry::Moved { .. } | Entry::Discard { .. } | Entry::Void => 0,
            Entry::Operation { .. } => OPERATION_SEED,
            Entry::Leaf { leaf, half, .. } => LEAF_SEED ^ (u64::from(leaf) << 1 | u64::from(half)),
            Entry::Root { root, part, .. } => ROOT_SEED ^ root << 24 ^ u64::from(part),
        }
    }

    /// Encodes into [`ENTRY_BYTES`].
    pub fn encode(self) -> [u8; ENTRY_BYTES] {
        // Kind and upper number share a word: 8 and 24 bits.
        let (kind, upper, lower, middle, checksum) = match self {
            Entry::Data { image, lba, checksum } => (1, image.0, lba, 0, checksum),
            Entry::Discard { image, lba, count } => (2, image.0, lba, u64::from(count), 0),
            Entry::Operation { bytes, checksum } => (3, 0, bytes, 0, checksum),
            Entry::Leaf { leaf, half, checksum } => (4, half, leaf, 0, checksum),
            Entry::Root { root, part, parts, checksum } => (5, parts, part, root, checksum),
            Entry::Void => (6, 0, 0, 0, 0),
            Entry::Moved { image, lba, checksum } => (7, image.0, lba, 0, checksum),
        };
        assert!(upper <= LAST_IMAGE, "{self:?} has a number of more than 24 bits");
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&(kind | upper << 8).to_le_bytes());
        bytes[4..8].copy_from_slice(&lower.to_le_bytes());
        bytes[8..16].copy_from_slice(&middle.to_le_bytes());
        bytes[16..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes an entry; `None` for a kind that this version does not know.
    pub fn decode(bytes: &[u8]) -> Option<Entry> {
        let mut reader = Reader(bytes);
        let word = reader.u32()?;
        let (lower, middle, checksum) = (reader.u32()?, reader.u64()?, reader.u64()?);
        let upper = word >> 8;
        let image = ImageId(upper);
        match word & 0xff {
            1 => Some(Entry::Data { image, lba: lower, checksum }),
            2 => Some(Entry::Discard { image, lba: lower, count: u32::try_from(middle).ok()? }),
            3 => Some(Entry::Operation { bytes: lower, checksum }),
            4 => Some(Entry::Leaf { leaf: lower, half: upper, checksum }),
            5 => Some(Entry::Root { root: middle, part: lower, parts: upper, checksum }),
            6 => Some(Entry::Void),
            7 => Some(Entry::Moved { image, lba: lower, checksum }),
            _ => None,
        }
    }
}

/// Seeds that keep the contents of different kinds apart.
const OPERATION_SEED: u64 = 0x6f70_6572_6174_696f;
const LEAF_SEED: u64 = 0x6c65_6166_2d6d_6170;
const ROOT_SEED: u64 = 0x726f_6f74_2d6d_6170;

/// The seed of the checksum of an image's data: the volume that wrote it, and its number there.
pub(crate) fn data_seed(origin: ImageId, lba: u32) -> u64 {
    u64::from(origin.0) << 32 | u64::from(lba)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_decode_to_what_was_encoded() {
        let image = ImageId(LAST_IMAGE);
        for entry in [
            Entry::Data { image, lba: u32::MAX, checksum: u64::MAX },
            Entry::Discard { image: ImageId(1), lba: 7, count: u32::MAX },
            Entry::Operation { bytes: 99, checksum: 5 },
            Entry::Leaf { leaf: 77, half: 1, checksum: 6 },
            Entry::Root { root: 1 << 40, part: 3, parts: 9, checksum: 8 },
            Entry::Void,
            Entry::Moved { image: ImageId(3), lba: 4, checksum: 5 },
        ] {
            assert_eq!(Entry::decode(&entry.encode()), Some(entry));
        }
    }

    #[test]
    fn unknown_kinds_and_short_entries_are_refused() {
        assert_eq!(Entry::decode(&[9; ENTRY_BYTES]), None);
        assert_eq!(Entry::decode(&[0; ENTRY_BYTES]), None);
        let whole = Entry::Operation { bytes: 1, checksum: 2 }.encode();
        assert_eq!(Entry::decode(&whole[..ENTRY_BYTES - 1]), None);
    }

    #[test]
    fn contents_of_different_kinds_and_numbers_have_different_seeds() {
        let leaf = |leaf, half| Entry::Leaf { leaf, half, checksum: 0 }.seed();
        let root = |root, part| Entry::Root { root, part, parts: 2, checksum: 0 }.seed();
        let mut seeds =
            vec![leaf(0, 0), leaf(0, 1), leaf(1, 0), root(1, 0), root(1, 1), root(2, 0)];
        seeds.push(Entry::Operation { bytes: 1, checksum: 0 }.seed());
        seeds.extend([
            data_seed(ImageId(1), 0),
            data_seed(ImageId(1), 1),
            data_seed(ImageId(2), 0),
        ]);
        let all = seeds.len();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), all);
    }
}
