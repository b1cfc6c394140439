//! A thread per shard, each with an executor of its own, controlled phase by phase.

use super::Workload;
use super::load::{Load, key};
use crate::cmd::bench::measure::Latencies;
use crate::embedded::{OpenDir, block_on};
use crate::error::CliError;
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use softflash_base::random::Rng;
use softflash_base::{ShardId, SliceId};
use softflash_store::stats::StoreStats;
use softflash_store::{Entry, Mesh, ShardSpec, Store, StoreError, StoreOptions};
use std::cell::RefCell;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Keys per page of the scan workload.
const SCAN_PAGE: usize = 100;

/// A phase of the run.
#[derive(Debug, Clone, Copy)]
pub struct Phase {
    /// The operation.
    pub workload: Workload,
    /// Number of operations over all threads.
    pub operations: u64,
}

/// Operations, bytes of keys and values, latencies.
pub type Outcome = (u64, u64, Latencies);

enum Order {
    Run(Phase, oneshot::Sender<Result<Outcome, StoreError>>),
    Stats(oneshot::Sender<Result<StoreStats, StoreError>>),
    Close,
}

/// The command channel of a thread, and the thread.
type Worker = (mpsc::UnboundedSender<Order>, JoinHandle<Result<(), CliError>>);

/// All threads.
pub struct Fleet {
    path: std::path::PathBuf,
    threads: Vec<Worker>,
}

impl Fleet {
    /// Starts a thread for each shard; they open their shards concurrently.
    pub fn start(
        directory: &OpenDir,
        options: &StoreOptions,
        load: Arc<Load>,
    ) -> Result<Fleet, CliError> {
        let (mesh, inboxes) = Mesh::new(directory.layout.shards);
        let mut threads = Vec::new();
        for (inbox, id) in inboxes.into_iter().zip(0..) {
            let (sender, orders) = mpsc::unbounded_channel();
            let (path, device) = (directory.path.clone(), Arc::clone(&directory.device));
            let (layout, options) = (directory.layout.clone(), options.clone());
            let (mesh, load, id) = (mesh.clone(), Arc::clone(&load), ShardId(id));
            let thread = std::thread::Builder::new().name(format!("shard-{id}")).spawn(move || {
                block_on(|runtime| async move {
                    let spec = ShardSpec { id, layout, options, device, runtime, mesh, inbox };
                    let failed = |error| CliError::store(&path)(error);
                    let store = Store::open(spec).await.map_err(failed)?;
                    obey(&store, &load, orders).await;
                    store.close().await.map_err(failed)
                })
            });
            let thread =
                thread.map_err(|source| CliError::Io { what: "starting a thread", source })?;
            threads.push((sender, thread));
        }
        Ok(Fleet { path: directory.path.clone(), threads })
    }

    /// Runs a phase on all threads and waits for its end.
    pub fn run(&self, phase: Phase) -> Result<Outcome, CliError> {
        let shards = self.threads.len() as u64;
        let mut answers = Vec::new();
        for (index, (sender, _)) in self.threads.iter().enumerate() {
            let (answer, answered) = oneshot::channel();
            let share =
                phase.operations / shards + u64::from((index as u64) < phase.operations % shards);
            // A thread that has ended does not reply.
            let _ = sender.send(Order::Run(Phase { operations: share, ..phase }, answer));
            answers.push(answered);
        }
        let mut total: Outcome = (0, 0, Latencies::new());
        for answer in answers {
            let (operations, bytes, latencies) = self.wait(answer)?;
            total.0 += operations;
            total.1 += bytes;
            total.2.merge(&latencies);
        }
        Ok(total)
    }

    /// The store's counters.
    pub fn stats(&self) -> Result<StoreStats, CliError> {
        let (answer, answered) = oneshot::channel();
        if let Some((first, _)) = self.threads.first() {
            let _ = first.send(Order::Stats(answer));
        }
        self.wait(answered)
    }

    fn wait<T>(&self, answer: oneshot::Receiver<Result<T, StoreError>>) -> Result<T, CliError> {
        let answer = answer.blocking_recv().map_err(|_| StoreError::Closed);
        answer.and_then(|result| result).map_err(CliError::store(&self.path))
    }

