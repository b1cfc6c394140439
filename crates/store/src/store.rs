//! One thread's handle to the whole store: its own shard directly, the others by message.

use crate::error::{Result, StoreError};
use crate::layout::StoreLayout;
use crate::shard::gate::GateGuard;
use crate::shard::{Read, Shard};
use crate::stats::StoreStats;
use crate::value::Entry;
use crate::view::View;
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use smallvec::SmallVec;
use softflash_base::planted::{self, Bug};
use softflash_base::{ShardId, SliceId};
use softflash_ftl::UnitTelemetry;
use softflash_runtime::RuntimeHandle;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A job for another shard's thread.
pub(crate) type Job = Box<dyn FnOnce(Store) -> LocalBoxFuture<'static, ()> + Send>;

/// The inboxes of all shards; shared by all threads.
#[derive(Clone)]
pub struct Mesh {
    inboxes: Arc<[async_channel::Sender<Job>]>,
    decisions: Arc<Decisions>,
}

/// Which transactions count, as the coordinator's log tells when the store is opened.
struct Decisions {
    commits: OnceLock<Result<BTreeSet<u64>>>,
    /// Closed when the commits are known.
    known: async_channel::Receiver<()>,
    announce: async_channel::Sender<()>,
}

/// One shard's end of the mesh.
pub struct Inbox(async_channel::Receiver<Job>);

impl Mesh {
    /// A mesh of `shards` shards, and each one's inbox.
    pub fn new(shards: u16) -> (Mesh, Vec<Inbox>) {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..shards).map(|_| async_channel::unbounded()).unzip();
        let (announce, known) = async_channel::bounded(1);
        let decisions = Decisions { commits: OnceLock::new(), known, announce };
        let mesh = Mesh { inboxes: senders.into(), decisions: Arc::new(decisions) };
        (mesh, receivers.into_iter().map(Inbox).collect())
    }

    /// The coordinator tells which transactions its log says to be committed.
    pub(crate) fn publish_commits(&self, commits: BTreeSet<u64>) {
        self.decide(Ok(commits));
    }

    /// A shard cannot be opened: those that wait for it are told.
    pub(crate) fn abandon(&self, shard: ShardId, error: &StoreError) {
        self.decide(Err(StoreError::Unusable(format!(
            "shard {shard} could not be opened: {error}"
        ))));
    }

    fn decide(&self, commits: Result<BTreeSet<u64>>) {
        let _ = self.decisions.commits.set(commits);
        self.decisions.announce.close();
    }

    /// Waits until the coordinator has read its log.
    pub(crate) async fn commits(&self) -> Result<BTreeSet<u64>> {
        let _ = self.decisions.known.recv().await;
        self.decisions.commits.get().cloned().unwrap_or(Err(StoreError::Closed))
    }

    pub(crate) fn send(&self, shard: ShardId, job: Job) -> Result<()> {
        let inbox = self.inboxes.get(shard.index()).ok_or(StoreError::Closed)?;
        inbox.try_send(job).map_err(|_| StoreError::Closed)
    }
}

/// The store as one thread holds it. A clone is the same store.
#[derive(Clone)]
pub struct Store {
    shard: Rc<Shard>,
    mesh: Mesh,
}

impl Store {
    /// Joins a shard to the mesh and starts serving its inbox on the shard's runtime.
    pub fn join(shard: Rc<Shard>, mesh: Mesh, inbox: Inbox) -> Store {
        let store = Store { shard, mesh };
        let serving = store.clone();
        store.shard.runtime().spawn(Box::pin(async move {
            while let Ok(job) = inbox.0.recv().await {
                let task = job(serving.clone());
                serving.shard.runtime().spawn(task);
            }
        }));
        store
    }

    /// How the key space is cut.
    pub fn layout(&self) -> &StoreLayout {
        self.shard.layout()
    }

    /// The thread's runtime.
    pub fn runtime(&self) -> &RuntimeHandle {
        self.shard.runtime()
    }

