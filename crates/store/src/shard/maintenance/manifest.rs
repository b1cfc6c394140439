//! Changes of the trees, and of the part of the log that a recovery needs, for the mechanisms that
//! rewrite data. `flush.rs` logs them.

use super::pending_outputs::PendingOutput;
use crate::error::Result;
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::shard::Shard;
use std::rc::Rc;

/// The patches that the trees list, and the start of the log.
pub(in crate::shard) struct Manifest<'a> {
    shard: &'a Shard,
}

impl<'a> Manifest<'a> {
    /// The manifest of a shard.
    pub(in crate::shard) fn of(shard: &'a Shard) -> Manifest<'a> {
        Manifest { shard }
    }

    /// Marks the patches written from here on as pending. Drop the result in the step that lists
    /// them.
    pub(super) fn begin_output(&self) -> PendingOutput<'a> {
        self.shard.pending_outputs.begin(&self.shard.blocks)
    }

    /// Changes a slice's tree, and logs the change.
    pub(in crate::shard) fn note(&self, slice: &Slice, removed: &[Rc<Patch>], added: Vec<Placed>) {
        self.shard.edit(slice, removed, added);
    }

    /// As [`note`](Self::note), and deletes the removed patches when the change is durable: until
    /// then a recovery may need them.
    pub(in crate::shard) async fn replace(
        &self,
        slice: &Slice,
        removed: &[Rc<Patch>],
        added: Vec<Placed>,
    ) -> Result<()> {
        self.note(slice, removed, added);
        self.durable().await?;
        removed.iter().for_each(|patch| patch.retire());
        Ok(())
    }

    /// Waits until the last change is durable: no recovery needs the patches that it removed.
    pub(in crate::shard) async fn durable(&self) -> Result<()> {
        self.shard.log.stable_soon(self.shard.history.seq()).await
    }

    /// The first segment of the log that a recovery needs.
    pub(in crate::shard) fn log_start(&self) -> u64 {
        self.shard.first_segment_needed()
    }

    /// Flushes all memtables and rotates the log, so that no older segment is needed.
    pub(super) async fn rewrite_log(&self) -> Result<()> {
        self.shard.flush().await?;
        self.shard.rotate_log().await
    }

    /// In a shard without clients: flushes all memtables and deletes the older segments, so that
    /// the log holds only the segments of this opening.
    pub(in crate::shard) async fn release_old_log(&self) -> Result<()> {
        self.shard.flush_everything().await?;
        self.shard.trim_log().await
    }
}

/// A patch with its level and its run.
pub(in crate::shard) type Placed = (u8, u64, Rc<Patch>);