    /// Closes all shards.
    pub fn close(self) -> Result<(), CliError> {
        for (sender, _) in &self.threads {
            let _ = sender.send(Order::Close);
        }
        for (_, thread) in self.threads {
            let died =
                |_| CliError::Failed("a thread of the benchmark has ended unexpectedly".to_owned());
            thread.join().map_err(died)??;
        }
        Ok(())
    }
}

async fn obey(store: &Store, load: &Load, mut orders: mpsc::UnboundedReceiver<Order>) {
    let shard = store.local_id();
    let (numbers, rng) = (load.numbers_of(store.layout(), shard), load.rng(shard));
    while let Some(order) = orders.recv().await {
        match order {
            Order::Run(phase, answer) => {
                let run = Run {
                    store,
                    load,
                    numbers: &numbers,
                    rng: RefCell::new(rng.fork(phase.operations.to_le_bytes())),
                };
                let _ = answer.send(run.phase(phase).await);
            }
            Order::Stats(answer) => {
                let _ = answer.send(store.stats().await);
            }
            Order::Close => return,
        }
    }
}

/// One phase on one thread.
struct Run<'a> {
    store: &'a Store,
    load: &'a Load,
    numbers: &'a [u32],
    rng: RefCell<Rng>,
}

impl Run<'_> {
    async fn phase(&self, phase: Phase) -> Result<Outcome, StoreError> {
        if phase.workload == Workload::Scan {
            return self.scan(phase.operations).await;
        }
        let operations = match phase.workload {
            // Every key of this thread once, whatever its share of the operations.
            Workload::Fill => self.numbers.len() as u64,
            _ if self.numbers.is_empty() => 0,
            _ => phase.operations,
        };
        let mut latencies = Latencies::new();
        let (mut begun, mut ended) = (0, 0);
        let mut under_way = FuturesUnordered::new();
        loop {
            while begun < operations && under_way.len() < self.load.depth as usize {
                under_way.push(self.operation(phase.workload, begun));
                begun += 1;
            }
            let Some(latency_ns) = under_way.next().await else { break };
            latencies.record(latency_ns?);
            ended += 1;
        }
        Ok((ended, ended * self.load.record_bytes(), latencies))
    }

    /// One operation; its latency in nanoseconds.
    async fn operation(&self, workload: Workload, index: u64) -> Result<u64, StoreError> {
        let runtime = self.store.runtime();
        let (key, value) = {
            let mut rng = self.rng.borrow_mut();
            let place = match workload {
                Workload::Fill => index,
                _ => rng.below(self.numbers.len() as u64),
            };
            let number = self.numbers.get(place as usize).copied().unwrap_or_default();
            let value = (workload != Workload::Get).then(|| self.load.value(&mut rng));
            (key(number), value)
        };
        let began = runtime.now();
        let mut transaction = self.store.begin();
        match value {
            Some(value) => {
                transaction.put(key, Entry::new(value))?;
                let token = self.store.commit(transaction).await?;
                self.store.durable(&token).await?;
            }
            None => {
                let found = transaction.get(&key).await?;
                if found.is_none() {
                    let key = String::from_utf8_lossy(&key).into_owned();
                    return Err(StoreError::DataLoss(format!("{key} was written and is missing")));
                }
            }
        }
        Ok(runtime.now().since_ns(began))
    }

    /// Reads page after page of this thread's slices, and starts over at their end.
    async fn scan(&self, operations: u64) -> Result<Outcome, StoreError> {
        let runtime = self.store.runtime();
        let slices: Vec<SliceId> =
            self.store.layout().slices_of(self.store.local_id()).map(SliceId).collect();
        let mut latencies = Latencies::new();
        let (mut ended, mut bytes) = (0, 0);
        let mut after: Option<Bytes> = None;
        let mut turn = 0;
        while ended < operations {
            let Some(&slice) = slices.get(turn % slices.len().max(1)) else { break };
            let began = runtime.now();
            let page = self.store.scan(slice, after.take(), SCAN_PAGE).await?;
            latencies.record(runtime.now().since_ns(began));
            let sizes = page.items.iter().map(|(key, entry)| key.len() + entry.value.len());
            bytes += sizes.sum::<usize>() as u64;
            ended += 1;
            after = page.next;
            if after.is_none() {
                turn += 1;
            }
        }
        Ok((ended, bytes, latencies))
    }
}
