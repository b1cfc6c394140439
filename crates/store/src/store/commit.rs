//! Commits a transaction: routes its writes to the shards of their keys.

use super::transaction::Transaction;
use super::{CommitToken, Store};
use crate::error::{Result, StoreError};
use crate::shard::{Committer, ReadMark, Writes};
use softflash_base::ShardId;

impl Store {
    /// Applies a transaction's writes atomically. Returns when they are visible; they are durable
    /// when [`durable`](Store::durable) of the token returns.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] where a key that the transaction read has changed since; run the
    /// command again in a new transaction. A transaction that writes more than one shard must come
    /// from [`Store::exclusive`].
    pub async fn commit(&self, transaction: Transaction) -> Result<CommitToken> {
        let mut token = transaction.seen.clone();
        if transaction.is_read_only() {
            return Ok(token);
        }
        if let Some(shard) = transaction.only_written_shard() {
            let Transaction { mut marks, writes, exclusive, .. } = transaction;
            marks.retain(|mark| mark.shard == shard);
            token.add(shard, self.commit_on(shard, writes, marks, exclusive).await?);
            return Ok(token);
        }
        if !transaction.exclusive {
            return Err(StoreError::Unusable(
                "a transaction over several shards must hold them exclusively".into(),
            ));
        }
        let shards = transaction.written_shards();
        token.merge(&self.commit_across(transaction, shards).await?);
        Ok(token)
    }

    /// Commits writes of one shard; returns their sequence number.
    async fn commit_on(
        &self,
        shard: ShardId,
        writes: Writes,
        marks: Vec<ReadMark>,
        exclusive: bool,
    ) -> Result<u64> {
        if shard == self.local_id() {
            return Committer::of(&self.shard).commit(writes, &marks, exclusive).await;
        }
        self.run_on(shard, move |store| {
            Box::pin(
                async move { Committer::of(&store.shard).commit(writes, &marks, exclusive).await },
            )
        })
        .await?
    }
}
