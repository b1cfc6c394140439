//! Rebuild: rewrites blocks with a missing or damaged copy while the shard serves clients.
//!
//! Reads, writes and the mount report degraded blocks. Compaction rewrites such patches, as it
//! rewrites patches that are hard to read, or reconstructs them from their parity group. The log
//! rotates to a new segment. A rewrite that fails, for lack of space or because copies fail again,
//! is retried with growing pauses: each attempt wears the flash.

use super::Shard;
use futures_util::future::select;
use std::pin::pin;
use std::time::Duration;

/// The first and the longest pause between attempts.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

impl Shard {
    /// Rebuilds until the shard closes.
    pub(super) async fn rebuild_forever(&self) {
        let (mut pause, mut before) = (FIRST_PAUSE, 0);
        while !self.tasks.closing.get() {
            self.refresh_log().await;
            self.tasks.compact.notify_one();
            self.tasks.collect.notify_one();
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
