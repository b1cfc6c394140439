//! Writes records in order as patches, several at the same time, to the least loaded units.

use crate::error::{Result, StoreError};
use crate::format::patch::{Added, BuilderConfig, PatchBuilder};
use crate::format::record::Record;
use crate::kv::patch::Patch;
use crate::layout::Compression;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, SliceId};
use softflash_blocks::{AntiAffinity, BlockId, BlockKind, BlockLayer, ParityGroup, Stripe};
use softflash_ftl::{Hint, LifetimeClass};
use softflash_runtime::yield_now;
use std::rc::Rc;

/// Patches being written while the next one is built.
const PATCHES_UNDER_WAY: usize = 2;
/// Bytes of records after which the writer yields to other tasks.
const TURN_BYTES: usize = 512 << 10;

/// A written block.
enum Built {
    Patch(Rc<Patch>),
    /// The parity of patches; `None` where it could not be written.
    Parity(Option<ParityGroup>),
}

/// The result of a write.
type Written = Result<Built, (BlockId, StoreError)>;

/// Builds and writes patches of one slice.
pub struct PatchWriter {
    blocks: BlockLayer,
    slice: SliceId,
    compression: Compression,
    hint: Hint,
    builder: Option<PatchBuilder>,
    under_way: FuturesUnordered<LocalBoxFuture<'static, Written>>,
    done: Vec<Rc<Patch>>,
    /// The group that the next patch may join.
    stripe: Option<Stripe>,
    groups: Vec<ParityGroup>,
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
            stripe: None,
            groups: Vec::new(),
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

    /// The number of patches whose blocks are written, or being written.
    pub fn patches(&self) -> usize {
        self.done.len() + self.under_way.len()
    }

    /// Ends the patch being built and starts writing it.
    async fn start_writing(&mut self) -> Result<()> {
        // A builder without records makes no patch.
        let Some(builder) = self.builder.take_if(|builder| !builder.is_empty()) else {
            return Ok(());
        };
        while self.under_way.len() >= PATCHES_UNDER_WAY {
            self.collect_one().await?;
        }
        let id = self.blocks.new_id();
        let image = builder.finish(id.0, self.blocks.identity(id));
        let mut pieces = self.blocks.pieces_of(&image.metadata);
        pieces.extend(self.blocks.pieces_of(&image.data));
        self.bytes_written += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        let anti_affinity = self.join_group(id, &pieces);
        let (blocks, hint, slice) = (self.blocks.clone(), self.hint, self.slice.0);
        self.under_way.push(Box::pin(async move {
            let written = async {
                let kind = BlockKind::Patch { slice };
                Ok(blocks.put_avoiding(id, kind, pieces, hint, &anti_affinity).await?)
            };
            match written.await {
                Ok(()) => Ok(Built::Patch(Rc::new(Patch::new(id, blocks, image.index)))),
                Err(error) => Err((id, error)),
            }
        }));
        Ok(())
    }

    /// Adds the patch to the group that is being written, or begins a group.
    fn join_group(&mut self, id: BlockId, pieces: &[IoBuf]) -> AntiAffinity {
        if self.stripe.as_ref().is_some_and(|stripe| !stripe.takes_another()) {
            self.close_group();
        }
        if self.stripe.is_none() {
            self.stripe = self.blocks.new_stripe();
        }
        self.stripe.as_mut().map(|stripe| stripe.add(id, pieces)).unwrap_or_default()
    }

    /// Starts writing the parity of the group.
    fn close_group(&mut self) {
        let (Some(stripe), hint) = (self.stripe.take(), self.hint) else { return };
        self.under_way.push(Box::pin(async move {
            let written = stripe.close(hint).await;
            if let Err(error) = &written {
                tracing::warn!(%error, "parity could not be written");
            }
            Ok(Built::Parity(written.ok()))
        }));
    }

    async fn collect_one(&mut self) -> Result<()> {
        match self.under_way.next().await {
            Some(Ok(Built::Patch(patch))) => self.done.push(patch),
            Some(Ok(Built::Parity(group))) => self.groups.extend(group),
            Some(Err((id, error))) => {
                self.blocks.delete(id);
                return Err(error);
            }
            None => {}
        }
        Ok(())
    }

    /// Waits until all patches are written and durable; returns them in key order.
    pub async fn finish(self) -> Result<(Vec<Rc<Patch>>, u64)> {
        self.finish_unless(Bug::PatchNotFlushed).await
    }

    /// As [`finish`](Self::finish), but the planted bug `unflushed` omits the flush.
    pub async fn finish_unless(mut self, unflushed: Bug) -> Result<(Vec<Rc<Patch>>, u64)> {
        self.start_writing().await?;
        self.close_group();
        while !self.under_way.is_empty() {
            self.collect_one().await?;
        }
        if !self.done.is_empty() && !planted::bug(unflushed) {
            self.blocks.flash().flush(self.hint).await?;
        }
        self.groups.drain(..).for_each(|group| self.blocks.form_group(group));
        let mut patches = std::mem::take(&mut self.done);
        patches.iter().for_each(|patch| self.blocks.note_written(patch.id()));
        // Ids rise in the order of building, which is key order.
        patches.sort_by_key(|patch| patch.id());
        Ok((patches, self.bytes_written))
    }
}

impl Drop for PatchWriter {
    /// Releases the patches of a writer that did not finish.
    fn drop(&mut self) {
        let done = self.done.drain(..).filter(|_| !planted::bug(Bug::FinishedPatchesLeak));
        done.for_each(|patch| patch.retire());
        self.groups.drain(..).for_each(|group| self.blocks.delete(BlockId(group.parity)));
    }
}

/// The lifetime of patches of a level: each level holds many times the data of the one above, so a
/// merge replaces its patches as much later.
pub fn lifetime_of_level(level: usize) -> LifetimeClass {
    LifetimeClass::SHORT.longer_by(u8::try_from(2 * level).unwrap_or(u8::MAX))
}

fn new_builder(blocks: &BlockLayer, slice: SliceId, compression: Compression) -> PatchBuilder {
    let config = BuilderConfig::new(blocks.capacity_bytes(), blocks.page_bytes(), compression);
    PatchBuilder::new(config, slice)
}

#[cfg(test)]
mod tests;
