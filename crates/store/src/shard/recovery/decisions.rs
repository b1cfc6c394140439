//! Decisions: which transactions over several shards are committed, as the coordinator's log
//! records. While it is opened, a shard whose log has a prepare without a commit waits for them.

use crate::error::{Result, StoreError};
use softflash_base::ShardId;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The shard whose log holds the commits.
pub(crate) const COORDINATOR: ShardId = ShardId(0);

/// The coordinator's decisions, shared by all shards while they are opened.
pub struct Decisions {
    commits: OnceLock<Result<BTreeSet<u64>>>,
    /// Closed when the commits are known.
    known: async_channel::Receiver<()>,
    announce: async_channel::Sender<()>,
}

impl Default for Decisions {
    fn default() -> Decisions {
        let (announce, known) = async_channel::bounded(1);
        Decisions { commits: OnceLock::new(), known, announce }
    }
}

impl Decisions {
    /// The coordinator publishes the commits that its log records.
    pub(crate) fn publish(&self, commits: BTreeSet<u64>) {
        self.decide(Ok(commits));
    }

    /// A shard cannot be opened: waiting shards fail with its error.
    pub(crate) fn abandon(&self, shard: ShardId, error: &StoreError) {
        self.decide(Err(StoreError::Unusable(format!(
            "shard {shard} could not be opened: {error}"
        ))));
    }

    fn decide(&self, commits: Result<BTreeSet<u64>>) {
        let _ = self.commits.set(commits);
        self.announce.close();
    }

    /// Waits until the coordinator has read its log.
    pub(in crate::shard) async fn commits(&self) -> Result<BTreeSet<u64>> {
        let _ = self.known.recv().await;
        self.commits.get().cloned().unwrap_or(Err(StoreError::Closed))
    }
}
