//! Edits that a repair makes in a shard without clients.

use super::Shard;
use crate::error::Result;
use crate::format::record::Record;
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::kv::writer::PatchWriter;
use softflash_ftl::Hint;
use std::rc::Rc;

impl Shard {
    /// The shard's slices.
    pub(crate) fn all_slices(&self) -> &[Slice] {
        &self.slices
    }

    /// Replaces patches of a run by new patches with these records, which are in key order.
    pub(crate) async fn replace_patches(
        &self,
        slice: &Slice,
        (level, run): (u8, u64),
        old: &[Rc<Patch>],
        records: Vec<Record>,
    ) -> Result<()> {
        let pending = self.pending_outputs.begin(&self.blocks);
        let mut writer =
            PatchWriter::new(self.blocks.clone(), slice.id, slice.compression, Hint::COMPACTION);
        for record in &records {
            writer.add(record).await?;
        }
        let (patches, _) = writer.finish().await?;
        drop(pending);
        let added = patches.into_iter().map(|patch| (level, run, patch)).collect();
        self.edit(slice, old, added);
        // Until the edit is durable a recovery may need the patches that it removes.
        self.log.stable_soon(self.history.seq.get()).await?;
        old.iter().for_each(|patch| patch.retire());
        Ok(())
    }

    /// Flushes all memtables and deletes the older segments, so that the log holds only the
    /// segments of this opening.
    pub(crate) async fn give_up_old_log(&self) -> Result<()> {
        self.flush_everything().await?;
        let Some(slice) = self.slices.first() else { return Ok(()) };
        self.edit(slice, &[], Vec::new());
        let needed = self.first_segment_needed();
        self.log.stable_soon(self.history.seq.get()).await?;
        self.log.release_before(needed);
        Ok(())
    }
}