    /// The thread's own shard.
    pub fn local(&self) -> &Rc<Shard> {
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

    /// Milliseconds since the Unix epoch by the store's clock, which never runs back.
    pub fn now_ms(&self) -> u64 {
        self.shard.now_ms()
    }

    /// Runs `job` on the thread of `shard`; directly where that is this one.
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
                // A caller that has gone away drops the result where it was made.
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

    /// Starts a transaction.
    pub fn view(&self) -> View {
        View::new(self.clone(), false)
    }

    /// Waits until nobody else works on `shards` and keeps others out until the guard is dropped.
    /// Views made from the guard's [`Exclusive::view`] pass.
    pub async fn exclusive(&self, mut shards: Vec<ShardId>) -> Result<Exclusive> {
        // Always in ascending order, so that two of them cannot wait for each other.
        shards.sort_unstable();
        shards.dedup();
        if planted::bug(Bug::GatesInReverse) {
            shards.get_mut(1..).unwrap_or_default().reverse();
        }
        let mut guards = Vec::with_capacity(shards.len());
        for shard in shards {
            let mesh = self.mesh.clone();
            let guard = self
                .run_on(shard, move |store| {
                    Box::pin(async move {
                        store.shard.gate.hold().await;
                        GateGuard::new(store.shard.id(), mesh)
                    })
                })
                .await?;
            guards.push(guard);
        }
        Ok(Exclusive { store: self.clone(), _guards: guards })
    }

    /// Applies a view's writes, all or none. Returns when they are visible; they are durable when
    /// [`durable`](Store::durable) says so of the ticket.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] where a key that the view read has changed since; run the command again on a
    /// new view. A view that writes more than one shard must come from [`Store::exclusive`].
    pub async fn commit(&self, view: View) -> Result<Ticket> {
        crate::shard::commit::commit(self, view).await
    }

    /// Waits until what the ticket names survives a power cut; returns at once where the store's
    /// durability is an interval.
    pub async fn durable(&self, ticket: &Ticket) -> Result<()> {
        for &(shard, seq) in &ticket.seqs {
            if shard == self.local_id() {
                self.shard.durable(seq).await?;
            } else {
                self.run_on(shard, move |store| {
                    Box::pin(async move { store.shard.durable(seq).await })
                })
                .await??;
            }
        }
        Ok(())
    }

    pub(crate) async fn read(&self, shard: ShardId, key: &Bytes, exclusive: bool) -> Result<Read> {
        if shard == self.local_id() {
            return self.shard.read(key, exclusive).await;
        }
        let key = key.clone();
        self.run_on(shard, move |store| {
            Box::pin(async move { store.shard.read(&key, exclusive).await })
        })
        .await?
    }

    /// Brings keys into memory ahead of a transaction, so that it waits for no flash while it keeps
    /// others out. Errors are left for the transaction to meet.
    pub async fn prefetch(&self, keys: &[Bytes]) {
        let reads = keys.iter().map(|key| self.read(self.shard_of(key), key, false));
        futures_util::future::join_all(reads).await;
    }

    /// Watches a key: the token tells whether anything has written it since.
    pub async fn watch(&self, key: Bytes) -> Result<WatchToken> {
        let token = WatchToken(Arc::new(AtomicBool::new(false)));
        let (shard, registered) = (self.shard_of(&key), token.clone());
        self.run_on(shard, move |store| {
            Box::pin(async move { store.shard.watch(key, registered).await })
        })
        .await??;
        Ok(token)
    }

    /// Up to `limit` live keys of a slice in ascending order, from the first one after `after` on.
    pub async fn scan(
        &self,
        slice: SliceId,
        after: Option<Bytes>,
        limit: usize,
    ) -> Result<ScanPage> {
        let shard = self.layout().shard_of_slice(slice);
        self.run_on(shard, move |store| {
            Box::pin(async move { store.shard.scan(slice, after, limit).await })
        })
        .await?
    }

    /// The number of keys; see `docs/redis.md` for how exact it is.
    pub async fn key_count(&self) -> Result<u64> {
        let counts =
            self.run_on_all(|store| Box::pin(async move { store.shard.key_count().await }));
        counts.await?.into_iter().sum()
    }

    /// Some live key, if there is any; `random` picks it.
    pub async fn random_key(&self, random: u64) -> Result<Option<Bytes>> {
        let shards = u64::from(self.layout().shards);
        for step in 0..shards {
            let shard = ShardId(((random + step) % shards) as u16);
            let found = self
                .run_on(shard, move |store| {
                    Box::pin(async move { store.shard.random_key(random / shards).await })
                })
                .await??;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The counters of all shards, added up.
    pub async fn stats(&self) -> Result<StoreStats> {
        let mut total = StoreStats::default();
        let parts = self.run_on_all(|store| Box::pin(async move { store.shard.stats() })).await?;
        parts.iter().for_each(|part| total.add(part));
        Ok(total)
    }

    /// The counters of this thread's shard alone, at once.
    pub fn shard_stats(&self) -> StoreStats {
        self.shard.stats()
    }

    /// Every unit's state.
    pub async fn units(&self) -> Result<Vec<UnitTelemetry>> {
        let parts = self.run_on_all(|store| Box::pin(async move { store.shard.units() })).await?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// Makes everything durable and stops this thread's shard: what comes later is refused.
    pub async fn close(&self) -> Result<()> {
        self.shard.close().await
    }
}

/// What must be durable before an answer may be given: a sequence number per shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ticket {
    seqs: SmallVec<[(ShardId, u64); 1]>,
}

impl Ticket {
    /// A ticket for one shard.
    pub fn of(shard: ShardId, seq: u64) -> Ticket {
        let mut ticket = Ticket::default();
        ticket.add(shard, seq);
        ticket
    }

    /// Adds a shard's sequence number.
    pub fn add(&mut self, shard: ShardId, seq: u64) {
        if seq == 0 {
            return;
        }
        match self.seqs.iter_mut().find(|(known, _)| *known == shard) {
            Some((_, known)) => *known = seq.max(*known),
            None => self.seqs.push((shard, seq)),
        }
    }

    /// Adds all of another ticket.
    pub fn merge(&mut self, other: &Ticket) {
        other.seqs.iter().for_each(|&(shard, seq)| self.add(shard, seq));
    }

    /// Whether there is nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.seqs.is_empty()
    }
}

/// Tells whether a watched key was written.
#[derive(Debug, Clone)]
pub struct WatchToken(pub(crate) Arc<AtomicBool>);

impl WatchToken {
    /// Whether anything has written the key since the watch began.
    pub fn touched(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn touch(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether only the shard still knows the token.
    pub(crate) fn is_orphan(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// The right to work on some shards alone; ends when dropped.
pub struct Exclusive {
    store: Store,
    _guards: Vec<GateGuard>,
}

impl Exclusive {
    /// A transaction that passes the gates.
    pub fn view(&self) -> View {
        View::new(self.store.clone(), true)
    }

    /// As [`Store::scan`], past the gate of the slice's shard.
    pub async fn scan(
        &self,
        slice: SliceId,
        after: Option<Bytes>,
        limit: usize,
    ) -> Result<ScanPage> {
        let shard = self.store.layout().shard_of_slice(slice);
        let job = move |store: Store| -> LocalBoxFuture<'static, Result<ScanPage>> {
            Box::pin(async move { store.shard.scan_exclusively(slice, after, limit).await })
        };
        self.store.run_on(shard, job).await?
    }

    /// As [`Store::key_count`], past the gates.
    pub async fn key_count(&self) -> Result<u64> {
        let counts = self
            .store
            .run_on_all(|store| Box::pin(async move { store.shard.key_estimate() }))
            .await?;
        Ok(counts.into_iter().sum())
    }
}

/// A page of a scan.
#[derive(Debug, Clone, Default)]
pub struct ScanPage {
    /// Live keys and what they map to, in ascending order.
    pub items: Vec<(Bytes, Entry)>,
    /// The key to go on after, where the slice has more.
    pub next: Option<Bytes>,
}
