//! What the block layer writes into the opening header of a superblock to know its block again.

use softflash_base::ShardId;
use softflash_ftl::OwnerTag;

/// Names a block for ever: ids are never used twice. The upper 16 bits are the shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BlockId(pub u64);

impl BlockId {
    /// The first id of a shard.
    pub fn first(shard: ShardId) -> BlockId {
        BlockId(u64::from(shard.0) << 48 | 1)
    }

    /// The shard that made the block.
    pub fn shard(self) -> ShardId {
        ShardId((self.0 >> 48) as u16)
    }
}

impl std::fmt::Display for BlockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "block {}:{}", self.0 >> 48, self.0 & ((1 << 48) - 1))
    }
}

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// A segment of the shard's log; the number orders segments.
    Log {
        /// Its place in the log.
        segment: u64,
        /// The segment that it goes on from; 0 for none.
        after: u64,
    },
    /// A patch of a slice.
    Patch {
        /// The slice.
        slice: u16,
    },
    /// Bytes of a user of the block layer.
    User,
}

/// Magic number of a tag of this layer: "SFBL".
const MAGIC: u32 = u32::from_le_bytes(*b"SFBL");
/// Version of the tag.
const VERSION: u8 = 2;

/// Encodes a tag; see `docs/formats.md`. `attempt` counts the units on which writing the block was tried: the
/// last one counts where a crash leaves several.
pub fn encode(id: BlockId, kind: BlockKind, attempt: u8) -> OwnerTag {
    let (code, detail, after) = match kind {
        BlockKind::Log { segment, after } => (1, segment, after),
        BlockKind::Patch { slice } => (2, u64::from(slice), 0),
        BlockKind::User => (3, 0, 0),
    };
    let mut tag = [0; 64];
    tag[..4].copy_from_slice(&MAGIC.to_le_bytes());
    tag[4] = VERSION;
    tag[5] = code;
    tag[6] = attempt;
    tag[8..16].copy_from_slice(&id.0.to_le_bytes());
    tag[16..24].copy_from_slice(&detail.to_le_bytes());
    tag[24..32].copy_from_slice(&after.to_le_bytes());
    OwnerTag(tag)
}

/// Decodes a tag; `None` where it is not one of this layer and a version up to this one.
pub fn decode(tag: &OwnerTag) -> Option<(BlockId, BlockKind, u8)> {
    let word = |at: usize| {
        let bytes = tag.0.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    if tag.0[..4] != MAGIC.to_le_bytes() || !(1..=VERSION).contains(&tag.0[4]) {
        return None;
    }
    let (id, detail) = (BlockId(word(8)?), word(16)?);
    let kind = match tag.0[5] {
        // In version 1 each segment went on from the one with the number before.
        1 if tag.0[4] == 1 => BlockKind::Log { segment: detail, after: detail.saturating_sub(1) },
        1 => BlockKind::Log { segment: detail, after: word(24)? },
        2 => BlockKind::Patch { slice: u16::try_from(detail).ok()? },
        3 => BlockKind::User,
        _ => return None,
    };
    Some((id, kind, tag.0[6]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_back_as_they_were() {
        let id = BlockId(BlockId::first(ShardId(3)).0 + 77);
        let log = BlockKind::Log { segment: 9, after: 6 };
        for kind in [log, BlockKind::Patch { slice: 5 }, BlockKind::User] {
            assert_eq!(decode(&encode(id, kind, 2)), Some((id, kind, 2)));
        }
        let mut version_1 = encode(id, log, 0);
        version_1.0[4] = 1;
        version_1.0[24..32].fill(0);
        let segment = BlockKind::Log { segment: 9, after: 8 };
        assert_eq!(decode(&version_1), Some((id, segment, 0)));
        assert_eq!(decode(&OwnerTag([0; 64])), None);
    }
}
