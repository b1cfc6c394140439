//! The whole image of a patch, for parity. The reconstruction of other patches depends on each
//! byte, so the image is exact, or the read fails.

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

use crate::error::{Result, StoreError};
use crate::format::FormatError;
use crate::format::patch::{decode_block, decode_metadata};
use bytes::{Bytes, BytesMut};
use softflash_base::IoBuf;
use softflash_base::cast::index;
use softflash_blocks::{BlockError, BlockId, BlockLayer, Member, ParityGroup};
use softflash_ftl::Hint;
use softflash_runtime::yield_now;

/// Pages read at a time.
const STEP_PAGES: u32 = 64;

/// Reads all pages of a patch and verifies them; a damaged patch is reconstructed from its parity
/// group.
///
/// # Errors
/// [`StoreError::DataLoss`] where the group cannot reconstruct it.
pub async fn read(blocks: &BlockLayer, patch: Member, hint: Hint) -> Result<Bytes> {
    let id = BlockId(patch.block);
    let read = async |first, pages| blocks.read(id, first, pages, hint).await;
    let image = collect(blocks, patch.pages, read).await?;
    let Err(error) = verify(&image, blocks.identity(id)).await else { return Ok(image) };
    blocks.note_degraded(id);
    match blocks.group_of(id) {
        Some(group) => reconstruct(blocks, &group, patch, hint).await,
        None => Err(lost(id, &error)),
    }
}

/// Reconstructs all pages of a patch from its parity group, and verifies them.
///
/// # Errors
/// [`StoreError::DataLoss`] where too many blocks of the group are lost.
pub async fn reconstruct(
    blocks: &BlockLayer,
    group: &ParityGroup,
    patch: Member,
    hint: Hint,
) -> Result<Bytes> {
    let id = BlockId(patch.block);
    let read = async |first, pages| blocks.reconstruct(group, id, first, pages, hint).await;
    let image = collect(blocks, patch.pages, read).await?;
    verify(&image, blocks.identity(id)).await.map_err(|error| lost(id, &error))?;
    Ok(image)
}

/// Reads pages in steps.
pub async fn collect(
    blocks: &BlockLayer,
    pages: u32,
    read: impl AsyncFn(u32, u32) -> Result<IoBuf, BlockError>,
) -> Result<Bytes> {
    let mut image = BytesMut::with_capacity(index(pages) * blocks.page_bytes());
    for first in (0..pages).step_by(index(STEP_PAGES)) {
        image.extend_from_slice(&read(first, STEP_PAGES.min(pages - first)).await?);
    }
    Ok(image.freeze())
}

fn lost(id: BlockId, error: &FormatError) -> StoreError {
    StoreError::DataLoss(format!("{id}: {error}"))
}

/// Verifies that these are the bytes of the patch, padding included.
async fn verify(image: &Bytes, identity: u64) -> Result<(), FormatError> {
    let metadata = decode_metadata(image, identity)?;
    let start = metadata.data_offset();
    for (number, block) in metadata.blocks().enumerate() {
        let place = index(start + block.start)..index(start + block.end);
        if place.end > image.len() {
            return Err(FormatError::Truncated { what: "a patch" });
        }
        decode_block(image.slice(place), identity, block.start)?;
        if number % 64 == 0 {
            yield_now().await;
        }
    }
    let end = index(start + metadata.data_len());
    match image.get(end..).is_some_and(|padding| padding.iter().all(|byte| *byte == 0)) {
        true => Ok(()),
        false => Err(FormatError::Malformed { what: "a patch", reason: "the padding is not zero" }),
    }
}
