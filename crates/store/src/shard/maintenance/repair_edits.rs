//! Edits that a repair makes in a shard without clients.

use super::manifest::Manifest;
use crate::error::Result;
use crate::format::record::Record;
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::kv::writer::{PatchWriter, lifetime_of_level};
use crate::shard::Shard;
use softflash_blocks::BlockLayer;
use softflash_ftl::Hint;
use std::rc::Rc;

/// Changes the trees and the log of a shard.
pub(crate) struct RepairEdits<'a> {
    blocks: &'a BlockLayer,
    manifest: Manifest<'a>,
}

impl RepairEdits<'_> {
    /// The parts of a shard that a repair changes.
    pub(crate) fn of(shard: &Shard) -> RepairEdits<'_> {
        RepairEdits { blocks: &shard.blocks, manifest: Manifest::of(shard) }
    }

    /// Replaces patches of a run by new patches with these records, which are in key order.
    pub(crate) async fn replace_patches(
        &self,
        slice: &Slice,
        (level, run): (u8, u64),
        old: &[Rc<Patch>],
        records: Vec<Record>,
    ) -> Result<()> {
        let hint = Hint::REFRESH.lasting(lifetime_of_level(level.into()));
        let pending = self.manifest.begin_output();
        let mut writer = PatchWriter::new(self.blocks.clone(), slice.id, slice.compression, hint);
        for record in &records {
            writer.add(record).await?;
        }
        let (patches, _) = writer.finish().await?;
        drop(pending);
        let added = patches.into_iter().map(|patch| (level, run, patch)).collect();
        self.manifest.replace(slice, old, added).await
    }

    /// Flushes all memtables and deletes the older segments, so that the log holds only the
    /// segments of this opening.
    pub(crate) async fn release_old_log(&self) -> Result<()> {
        self.manifest.release_old_log().await
    }
}
