//! The mesh: messages between the threads of the shards.

use super::Store;
use crate::error::{Result, StoreError};
use crate::shard::recovery::decisions::Decisions;
use futures_util::future::LocalBoxFuture;
use softflash_base::ShardId;
use std::sync::Arc;

/// A job for another shard's thread.
pub(crate) type Job = Box<dyn FnOnce(Store) -> LocalBoxFuture<'static, ()> + Send>;

/// The inboxes of all shards and the coordinator's decisions, shared by all threads.
#[derive(Clone)]
pub struct Mesh {
    inboxes: Arc<[async_channel::Sender<Job>]>,
    pub(super) decisions: Arc<Decisions>,
}

/// One shard's end of the mesh.
pub struct Inbox(pub(super) async_channel::Receiver<Job>);

impl Mesh {
    /// A mesh of `shards` shards, and the inbox of each.
    pub fn new(shards: u16) -> (Mesh, Vec<Inbox>) {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..shards).map(|_| async_channel::unbounded()).unzip();
        let mesh = Mesh { inboxes: senders.into(), decisions: Arc::default() };
        (mesh, receivers.into_iter().map(Inbox).collect())
    }

    /// Refuses all further jobs, and ends the tasks that serve the inboxes.
    pub(super) fn close(&self) {
        for inbox in &*self.inboxes {
            inbox.close();
        }
    }

    pub(crate) fn send(&self, shard: ShardId, job: Job) -> Result<()> {
        let inbox = self.inboxes.get(shard.index()).ok_or(StoreError::Closed)?;
        inbox.try_send(job).map_err(|_| StoreError::Closed)
    }
}

impl Inbox {
    /// Refuses all jobs, also those that were sent: their senders get [`StoreError::Closed`].
    pub(super) fn refuse_jobs(self) {
        self.0.close();
        // A channel without receiver keeps its messages as long as it has a sender.
        while self.0.try_recv().is_ok() {}
    }
}
