//! Refresh: rewrites patches that are hard to read, lack a copy, or lag behind in wear.

use super::manifest::Manifest;
use super::tasks::Tasks;
use crate::error::{Result, StoreError};
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::kv::writer::{PatchWriter, lifetime_of_level};
use crate::shard::Shard;
use crate::shard::counters::Counters;
use softflash_base::planted::Bug;
use softflash_blocks::{BlockId, BlockLayer};
use softflash_ftl::{Hint, Origin};
use std::rc::Rc;

/// Rewrites patches of a shard.
pub(super) struct Refresh<'a> {
    blocks: &'a BlockLayer,
    tasks: &'a Tasks,
    counters: &'a Counters,
    manifest: Manifest<'a>,
}

impl Refresh<'_> {
    /// The parts of a shard that a refresh uses.
    pub(in crate::shard) fn of(shard: &Shard) -> Refresh<'_> {
        let Shard { blocks, tasks, counters, .. } = shard;
        Refresh { blocks, tasks, counters, manifest: Manifest::of(shard) }
    }

    /// Rewrites a patch of the slice that needs refresh. Returns whether there was one. Only the
    /// compaction task may call it, so that the two never work on the same patch.
    pub(super) async fn refresh_once(&self, slice: &Slice) -> Result<bool> {
        if !self.blocks.any_needs_refresh() {
            return Ok(false);
        }
        let tree = slice.tree();
        let found = tree.patches().find(|(.., patch)| self.blocks.needs_refresh(patch.id()));
        let Some((level, run, patch)) = found else { return Ok(false) };
        let of_run = tree.patches().filter(|(l, r, _)| (*l, *r) == (level, run));
        let of_run: Vec<Rc<Patch>> = of_run.map(|(.., patch)| Rc::clone(patch)).collect();
        let why = self.blocks.why_refresh(patch.id()).unwrap_or(Origin::Refresh);
        let hint = Hint::REFRESH.of(why).lasting(lifetime_of_level(level));
        let inputs = sharing_keys(&of_run, patch.id());
        if let Some(lost) = inputs.iter().find(|input| input.damage().is_some()) {
            // Without its contents there is nothing to write: the patch would vanish.
            self.blocks.clear_refresh(patch.id());
            return lost.index().map(|_| true);
        }
        // If the rewrite fails, the patches stay unchanged until the next pass.
        inputs.iter().for_each(|input| self.blocks.clear_refresh(input.id()));
        let clears = slice.clears.get();
        let pending = self.manifest.begin_output();
        let mut writer = PatchWriter::new(self.blocks.clone(), slice.id, slice.compression, hint);
        let blocks = inputs
            .iter()
            .flat_map(|input| (0..input.block_count()).map(move |number| (input, number)));
        for (input, number) in blocks {
            if self.tasks.is_closing() {
                return Err(StoreError::Closed);
            }
            for record in input.read_block(number, hint).await?.into_records() {
                let record = record
                    .map_err(|error| StoreError::DataLoss(format!("{}: {error}", input.id())))?;
                writer.add(&record).await?;
            }
        }
        let (patches, bytes) = writer.finish_unless(Bug::CopyAgainNotFlushed).await?;
        if slice.clears.get() != clears {
            patches.iter().for_each(|patch| patch.retire());
            return Ok(true);
        }
        drop(pending);
        let added = patches.into_iter().map(|patch| (level as u8, run, patch)).collect();
        self.manifest.replace(slice, inputs, added).await?;
        self.counters.count_refreshed(bytes);
        Ok(true)
    }
}

/// The consecutive patches of a run around `id` in which each shares its last key with the first
/// key of the next: the fragments of a large value can span several patches. They are rewritten
/// together, because the order of patches with equal keys is by age.
fn sharing_keys(run: &[Rc<Patch>], id: BlockId) -> &[Rc<Patch>] {
    let shares = |left: &Rc<Patch>, right: &Rc<Patch>| {
        left.damage().is_none() && right.damage().is_none() && left.last_key() == right.first_key()
    };
    run.chunk_by(shares)
        .find(|group| group.iter().any(|patch| patch.id() == id))
        .unwrap_or_default()
}
