//! Rotation of the log when a segment is hard to read, lacks a copy, or has to leave its unit.

use super::manifest::Manifest;
use super::tasks::Tasks;
use crate::shard::Shard;
use crate::shard::log::Log;
use crate::shard::resources::space::Space;
use softflash_base::ShardId;
use softflash_blocks::BlockLayer;

/// Rewrites the log of a shard.
pub(in crate::shard) struct LogRefresh<'a> {
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

    /// Rotates the log if one of its segments needs a refresh. An announced one is the current one
    /// afterwards, and leaves with the next rotation.
    pub(in crate::shard) async fn refresh_log(&self) {
        if !self.space.allows_rebuild() {
            // The log fails if it has no space for its next segment.
            return;
        }
        let blocks = self.log.blocks();
        let to_refresh = blocks.iter().filter(|block| self.blocks.needs_refresh(**block));
        if to_refresh.map(|block| self.blocks.clear_refresh(*block)).count() == 0 {
            return;
        }
        if let Err(error) = self.manifest.rewrite_log().await
            && !self.tasks.is_closing()
        {
            tracing::warn!(shard = self.id.0, %error, "the log could not be rewritten");
        }
    }
}
