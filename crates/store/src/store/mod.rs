//! A thread's handle to the whole store: direct calls to its own shard, messages to the others.

mod commit;
mod exclusive;
mod inspect;
mod mesh;
mod open;
mod together;
mod token;
mod transaction;
mod two_phase;

pub use exclusive::Exclusive;
pub use mesh::{Inbox, Mesh};
pub(crate) use open::open_all_for_repair;
pub use open::{ShardSpec, open_all, open_all_with_log};
pub use together::LongWork;
pub use token::CommitToken;
pub use transaction::Transaction;

use crate::error::{Result, StoreError};
use crate::layout::StoreLayout;
use crate::shard::{RandomKeys, Read, Reader, ScanPage, Scanner, Shard, WatchToken};
use crate::spare::HeldValues;
use crate::stats::{KeyCount, Stalls, StoreStats};
use crate::value::Wanted;
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use mesh::Job;
use softflash_base::{ShardId, SliceId, UnitSet};
use softflash_device::QueuePair;
use softflash_ftl::{Hint, UnitTelemetry};
use softflash_runtime::RuntimeHandle;
use std::rc::Rc;

/// A thread's handle to the store. A clone is the same store.
#[derive(Clone)]
pub struct Store {
    shard: Rc<Shard>,
    /// The threads would contend for the counts of the mesh's own clones.
    mesh: Rc<Mesh>,
    /// What the reads of this handle say of themselves.
    hint: Hint,
    /// The batch that the values are read for. Not the count of the batch's own clones, for which
    /// its threads would contend.
    held: Option<Rc<HeldValues>>,
}

impl Store {
    /// Joins a shard to the mesh and starts serving its inbox on the shard's runtime.
    fn join(shard: Rc<Shard>, mesh: Mesh, inbox: Inbox) -> Store {
        let store = Store { shard, mesh: Rc::new(mesh), hint: Hint::FOREGROUND, held: None };
        let serving = store.clone();
        store.shard.runtime().spawn(Box::pin(async move {
            while let Ok(job) = inbox.0.recv().await {
                let task = job(serving.clone());
                serving.shard.runtime().spawn(task);
            }
        }));
        store
    }

    /// The same store for requests with this hint, also where another shard serves them. The log
    /// carries the writes of all clients together and has a hint of its own.
    pub fn hinted(&self, hint: Hint) -> Store {
        Store { hint, ..self.clone() }
    }

    /// The values of a batch of requests that begins.
    pub fn held_values(&self) -> HeldValues {
        HeldValues::of(self.shard.spare().clone())
    }

    /// The same store for a batch of requests: its large values wait for memory as one.
    pub fn holding(&self, held: &HeldValues) -> Store {
        Store { held: Some(Rc::new(held.clone())), ..self.clone() }
    }

    /// The division of the key space.
    pub fn layout(&self) -> &StoreLayout {
        self.shard.layout()
    }

    /// The thread's runtime.
    pub fn runtime(&self) -> &RuntimeHandle {
        self.shard.runtime()
    }

    /// The thread's own shard.
    pub(crate) fn local(&self) -> &Rc<Shard> {
        &self.shard
    }

    /// The id of the thread's own shard.
    pub fn local_id(&self) -> ShardId {
        self.shard.id()
    }

    /// The shard that holds `key`.
    pub fn shard_of(&self, key: &[u8]) -> ShardId {
        self.layout().shard_of(key)
    }

    /// The most bytes of a new value.
    pub fn max_value_bytes(&self) -> usize {
        self.shard.max_value_bytes()
    }

    /// Milliseconds since the Unix epoch by the store's clock, which is monotonic.
    pub fn now_ms(&self) -> u64 {
        self.shard.now_ms()
    }

