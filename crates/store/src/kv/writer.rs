//! Writes records that come in order as patches, several at a time, on the units that are free soonest.

use crate::block_layer::{BlockId, BlockKind, BlockLayer};
use crate::error::{Result, StoreError};
use crate::format::patch::{Added, BuilderConfig, PatchBuilder, PatchImage};
use crate::format::record::Record;
use crate::kv::patch::Patch;
use crate::layout::Compression;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, SliceId};
use softflash_ftl::Hint;
use softflash_runtime::yield_now;
use std::rc::Rc;

/// Patches being written while the next is built.
const PATCHES_UNDER_WAY: usize = 2;
/// Bytes of records after which other tasks get a turn.
const TURN_BYTES: usize = 512 << 10;
/// Bytes per append of a patch.
const PIECE_BYTES: usize = 1 << 20;

/// A patch that was built, or why not.
type Written = Result<Rc<Patch>, (BlockId, StoreError)>;

/// Builds and writes patches of one slice.
pub struct PatchWriter {
    blocks: BlockLayer,
    slice: SliceId,
    compression: Compression,
    hint: Hint,
    builder: Option<PatchBuilder>,
    under_way: FuturesUnordered<LocalBoxFuture<'static, Written>>,
    done: Vec<Rc<Patch>>,
    since_turn: usize,
    /// Bytes of patches written, metadata and padding included.
    pub bytes_written: u64,
}

impl PatchWriter {
    /// A writer of patches of `slice`.
    pub fn new(
        blocks: BlockLayer,
        slice: SliceId,
        compression: Compression,
        hint: Hint,
    ) -> PatchWriter {
        PatchWriter {
            blocks,
            slice,
            compression,
            hint,
            builder: None,
            under_way: FuturesUnordered::new(),
            done: Vec::new(),
            since_turn: 0,
            bytes_written: 0,
        }
    }

    /// Writes the next record.
    pub async fn add(&mut self, record: &Record) -> Result<()> {
        self.since_turn += record.encoded_len();
        if self.since_turn >= TURN_BYTES {
            self.since_turn = 0;
            yield_now().await;
        }
        let builder = self
            .builder
            .get_or_insert_with(|| new_builder(&self.blocks, self.slice, self.compression));
        if let Added::Full = builder.add(record) {
            self.start_writing().await?;
            let builder = self
                .builder
                .get_or_insert_with(|| new_builder(&self.blocks, self.slice, self.compression));
            if let Added::Full = builder.add(record) {
                return Err(StoreError::Unusable(format!(
                    "a record of {} bytes does not fit a block of {} bytes; use larger superblocks",
                    record.encoded_len(),
                    self.blocks.capacity_bytes()
                )));
            }
        }
        Ok(())
    }

    /// Ends the patch being built and starts writing it.
    async fn start_writing(&mut self) -> Result<()> {
        let Some(builder) = self.builder.take() else { return Ok(()) };
        while self.under_way.len() >= PATCHES_UNDER_WAY {
            self.collect_one().await?;
        }
        let id = self.blocks.new_id();
        let image = builder.finish(id.0, self.blocks.identity(id));
        let pieces = pieces_of(&self.blocks, &image);
        self.bytes_written += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        let (blocks, hint, slice) = (self.blocks.clone(), self.hint, self.slice.0);
        self.under_way.push(Box::pin(async move {
            match blocks.put(id, BlockKind::Patch { slice }, pieces, hint).await {
                Ok(()) => Ok(Rc::new(Patch::new(id, blocks, image.index))),
                Err(error) => Err((id, error)),
            }
        }));
        Ok(())
    }

    async fn collect_one(&mut self) -> Result<()> {
        match self.under_way.next().await {
            Some(Ok(patch)) => self.done.push(patch),
            Some(Err((id, error))) => {
                self.blocks.delete(id);
                return Err(error);
            }
            None => {}
        }
        Ok(())
    }

    /// Waits until all is written and durable; the patches are in key order.
    pub async fn finish(mut self) -> Result<(Vec<Rc<Patch>>, u64)> {
        self.start_writing().await?;
        while !self.under_way.is_empty() {
            self.collect_one().await?;
        }
        if !self.done.is_empty() && !planted::bug(Bug::PatchNotFlushed) {
            self.blocks.flash().flush(self.hint).await?;
        }
        let mut patches = std::mem::take(&mut self.done);
        // Ids rise in the order of building, which is key order.
        patches.sort_by_key(|patch| patch.id());
        Ok((patches, self.bytes_written))
    }
}

impl Drop for PatchWriter {
    /// Patches of a writer that did not finish are of no use.
    fn drop(&mut self) {
        self.done.drain(..).for_each(|patch| patch.retire());
    }
}

fn new_builder(blocks: &BlockLayer, slice: SliceId, compression: Compression) -> PatchBuilder {
    let config = BuilderConfig::new(blocks.capacity_bytes(), blocks.page_bytes(), compression);
    PatchBuilder::new(config, slice)
}

/// The image as buffers that the device takes.
fn pieces_of(blocks: &BlockLayer, image: &PatchImage) -> Vec<IoBuf> {
    let page = blocks.page_bytes();
    [&image.metadata[..], &image.data[..]]
        .into_iter()
        .flat_map(|section| section.chunks(PIECE_BYTES))
        .map(|chunk| {
            let mut piece = blocks.flash().buffer(chunk.len().next_multiple_of(page));
            let (front, padding) = piece.split_at_mut(chunk.len());
            front.copy_from_slice(chunk);
            padding.fill(0);
            piece
        })
        .collect()
}
