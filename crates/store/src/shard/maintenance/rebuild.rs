//! Rebuild: rewrites blocks with a missing or damaged copy while the shard serves clients.
//!
//! Reads, writes and the mount report degraded blocks. Compaction rewrites such patches, as it
//! rewrites patches that are hard to read, or reconstructs them from their parity group. The log
//! rotates to a new segment. A rewrite that fails, for lack of space or because copies fail again,
//! is retried with growing pauses: each attempt wears the flash.

use super::log_refresh::LogRefresh;
use super::tasks::Tasks;
use crate::shard::Shard;
use futures_util::future::select;
use softflash_base::ShardId;
use softflash_blocks::BlockLayer;
use softflash_runtime::RuntimeHandle;
use std::pin::pin;
use std::time::Duration;

/// The first and the longest pause between attempts.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// Rebuilds the blocks of a shard.
pub(super) struct Rebuild<'a> {
    id: ShardId,
    runtime: &'a RuntimeHandle,
    blocks: &'a BlockLayer,
    tasks: &'a Tasks,
    log: LogRefresh<'a>,
}

impl Rebuild<'_> {
    /// The parts of a shard that a rebuild uses.
    pub(in crate::shard) fn of(shard: &Shard) -> Rebuild<'_> {
        let Shard { id, runtime, blocks, tasks, .. } = shard;
        Rebuild { id: *id, runtime, blocks, tasks, log: LogRefresh::of(shard) }
    }

    /// Rebuilds until the shard closes.
    pub(super) async fn rebuild_forever(&self) {
        let (mut pause, mut before) = (FIRST_PAUSE, 0);
        while !self.tasks.is_closing() {
            self.log.refresh_log().await;
            self.tasks.request_compaction();
            self.tasks.request_collection();
            let degraded = self.blocks.degraded_blocks();
            if before == 0 && degraded > 0 {
                tracing::warn!(
                    shard = self.id.0,
                    degraded,
                    "blocks lack a copy or parity; rebuild started"
                );
            } else if before > 0 && degraded == 0 {
                tracing::info!(
                    shard = self.id.0,
                    "rebuild finished: all blocks have their copies and parity"
                );
            }
            // Progress resets the pause.
            pause = if degraded == before { (2 * pause).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
            before = degraded;
            let notified = self.blocks.degraded_bell().notified();
            if degraded == 0 {
                notified.await;
            } else {
                select(self.runtime.sleep_until(self.runtime.now() + pause), pin!(notified)).await;
            }
            self.blocks.retry_degraded();
        }
    }
}
