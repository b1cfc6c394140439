//! Rotation of the log when a segment is hard to read or lacks a copy.

use super::manifest::Manifest;
use super::tasks::Tasks;
use crate::shard::Shard;
use crate::shard::log::Log;
use crate::shard::resources::space::Space;
use softflash_base::ShardId;
use softflash_blocks::BlockLayer;

/// Rewrites the log of a shard.
pub(super) struct LogRefresh<'a> {
    id: ShardId,
    blocks: &'a BlockLayer,
    log: &'a Log,
    space: Space<'a>,
    tasks: &'a Tasks,
    manifest: Manifest<'a>,
}

impl LogRefresh<'_> {
    /// The parts of a shard that the refresh of its log uses.
    pub(in crate::shard) fn of(shard: &Shard) -> LogRefresh<'_> {
        let Shard { id, blocks, log, tasks, .. } = shard;
        let (space, manifest) = (shard.space(), Manifest::of(shard));
        LogRefresh { id: *id, blocks, log, space, tasks, manifest }
    }

    /// Rotates the log if one of its segments is hard to read or lacks a copy.
    pub(super) async fn refresh_log(&self) {
        if !self.space.allows_rebuild() {
            // The log fails if it has no space for its next segment.
            return;
        }
        let segments = self.log.segments();
        let to_refresh = segments.iter().filter(|segment| self.blocks.needs_refresh(**segment));
        if to_refresh.map(|segment| self.blocks.clear_refresh(*segment)).count() == 0 {
            return;
        }
        if let Err(error) = self.manifest.rewrite_log().await
            && !self.tasks.is_closing()
        {
            tracing::warn!(shard = self.id.0, %error, "the log could not be rewritten");
        }
    }
}
