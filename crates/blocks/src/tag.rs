//! The tag in a superblock's opening header, which names the block that it holds.

#![cfg_attr(
    not(test),
    deny(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_lossless
    )
)]

use softflash_base::ShardId;
use softflash_ftl::OwnerTag;

/// The permanent name of a block: ids are never used twice. The upper 16 bits are the shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BlockId(pub u64);

impl BlockId {
    /// The first id of a shard.
    pub fn first(shard: ShardId) -> BlockId {
        BlockId(u64::from(shard.0) << 48 | 1)
    }
}

impl std::fmt::Display for BlockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "block {}:{}", self.0 >> 48, self.0 & ((1 << 48) - 1))
    }
}

/// The contents of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// A segment of the shard's log.
    Log {
        /// Its number, which orders the segments of the log.
        segment: u64,
        /// The segment that it continues; 0 for none.
        after: u64,
    },
    /// A patch of a slice.
    Patch {
        /// The slice.
        slice: u16,
    },
    /// The parity of a group of patches.
    Parity,
    /// Separated values.
    Value,
    /// Bytes of a user of the block layer.
    User,
}

/// The contents of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// The block inside.
    pub id: BlockId,
    /// Its contents.
    pub kind: BlockKind,
    /// The number of the attempt to write the block, from 0: where a crash leaves several, the last
    /// one counts.
    pub attempt: u8,
    /// Which of its copies this is, where the store keeps two.
    pub copy: Option<u8>,
}

/// Magic number of a tag of this layer: "SFBL".
const MAGIC: u32 = u32::from_le_bytes(*b"SFBL");
/// Version of the tag of a block with one copy.
const VERSION: u8 = 2;
/// Version of the tag of a block with two copies: a program that does not know copies must not take
/// a copy for a failed attempt.
const VERSION_OF_COPIES: u8 = 3;

/// Encodes a tag; see `docs/formats.md`.
pub fn encode(tag: Tag) -> OwnerTag {
    let encoded = encoded(tag);
    assert_eq!(decode(&encoded), Some(tag), "a tag is not decodable");
    encoded
}

fn encoded(Tag { id, kind, attempt, copy }: Tag) -> OwnerTag {
    let (code, detail, after) = match kind {
        BlockKind::Log { segment, after } => (1, segment, after),
        BlockKind::Patch { slice } => (2, u64::from(slice), 0),
        BlockKind::User => (3, 0, 0),
        BlockKind::Parity => (4, 0, 0),
        BlockKind::Value => (5, 0, 0),
    };
    let mut tag = [0; 64];
    tag[..4].copy_from_slice(&MAGIC.to_le_bytes());
    tag[4] = if copy.is_some() { VERSION_OF_COPIES } else { VERSION };
    tag[5] = code;
    tag[6] = attempt;
    tag[7] = copy.unwrap_or(0);
    tag[8..16].copy_from_slice(&id.0.to_le_bytes());
    tag[16..24].copy_from_slice(&detail.to_le_bytes());
    tag[24..32].copy_from_slice(&after.to_le_bytes());
    OwnerTag(tag)
}

/// Decodes a tag; `None` where it is not a tag of this layer, or its version is newer.
pub fn decode(tag: &OwnerTag) -> Option<Tag> {
    let word = |at: usize| {
        let bytes = tag.0.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let version = tag.0[4];
    if tag.0[..4] != MAGIC.to_le_bytes() || !(1..=VERSION_OF_COPIES).contains(&version) {
        return None;
    }
    let (id, detail) = (BlockId(word(8)?), word(16)?);
    let kind = match tag.0[5] {
        // In version 1 each segment continues the segment with the previous number.
        1 if version == 1 => BlockKind::Log { segment: detail, after: detail.saturating_sub(1) },
        1 => BlockKind::Log { segment: detail, after: word(24)? },
        2 => BlockKind::Patch { slice: u16::try_from(detail).ok()? },
        3 => BlockKind::User,
        4 => BlockKind::Parity,
        5 => BlockKind::Value,
        _ => return None,
    };
    let copy = match (version, tag.0[7]) {
        (VERSION_OF_COPIES, copy @ 0..=1) => Some(copy),
        (VERSION_OF_COPIES, _) => return None,
        _ => None,
    };
    Some(Tag { id, kind, attempt: tag.0[6], copy })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoded_tag_equals_the_encoded_one() {
        let id = BlockId(BlockId::first(ShardId(3)).0 + 77);
        let log = BlockKind::Log { segment: 9, after: 6 };
        let (patch, value) = (BlockKind::Patch { slice: 5 }, BlockKind::Value);
        for kind in [log, patch, BlockKind::User, BlockKind::Parity, value] {
            for copy in [None, Some(0), Some(1)] {
                let tag = Tag { id, kind, attempt: 2, copy };
                assert_eq!(decode(&encode(tag)), Some(tag));
            }
        }
        let mut version_1 = encode(Tag { id, kind: log, attempt: 0, copy: None });
        version_1.0[4] = 1;
        version_1.0[24..32].fill(0);
        let kind = BlockKind::Log { segment: 9, after: 8 };
        assert_eq!(decode(&version_1), Some(Tag { id, kind, attempt: 0, copy: None }));
        assert_eq!(decode(&OwnerTag([0; 64])), None);
    }

    #[test]
    fn a_block_with_one_copy_has_a_tag_of_version_2_and_a_copy_of_two_version_3() {
        let tag = Tag { id: BlockId(1), kind: BlockKind::User, attempt: 1, copy: None };
        assert_eq!(encode(tag).0[4..8], [2, 3, 1, 0]);
        let second = Tag { copy: Some(1), ..tag };
        assert_eq!(encode(second).0[4..8], [3, 3, 1, 1]);
    }
}
