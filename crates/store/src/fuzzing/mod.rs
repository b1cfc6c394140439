//! Properties of the decoders for any bytes, for the fuzzers of `fuzz` and for tests that replay
//! their corpus.
//!
//! A checksum would stop almost every input before the code behind it: here it is corrected first.

mod log;
mod patch;

pub use log::{event, log};
pub use patch::{patch, patch_block};

use softflash_blocks::tag;
use softflash_ftl::OwnerTag;

/// A block's tag: a decoded tag is encoded and decoded to an equal one.
pub fn block_tag(data: &[u8]) {
    let mut bytes = [0; 64];
    let len = data.len().min(bytes.len());
    bytes[..len].copy_from_slice(&data[..len]);
    if let Some(tag) = tag::decode(&OwnerTag(bytes)) {
        assert_eq!(tag::decode(&tag::encode(tag)), Some(tag));
    }
}

#[cfg(test)]
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay;
    use super::*;
    use softflash_blocks::tag::{BlockId, BlockKind, Tag};

    #[test]
    fn block_tags() {
        let kinds = [
            (BlockKind::Log { segment: 7, after: 6 }, None),
            (BlockKind::Patch { slice: 3 }, None),
            (BlockKind::User, None),
            (BlockKind::Patch { slice: 3 }, Some(1)),
            (BlockKind::Parity, None),
        ];
        let id = BlockId(9 << 48 | 5);
        let seeds =
            kinds.map(|(kind, copy)| tag::encode(Tag { id, kind, attempt: 1, copy }).0.to_vec());
        replay("block_tag", &seeds, block_tag);
    }

    #[test]
    fn events() {
        replay("event", &log::event_seeds(), event);
    }

    #[test]
    fn logs() {
        replay("log", &log::log_seeds(), log);
    }

    #[test]
    fn patches() {
        replay("patch", &patch::patch_seeds(), patch);
    }

    #[test]
    fn patch_blocks() {
        replay("patch_block", &patch::block_seeds(), patch_block);
    }
}
