//! Commits over several shards: the messages between participants and coordinator. The protocol and its
//! state are in `shard/transactions.rs`.

use super::transaction::Transaction;
use super::{CommitToken, Store};
use crate::error::{Result, StoreError};
use crate::shard::Writes;
use crate::shard::decisions::COORDINATOR;
use crate::shard::transactions::Decided;
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
                Box::pin(async move { store.shard.admit_writes(&writes).await })
            })
        }))
        .await?
        .into_iter()
        .collect::<Result<()>>()?;
        // From here on the transaction goes through even if its client has gone: others wait for its
        // number.
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
        let number = self.call(COORDINATOR, move |store| store.shard.register(&shards)).await?;
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

    /// At a participant: applies its part, and reports to the coordinator when it is durable.
    fn prepare(&self, number: u64, writes: Writes) -> u64 {
        let seq = self.shard.prepare(number, writes);
        let store = self.clone();
        self.runtime().spawn(Box::pin(async move {
            let shard = store.local_id();
            if let Err(error) = store.shard.log().written_soon(seq).await {
                return store.fail_everywhere(shard, &error).await;
            }
            let report = store
                .call(COORDINATOR, move |coordinator| coordinator.note_prepared(number, shard));
            // A coordinator that has stopped decides at recovery.
            let _ = report.await;
        }));
        seq
    }

    /// At the coordinator: commits the transactions that are complete.
    fn note_prepared(&self, number: u64, shard: ShardId) {
        for Decided { number, participants, seq } in self.shard.note_prepared(number, shard) {
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

    /// At a participant: the transaction is committed. When the own log records that, the coordinator may
    /// forget it.
    fn note_committed(&self, number: u64) {
        let (store, seq) = (self.clone(), self.shard.note_committed(number));
        self.runtime().spawn(Box::pin(async move {
            let shard = store.local_id();
            if store.shard.log().written(seq).await.is_ok() {
                let notice = store.call(COORDINATOR, move |coordinator| {
                    coordinator.shard.forget_commit(number, shard);
                });
                let _ = notice.await;
            }
        }));
    }

    /// Tells the coordinator that it need not remember for this shard the commits that its log recorded
    /// when it was opened.
    pub(super) fn report_caught_up(&self) {
        let (store, shard) = (self.clone(), self.local_id());
        self.runtime().spawn(Box::pin(async move {
            let report =
                store.call(COORDINATOR, move |coordinator| coordinator.shard.note_caught_up(shard));
            // A coordinator that has stopped remembers: its log records them.
            let _ = report.await;
        }));
    }

    /// The log of `shard` has failed with a transaction under way that it takes part in. The transaction
    /// cannot be decided before the next recovery, nor any later one, and no write behind it in any log
    /// can be acknowledged.
    async fn fail_everywhere(&self, shard: ShardId, error: &StoreError) {
        if matches!(error, StoreError::Closed) {
            return;
        }
        let reason =
            format!("a transaction over several shards cannot end: shard {shard}: {error}");
        for other in (0..self.layout().shards).map(ShardId).filter(|other| *other != shard) {
            let reason = reason.clone();
            let notice = self.call(other, move |store| store.shard.log().fail(&reason));
            // A shard that has stopped has no clients that wait.
            let _ = notice.await;
        }
    }

    /// Runs a job that does not wait on the thread of `shard`.
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