    /// Runs `job` on the thread of `shard`; directly if that is this thread.
    pub async fn run_on<R: Send + 'static>(
        &self,
        shard: ShardId,
        job: impl FnOnce(Store) -> LocalBoxFuture<'static, R> + Send + 'static,
    ) -> Result<R> {
        if shard == self.local_id() {
            return Ok(job(self.clone()).await);
        }
        let (reply, answer) = futures_channel::oneshot::channel();
        let job: Job = Box::new(move |store| {
            let work = job(store);
            Box::pin(async move {
                // If the caller is gone, the result is dropped on this thread.
                let _ = reply.send(work.await);
            })
        });
        self.mesh.send(shard, job)?;
        answer.await.map_err(|_| StoreError::Closed)
    }

    /// Runs `job` on every shard's thread at once; the results are in order of the shards.
    pub async fn run_on_all<R: Send + 'static>(
        &self,
        job: impl Fn(Store) -> LocalBoxFuture<'static, R> + Clone + Send + 'static,
    ) -> Result<Vec<R>> {
        let shards =
            (0..self.layout().shards).map(|shard| self.run_on(ShardId(shard), job.clone()));
        futures_util::future::try_join_all(shards).await
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Transaction {
        Transaction::new(self.clone(), false)
    }

    /// Waits until the writes of the token are durable; returns at once where the store's
    /// durability is an interval.
    pub async fn durable(&self, token: &CommitToken) -> Result<()> {
        for &(shard, seq) in &token.seqs {
            if shard == self.local_id() {
                self.shard.log().durable(seq).await?;
            } else {
                self.run_on(shard, move |store| {
                    Box::pin(async move { store.shard.log().durable(seq).await })
                })
                .await??;
            }
        }
        Ok(())
    }

    pub(crate) async fn read(
        &self,
        shard: ShardId,
        key: &Bytes,
        exclusive: bool,
        wanted: Wanted,
    ) -> Result<Read> {
        if shard == self.local_id() {
            let reader = Reader::of(&self.shard, self.hint).for_batch(self.held.as_deref());
            return reader.read(key, exclusive, wanted).await;
        }
        let (key, hint) = (key.clone(), self.hint);
        self.run_on(shard, move |store| {
            Box::pin(
                async move { Reader::of(&store.shard, hint).read(&key, exclusive, wanted).await },
            )
        })
        .await?
    }

    /// About the length of the value of a key of this thread's shard, where memory tells it.
    pub fn value_bytes_in_memory(&self, key: &Bytes) -> Option<u64> {
        let is_local = self.shard_of(key) == self.local_id();
        is_local.then(|| Reader::of(&self.shard, self.hint).value_bytes_in_memory(key)).flatten()
    }

    /// Watches a key: the token is marked when the key is written.
    pub async fn watch(&self, key: Bytes) -> Result<WatchToken> {
        let token = WatchToken::default();
        let (shard, registered) = (self.shard_of(&key), token.clone());
        self.run_on(shard, move |store| {
            Box::pin(async move { store.shard.watch(key, registered).await })
        })
        .await?;
        Ok(token)
    }

    /// Up to `limit` live keys of a slice in ascending order, from the first one after `after` on.
    pub async fn scan(
        &self,
        slice: SliceId,
        after: Option<Bytes>,
        limit: usize,
    ) -> Result<ScanPage> {
        self.scan_for(slice, after, limit, Wanted::Entries).await
    }

    /// As [`scan`](Store::scan), for callers that need only the keys: large values, which would
    /// have to be read, are empty.
    pub async fn scan_keys(
        &self,
        slice: SliceId,
        after: Option<Bytes>,
        limit: usize,
    ) -> Result<ScanPage> {
        self.scan_for(slice, after, limit, Wanted::Keys).await
    }

    async fn scan_for(
        &self,
        slice: SliceId,
        after: Option<Bytes>,
        limit: usize,
        wanted: Wanted,
    ) -> Result<ScanPage> {
        let (shard, hint) = (self.layout().shard_of_slice(slice), self.hint);
        self.run_on(shard, move |store| {
            Box::pin(async move {
                Scanner::of(&store.shard, hint).scan(slice, after, limit, wanted).await
            })
        })
        .await?
    }

    /// The number of keys; see `docs/redis.md` for how exact it is.
    pub async fn key_count(&self) -> Result<KeyCount> {
        let counts =
            self.run_on_all(|store| Box::pin(async move { store.shard.key_count().await }));
        Ok(KeyCount::sum(counts.await?))
    }

    /// A live key chosen by `random`, if there is any.
    pub async fn random_key(&self, random: u64) -> Result<Option<Bytes>> {
        let (shards, hint) = (u64::from(self.layout().shards), self.hint);
        for step in 0..shards {
            let shard = ShardId(((random + step) % shards) as u16);
            let found = self
                .run_on(shard, move |store| {
                    Box::pin(async move {
                        RandomKeys::of(&store.shard, hint).pick_live(random / shards).await
                    })
                })
                .await??;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The sum of the counters of all shards.
    pub async fn stats(&self) -> Result<StoreStats> {
        let mut total = StoreStats::default();
        let parts = self.run_on_all(|store| Box::pin(async move { store.shard.stats() })).await?;
        parts.iter().for_each(|part| total.add(part));
        Ok(total)
    }

    /// The counters of this thread's shard.
    pub fn shard_stats(&self) -> StoreStats {
        self.shard.stats()
    }

    /// The time for which admission delayed writers of this thread's shard, by cause.
    pub fn shard_stalls(&self) -> Stalls {
        self.shard.stalls()
    }

    /// Shrinks the read caches of all shards, after much of the
    /// [spare memory](crate::memory::SpareMemory) has been taken.
    pub async fn fit_caches(&self) -> Result<()> {
        self.run_on_all(|store| Box::pin(async move { store.shard.fit_cache() })).await.map(drop)
    }

    /// The telemetry of every unit.
    pub async fn units(&self) -> Result<Vec<UnitTelemetry>> {
        let parts = self.run_on_all(|store| Box::pin(async move { store.shard.units() })).await?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// The counters and the state of the units of each shard.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    pub async fn shard_states(&self) -> Result<Vec<(StoreStats, Vec<UnitTelemetry>)>> {
        self.run_on_all(|store| Box::pin(async move { (store.shard.stats(), store.shard.units()) }))
            .await
    }

    /// Erased units of the device join this thread's shard, by a table of sets of this epoch.
    ///
    /// # Errors
    /// Those of their mount, and [`StoreError::Closed`]; the shard is as before then.
    pub async fn join_units(&self, queue: Box<dyn QueuePair>, epoch: u32) -> Result<()> {
        self.shard.join_units(queue, epoch).await
    }

    /// Empties units of this thread's shard: nothing needs them any more. They take no data from
    /// here on, unless this fails or is dropped before its end.
    ///
    /// # Errors
    /// [`StoreError::NotDrained`] where the data do not fit the other units;
    /// [`StoreError::Closed`], and errors of the log.
    pub async fn drain_units(&self, units: &UnitSet) -> Result<()> {
        self.shard.drain_units(units).await
    }

    /// Drained units leave this thread's shard.
    ///
    /// # Errors
    /// [`StoreError::NotDrained`] where they hold data, and errors of the flash.
    pub async fn leave_units(&self, units: &UnitSet) -> Result<()> {
        self.shard.leave_units(units).await
    }

    /// Drained units of this thread's shard take data again.
    pub fn keep_units(&self, units: &UnitSet) {
        self.shard.keep_units(units);
    }

    /// Bytes of the blocks that this thread's shard has on these units.
    pub fn bytes_on(&self, units: &UnitSet) -> u64 {
        self.shard.bytes_on(units)
    }

    /// Makes all writes durable and stops this thread's shard, which refuses later commands.
    pub async fn close(&self) -> Result<()> {
        self.shard.close().await
    }
}
