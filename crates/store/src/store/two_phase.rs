//! Two-phase commit: the messages between participants and coordinator. The protocol and its state
//! are in `shard/transactions/table.rs`.

use super::transaction::Transaction;
use super::{CommitToken, Store};
use crate::error::{Result, StoreError};
use crate::shard::recovery::decisions::COORDINATOR;
use crate::shard::{Committer, Coordinator, Decided, Participant, Writes};
use futures_util::future::try_join_all;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use std::collections::BTreeMap;

impl Store {
    /// Commits a transaction that writes several shards. The caller holds their gates.
    pub(super) async fn commit_across(
        &self,
        transaction: Transaction,
        shards: Vec<ShardId>,
    ) -> Result<CommitToken> {
        let parts = self.parts_of(transaction.writes, &shards);
        try_join_all(parts.iter().map(|(shard, writes)| {
            let writes = writes.clone();
            self.run_on(*shard, move |store| {
                Box::pin(async move { Committer::of(&store.shard).admit_writes(&writes).await })
            })
        }))
        .await?
        .into_iter()
        .collect::<Result<()>>()?;
        // From here on the transaction completes even if its client is gone: later numbers wait for
        // it.
        let (reply, result) = futures_channel::oneshot::channel();
        let driver = self.clone();
        self.runtime().spawn(Box::pin(async move {
            let _ = reply.send(driver.prepare_all(parts, shards).await);
        }));
        result.await.map_err(|_| StoreError::Closed)?
    }

    fn parts_of(&self, writes: Writes, shards: &[ShardId]) -> BTreeMap<ShardId, Writes> {
        let clear = writes.clear;
        let mut parts: BTreeMap<ShardId, Writes> =
            shards.iter().map(|shard| (*shard, Writes::new(clear))).collect();
        for (key, entry) in writes.into_entries() {
            parts.entry(self.shard_of(&key)).or_default().set(key, entry);
        }
        parts
    }

    async fn prepare_all(
        &self,
        parts: BTreeMap<ShardId, Writes>,
        shards: Vec<ShardId>,
    ) -> Result<CommitToken> {
        let number = self
            .call(COORDINATOR, move |store| Coordinator::of(&store.shard).register(&shards))
            .await?;
        let prepares = parts.into_iter().map(|(shard, writes)| async move {
            let prepared = self.call(shard, move |store| store.prepare(number, writes)).await;
            prepared.map(|seq| (shard, seq))
        });
        let mut token = CommitToken::default();
        for (shard, seq) in try_join_all(prepares).await? {
            token.add(shard, seq);
        }
        Ok(token)
    }

    /// At a participant: applies its part as a prepare, and reports to the coordinator when that is
    /// durable.
    fn prepare(&self, number: u64, writes: Writes) -> u64 {
        let seq = Participant::of(&self.shard).prepare(number, writes);
        let store = self.clone();
        self.runtime().spawn(Box::pin(async move {
            let shard = store.local_id();
            if let Err(error) = store.shard.log().written_soon(seq).await {
                return store.fail_everywhere(shard, &error).await;
            }
            let report = store
                .call(COORDINATOR, move |coordinator| coordinator.note_prepared(number, shard));
            // Ignore the error: if the coordinator has stopped, recovery decides.
            let _ = report.await;
        }));
        seq
    }

    /// At the coordinator: commits the transactions whose prepares are all durable.
    fn note_prepared(&self, number: u64, shard: ShardId) {
        for Decided { number, participants, seq } in
            Coordinator::of(&self.shard).note_prepared(number, shard)
        {
            let store = self.clone();
            self.runtime().spawn(Box::pin(async move {
                if !planted::bug(Bug::CommitNotAwaited)
                    && let Err(error) = store.shard.log().written_soon(seq).await
                {
                    return store.fail_everywhere(COORDINATOR, &error).await;
                }
                for shard in participants {
                    let notice =
                        store.call(shard, move |participant| participant.note_committed(number));
                    let _ = notice.await;
                }
            }));
        }
    }

    /// At a participant: the transaction is committed. Once this shard's log has the commit
    /// durably, the coordinator may forget it.
    fn note_committed(&self, number: u64) {
        let (store, seq) = (self.clone(), Participant::of(&self.shard).note_committed(number));
        self.runtime().spawn(Box::pin(async move {
            let shard = store.local_id();
            if store.shard.log().written(seq).await.is_ok() {
                let notice = store.call(COORDINATOR, move |coordinator| {
                    Coordinator::of(&coordinator.shard).forget_commit(number, shard);
                });
                let _ = notice.await;
            }
        }));
    }

    /// Reports to the coordinator that this shard has caught up, so that it need not retain
    /// recovered commits for the shard.
    pub(super) fn report_caught_up(&self) {
        let (store, shard) = (self.clone(), self.local_id());
        self.runtime().spawn(Box::pin(async move {
            let report = store.call(COORDINATOR, move |coordinator| {
                Coordinator::of(&coordinator.shard).note_caught_up(shard)
            });
            // Ignore the error: a stopped coordinator still has the commits in its log.
            let _ = report.await;
        }));
    }

    /// The log of `shard` has failed, and the shard takes part in an undecided transaction. Neither
    /// it nor a later transaction can be decided before the next recovery, and no later write in
    /// any log can be acknowledged.
    async fn fail_everywhere(&self, shard: ShardId, error: &StoreError) {
        if matches!(error, StoreError::Closed) {
            return;
        }
        let reason =
            format!("a transaction over several shards cannot be decided: shard {shard}: {error}");
        for other in (0..self.layout().shards).map(ShardId).filter(|other| *other != shard) {
            let reason = reason.clone();
            let notice = self.call(other, move |store| store.shard.log().fail(&reason));
            // Ignore the error: a stopped shard has no waiting clients.
            let _ = notice.await;
        }
    }

    /// Runs a synchronous job on the thread of `shard`.
    async fn call<R: Send + 'static>(
        &self,
        shard: ShardId,
        job: impl FnOnce(&Store) -> R + Send + 'static,
    ) -> Result<R> {
        self.run_on(shard, move |store| {
            let result = job(&store);
            Box::pin(std::future::ready(result))
        })
        .await
    }
}
