//! Finds the blocks of a patch without its metadata: the checksum of a block identifies its patch
//! and its offset.

use crate::error::Result;
use crate::format::patch::{Block, PatchHeader, block_len, decode_block};
use bytes::{Bytes, BytesMut};
use softflash_blocks::BlockLayer;
use softflash_ftl::{FtlError, Hint, Superblock};

/// Pages read at a time.
const STEP_PAGES: u32 = 256;

/// The contents of a superblock, with zeros for unreadable pages: no checksum matches zeros.
pub(super) async fn read(blocks: &BlockLayer, superblock: &Superblock) -> Result<Bytes> {
    let page = blocks.page_bytes();
    let pages = (blocks.capacity_bytes() / page) as u32;
    let mut image = BytesMut::zeroed(pages as usize * page);
    for first in (0..pages).step_by(STEP_PAGES as usize) {
        let count = STEP_PAGES.min(pages - first);
        if copy(blocks, superblock, first, count, &mut image).await? {
            continue;
        }
        // Written pages can be read one by one.
        for number in first..first + count {
            copy(blocks, superblock, number, 1, &mut image).await?;
        }
    }
    Ok(image.freeze())
}

/// Copies pages into the image; false where the flash cannot read all of them.
async fn copy(
    blocks: &BlockLayer,
    superblock: &Superblock,
    first: u32,
    count: u32,
    image: &mut [u8],
) -> Result<bool> {
    match blocks.flash().read(superblock, first, count, Hint::REFRESH).await {
        Ok(read) => {
            let start = first as usize * blocks.page_bytes();
            if let Some(place) = image.get_mut(start..start + read.bytes.len()) {
                place.copy_from_slice(&read.bytes);
            }
            Ok(true)
        }
        Err(FtlError::Device { .. } | FtlError::Unwritten { .. } | FtlError::Damaged { .. }) => {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// A part of a data section.
pub(super) enum Piece {
    /// A whole block.
    Block(Block),
    /// Bytes without a whole block.
    Gap,
}

/// The data section of a patch, as far as it was found.
pub(super) struct Walked {
    /// Blocks in order, and the gaps between them.
    pub(super) pieces: Vec<Piece>,
    /// The header, if readable: it has the number of blocks and records.
    pub(super) header: Option<PatchHeader>,
}

/// Looks for the blocks of the patch with this identity. `None` if there is none.
pub(super) fn walk(image: &Bytes, page_bytes: usize, identity: u64) -> Option<Walked> {
    let header = PatchHeader::decode(image, identity).ok();
    let start = match &header {
        Some(header) => header.metadata_len as usize,
        None => data_start(image, page_bytes, identity)?,
    };
    let data_len = header.as_ref().map(|header| header.data_len as usize);
    let end = data_len.map_or(image.len(), |len| image.len().min(start + len));
    let (mut at, mut in_gap, mut pieces) = (start, false, Vec::new());
    while at < end {
        match block_at(image, at, start, identity) {
            Some((block, len)) => {
                pieces.extend(std::mem::take(&mut in_gap).then_some(Piece::Gap));
                pieces.push(Piece::Block(block));
                at += len;
            }
            None => {
                in_gap = true;
                at += 1;
            }
        }
    }
    // Without the header it is unknown whether the patch ended with the last block found.
    pieces.extend((in_gap || header.is_none()).then_some(Piece::Gap));
    let found = pieces.iter().any(|piece| matches!(piece, Piece::Block(_)));
    found.then_some(Walked { pieces, header })
}

/// The block at byte `at` of the image, if it verifies there in a data section that begins at
/// `start`.
fn block_at(image: &Bytes, at: usize, start: usize, identity: u64) -> Option<(Block, usize)> {
    let len = block_len(image.get(at..)?)?;
    let offset = u32::try_from(at.checked_sub(start)?).ok()?;
    let block = decode_block(image.slice(at..at + len), identity, offset).ok()?;
    Some((block, len))
}

/// The start of the data section: a page from which some block verifies; usually its first block.
fn data_start(image: &Bytes, page_bytes: usize, identity: u64) -> Option<usize> {
    let mut starts = (page_bytes..image.len()).step_by(page_bytes);
    let first = starts.find(|start| block_at(image, *start, *start, identity).is_some());
    first.or_else(|| {
        let candidates =
            (page_bytes..image.len()).filter(|at| image.get(*at..).and_then(block_len).is_some());
        candidates.into_iter().find_map(|at| {
            let mut starts = (page_bytes..=at).step_by(page_bytes);
            starts.find(|start| block_at(image, at, *start, identity).is_some())
        })
    })
}
