//! A thread per shard, each with an executor of its own, controlled phase by phase.

use super::keys::Keys;
use super::load::Load;
use super::run::Run;
use super::tally::Tally;
use super::work::Work;
use softflash_base::ShardId;
use softflash_base::random::Rng;
use softflash_console::CliError;
use softflash_console::output;
use softflash_datadir::block_on;
use softflash_datadir::{DataDirError, OpenDir};
use softflash_flash::FlashSource;
use softflash_ftl::UnitTelemetry;
use softflash_store::opening::{Mesh, ShardSpec};
use softflash_store::stats::StoreStats;
use softflash_store::{Store, StoreError, StoreOptions};
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often progress is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(200);

/// The answer of a thread.
type Answer<T> = Sender<Result<T, StoreError>>;

enum Order {
    Run(Arc<Work>, Answer<Tally>),
    State(Answer<State>),
    Close,
}

/// State of the whole store.
pub struct State {
    /// Its counters.
    pub stats: StoreStats,
    /// Its units.
    pub units: Vec<UnitTelemetry>,
}

impl State {
    /// Payload of a superblock.
    pub fn superblock_bytes(&self) -> u64 {
        self.units.first().map_or(0, |unit| unit.superblock_payload_bytes)
    }
}

/// The command channel of a thread, and the thread.
type Worker = (async_channel::Sender<Order>, JoinHandle<Result<(), DataDirError>>);

/// The threads of all shards.
pub struct ShardThreads {
    path: PathBuf,
    threads: Vec<Worker>,
}

impl ShardThreads {
    /// Starts a thread for each shard; they open their shards concurrently.
    pub fn start(
        directory: &OpenDir,
        options: &StoreOptions,
        load: Arc<Load>,
    ) -> Result<ShardThreads, CliError> {
        let (mesh, inboxes) = Mesh::new(directory.layout.shards);
        let mut threads = Vec::new();
        for (inbox, id) in inboxes.into_iter().zip(0..) {
            let (sender, orders) = async_channel::unbounded();
            let (path, device) = (directory.path.clone(), Arc::clone(&directory.device));
            let (layout, options) = (directory.layout.clone(), options.clone());
            let (mesh, load, id) = (mesh.clone(), Arc::clone(&load), ShardId(id));
            let thread = std::thread::Builder::new().name(format!("shard-{id}")).spawn(move || {
                block_on(|runtime| async move {
                    let flash = FlashSource::Device(device);
                    let spec = ShardSpec { id, layout, options, flash, runtime, mesh, inbox };
                    let failed = |error| DataDirError::store(&path)(error);
                    let store = Store::open(spec).await.map_err(failed)?;
                    obey(&store, &load, orders).await;
                    store.close().await.map_err(failed)
                })
            });
            let thread =
                thread.map_err(|source| CliError::Io { what: "starting a thread", source })?;
            threads.push((sender, thread));
        }
        Ok(ShardThreads { path: directory.path.clone(), threads })
    }

    /// Runs a phase on all threads and waits for its end, with progress in `unit`.
    pub fn run(&self, work: Work, unit: &str) -> Result<Tally, CliError> {
        let work = Arc::new(work);
        let bar = output::progress(work.operations, unit);
        let answers: Vec<Receiver<Result<Tally, StoreError>>> = self
            .threads
            .iter()
            .map(|(orders, _)| ask(orders, |answer| Order::Run(Arc::clone(&work), answer)))
            .collect();
        let mut total = Tally::new();
        for answer in answers {
            let part = loop {
                match answer.recv_timeout(SHOWN_EVERY) {
                    Err(RecvTimeoutError::Timeout) => bar.set_position(work.begun()),
                    Err(RecvTimeoutError::Disconnected) => break Err(StoreError::Closed),
                    Ok(part) => break part,
                }
            };
            total.merge(&part.map_err(DataDirError::store(&self.path))?);
        }
        bar.finish_and_clear();
        Ok(total)
    }

    /// Counters and units of the store.
    pub fn state(&self) -> Result<State, CliError> {
        let (first, _) = self.threads.first().ok_or_else(died)?;
        let answer = ask(first, Order::State).recv().unwrap_or(Err(StoreError::Closed));
        Ok(answer.map_err(DataDirError::store(&self.path))?)
    }

    /// Closes all shards.
    pub fn close(self) -> Result<(), CliError> {
        for (sender, _) in &self.threads {
            let _ = sender.try_send(Order::Close);
        }
        for (_, thread) in self.threads {
            thread.join().map_err(|_| died())??;
        }
        Ok(())
    }
}

fn died() -> CliError {
    CliError::Failed("a thread of the benchmark has ended unexpectedly".to_owned())
}

fn ask<T>(
    orders: &async_channel::Sender<Order>,
    order: impl FnOnce(Answer<T>) -> Order,
) -> Receiver<Result<T, StoreError>> {
    let (answer, answered) = channel();
    // A thread that has ended does not reply.
    let _ = orders.try_send(order(answer));
    answered
}

async fn obey(store: &Store, load: &Load, orders: async_channel::Receiver<Order>) {
    let shard = store.local_id();
    let keys = RefCell::new(Keys::new(load, store.layout(), shard));
    let (seeds, mut phase) = (load.rng(shard), 0_u64);
    while let Ok(order) = orders.recv().await {
        match order {
            Order::Run(work, answer) => {
                // Each phase draws other keys than the one before.
                let rng: Rng = seeds.fork(phase.to_le_bytes());
                phase += 1;
                let run = Run::new(store, load, &work, &keys, rng);
                let _ = answer.send(run.phase().await);
            }
            Order::State(answer) => {
                let _ = answer.send(state(store).await);
            }
            Order::Close => return,
        }
    }
}

async fn state(store: &Store) -> Result<State, StoreError> {
    Ok(State { stats: store.stats().await?, units: store.units().await? })
}
