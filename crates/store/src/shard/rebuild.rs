//! Rebuild: what lacks a copy, or has one that is damaged, is written anew while the shard serves.
//!
//! Whoever reads, writes or mounts notes the blocks in question. Compaction writes such patches anew, as those that are hard
//! to read, or makes them of the others of their parity group; the log goes on in a new segment. What cannot be written anew, as there is no room or as copies fail again, is tried
//! again, ever more rarely: each try wears the flash.

use super::Shard;
use futures_util::future::select;
use std::pin::pin;
use std::time::Duration;

/// How long after a try the next one comes, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

impl Shard {
    /// Rebuilds until the shard closes.
    pub(super) async fn rebuild_forever(&self) {
        let (mut pause, mut before) = (FIRST_PAUSE, 0);
        while !self.tasks.closing.get() {
            self.refresh_log().await;
            self.tasks.compact.notify_one();
            let degraded = self.blocks.degraded_blocks();
            if before == 0 && degraded > 0 {
                tracing::warn!(
                    shard = self.id.0,
                    degraded,
                    "blocks lack a copy or parity; rebuilding"
                );
            } else if before > 0 && degraded == 0 {
                tracing::info!(shard = self.id.0, "rebuilt: all blocks may lose a unit again");
            }
            // As long as there is progress there is no reason to wait longer.
            pause = if degraded == before { (2 * pause).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
            before = degraded;
            let rung = self.blocks.degraded_bell().notified();
            if degraded == 0 {
                rung.await;
            } else {
                select(self.runtime.sleep_until(self.runtime.now() + pause), pin!(rung)).await;
            }
            self.blocks.retry_degraded();
        }
    }
}
