//! Exclusive access to shards: holds their gates, so that changes by several commands, or of
//! several shards, are atomic.

use super::mesh::{Job, Mesh};
use super::together::FEW_STEPS;
use super::transaction::Transaction;
use super::{ScanPage, Store};
use crate::error::Result;
use crate::shard::Scanner;
use crate::stats::KeyCount;
use crate::value::Wanted;
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use softflash_base::planted::{self, Bug};
use softflash_base::{ShardId, SliceId};
use softflash_runtime::BytePermit;

/// Exclusive access to some shards until it is dropped.
pub struct Exclusive {
    store: Store,
    _guards: Vec<GateGuard>,
    /// Given back after the gates.
    _turn: Option<BytePermit>,
}

impl Exclusive {
    /// Begins a transaction that passes the gates.
    pub fn begin(&self) -> Transaction {
        Transaction::new(self.store.clone(), true)
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// As [`Store::scan_keys`], without waiting for the gate of the slice's shard.
    pub async fn scan_keys(
        &self,
        slice: SliceId,
        after: Option<Bytes>,
        limit: usize,
    ) -> Result<ScanPage> {
        let (shard, hint) = (self.store.layout().shard_of_slice(slice), self.store.hint);
        let job = move |store: Store| -> LocalBoxFuture<'static, Result<ScanPage>> {
            Box::pin(async move {
                let scanner = Scanner::of(&store.shard, hint);
                scanner.scan_exclusively(slice, after, limit, Wanted::Keys).await
            })
        };
        self.store.run_on(shard, job).await?
    }

    /// As [`Store::key_count`], without waiting for the gates.
    pub async fn key_count(&self) -> Result<KeyCount> {
        let counts = self
            .store
            .run_on_all(|store| Box::pin(async move { store.shard.key_estimate() }))
            .await?;
        Ok(KeyCount::sum(counts))
    }
}

impl Store {
    /// Waits for exclusive access to `shards`, and blocks other tasks until the guard is dropped.
    /// Transactions from the guard's [`Exclusive::begin`] pass.
    pub async fn exclusive(&self, shards: Vec<ShardId>) -> Result<Exclusive> {
        self.exclusive_for(shards, 1).await
    }

    /// As [`exclusive`](Store::exclusive), for work of so many steps (keys or commands). Of long
    /// work, a thread waits at the gates for one at a time: so short work waits there for as many
    /// as there are threads, however many clients have long work.
    pub async fn exclusive_for(&self, mut shards: Vec<ShardId>, steps: usize) -> Result<Exclusive> {
        let turn = match steps > FEW_STEPS {
            true => Some(self.shard.long_turn().acquire(1).await),
            false => None,
        };
        // Always in ascending order, so that two callers cannot deadlock.
        shards.sort_unstable();
        shards.dedup();
        if planted::bug(Bug::GatesInReverse) {
            shards.get_mut(1..).unwrap_or_default().reverse();
        }
        let mut guards = Vec::with_capacity(shards.len());
        for shard in shards {
            let mesh = Mesh::clone(&self.mesh);
            let guard = self
                .run_on(shard, move |store| {
                    Box::pin(async move {
                        store.shard.gate().hold().await;
                        GateGuard { shard: store.shard.id(), mesh }
                    })
                })
                .await?;
            guards.push(guard);
        }
        Ok(Exclusive { store: self.clone(), _guards: guards, _turn: turn })
    }
}

/// Holds the gate of a shard, from any thread; releases it when dropped.
struct GateGuard {
    shard: ShardId,
    mesh: Mesh,
}

impl Drop for GateGuard {
    fn drop(&mut self) {
        let release: Job = Box::new(|store| {
            store.local().gate().release();
            Box::pin(std::future::ready(()))
        });
        // Ignore the error: a shard that has stopped needs no gate.
        let _ = self.mesh.send(self.shard, release);
    }
}
