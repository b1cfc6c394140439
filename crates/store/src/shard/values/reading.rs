//! Reads and verifies stored values.

use crate::error::{Result, StoreError};
use crate::format::reference::Reference;
use crate::format::value::StoredValue;
use bytes::Bytes;
use softflash_base::IoBuf;
use softflash_blocks::{BlockId, BlockLayer};
use softflash_ftl::Hint;

/// The pages of a stored value, and the function that decodes their bytes.
struct Reading<F> {
    id: BlockId,
    first_page: u32,
    pages: u32,
    make: F,
}

fn reading(
    blocks: &BlockLayer,
    reference: Reference,
    key: Option<&[u8]>,
) -> Reading<impl Fn(IoBuf) -> Result<StoredValue>> {
    let (id, page) = (BlockId(reference.block()), blocks.page_bytes());
    let identity = blocks.identity(id);
    let range = reference.range();
    let (first, end) = (range.start / page, range.end.div_ceil(page));
    let start = range.start - first * page;
    let make = move |pages: IoBuf| {
        let bytes = pages.get(start..start + range.len()).unwrap_or_default();
        let bytes = Bytes::copy_from_slice(bytes);
        let stored = match key {
            Some(key) => StoredValue::decode_as(&bytes, identity, &reference, key),
            None => StoredValue::decode(&bytes, identity, reference.offset()),
        };
        stored.map_err(|error| StoreError::DataLoss(format!("{id}, {reference:?}: {error}")))
    };
    Reading { id, first_page: first as u32, pages: (end - first) as u32, make }
}

/// Reads the stored value that `reference` names, and verifies that it is the one of `key`.
pub(crate) async fn read_stored(
    blocks: &BlockLayer,
    reference: &Reference,
    key: &[u8],
    hint: Hint,
) -> Result<StoredValue> {
    let Reading { id, first_page, pages, make } = reading(blocks, *reference, Some(key));
    blocks.read_as(id, first_page, pages, hint, make).await
}

/// As [`read_stored`], but reads every copy, and notes the damaged ones.
pub(crate) async fn read_stored_everywhere(
    blocks: &BlockLayer,
    reference: &Reference,
    key: &[u8],
    hint: Hint,
) -> Result<StoredValue> {
    let Reading { id, first_page, pages, make } = reading(blocks, *reference, Some(key));
    blocks.read_everywhere(id, first_page, pages, hint, make).await
}

/// As [`read_stored_everywhere`], for a place whose key and checksum are not known.
pub(crate) async fn read_unnamed_everywhere(
    blocks: &BlockLayer,
    place: &Reference,
    hint: Hint,
) -> Result<StoredValue> {
    let Reading { id, first_page, pages, make } = reading(blocks, *place, None);
    blocks.read_everywhere(id, first_page, pages, hint, make).await
}

/// Reads a stored value whose key and checksum are not known.
pub(crate) async fn read_unnamed(
    blocks: &BlockLayer,
    place: &Reference,
    hint: Hint,
) -> Result<StoredValue> {
    let Reading { id, first_page, pages, make } = reading(blocks, *place, None);
    blocks.read_as(id, first_page, pages, hint, make).await
}
