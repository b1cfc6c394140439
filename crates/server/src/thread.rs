//! A shard's thread: its store, and the connections assigned to it.

use crate::admission::Budgets;
use crate::budget::{ReplyBudget, RequestBudget};
use crate::clock_watch;
use crate::connection::{self, CLIENT_HINT, Services};
use crate::error::ServerError;
use crate::listener::Arrival;
use crate::process::SHARD_THREAD;
use crate::registry::{Registry, SWEEP_INTERVAL, Waiting};
use crate::runtime::TokioRuntime;
use crate::telemetry::ThreadCounters;
use crate::transport::Transport;
use crate::volumes::{HostSpec, VolumeHost, mount_hosts};
use async_channel::{Receiver, Sender};
use futures_util::future::{join, join_all};
use softflash_base::{ShardId, UnitSet};
use softflash_datadir::{PairOfSets, ShardFlash};
use softflash_device::Device;
use softflash_flash::{FlashSource, erase_units};
use softflash_ftl::UnitTelemetry;
use softflash_protocol::Context;
use softflash_runtime::RuntimeHandle;
use softflash_store::opening::{Inbox, Mesh, ShardSpec};
use softflash_store::stats::StoreStats;
use softflash_store::{Store, StoreLayout, StoreOptions};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// Time for disconnected clients' tasks to end, after the drain timeout.
const CUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Messages from the main thread to a shard's thread.
pub(crate) enum Message {
    /// A new connection.
    Connection(Arrival),
    /// Report the state of the whole store.
    Report(oneshot::Sender<Option<Report>>),
    /// Erase units that are in no set.
    Erase(Erasure),
    /// Make a pair of two sets.
    Pair(PairOfHosts),
    /// Other units for the store of the shard.
    Units(UnitsOfStore),
    /// Serve the volumes of a new set, on the units of this handle of the device.
    Host(Box<HostSpec>, Arc<dyn Device>),
    /// End all connections after the input received so far, within this time; then reply.
    Drain(Duration, oneshot::Sender<()>),
    /// Close the shard and end the thread.
    Close,
}

/// Units to erase, by a table of sets of this epoch.
pub(crate) struct Erasure {
    pub device: Arc<dyn Device>,
    pub units: UnitSet,
    pub epoch: u32,
    pub answer: oneshot::Sender<Result<(), String>>,
}

/// Units that join the store of a shard, or leave it.
pub(crate) struct UnitsOfStore {
    pub units: UnitSet,
    pub change: UnitsChange,
    pub answer: oneshot::Sender<Result<(), String>>,
}

/// What becomes of units of a store.
pub(crate) enum UnitsChange {
    /// Erased units of the device join it, by a table of sets of this epoch.
    Join(Arc<dyn Device>, u32),
    /// What they hold moves to its other units.
    Drain,
    /// Drained, they leave it, as the table says.
    Leave,
    /// Drained, they stay: the table has not changed.
    Keep,
}

/// Two sets of a thread that become a pair.
pub(crate) struct PairOfHosts {
    pub names: [String; 2],
    pub pair: PairOfSets,
    pub answer: oneshot::Sender<Result<(), String>>,
}

/// The state of the store over all shards.
pub(crate) struct Report {
    pub store: StoreStats,
    pub units: Vec<UnitTelemetry>,
}

/// Parameters of a thread.
pub(crate) struct ThreadSpec {
    pub id: ShardId,
    pub layout: StoreLayout,
    pub options: StoreOptions,
    pub device: Arc<dyn Device>,
    pub mesh: Mesh,
    pub inbox: Inbox,
    pub context: Arc<Context>,
    pub requests: RequestBudget,
    pub reply_bytes: u64,
    pub max_output_bytes: usize,
    pub calm_store_bytes: u64,
    pub idle_timeout: Option<Duration>,
    pub core: Option<usize>,
    pub counters: Arc<ThreadCounters>,
    /// Its domains for volumes.
    pub volumes: Vec<HostSpec>,
    /// Receives the result of opening the shard.
    pub opened: Sender<(ShardId, Result<(), ServerError>)>,
    /// Receives a message when the thread has ended.
    pub ended: Sender<ShardId>,
}

/// A running thread.
pub(crate) struct ShardThread {
    pub id: ShardId,
    pub messages: Sender<Message>,
    pub counters: Arc<ThreadCounters>,
    handle: JoinHandle<Result<(), ServerError>>,
}

impl ShardThread {
    /// Starts the thread; the result of opening the shard is sent later.
    pub fn start(spec: ThreadSpec) -> Result<ShardThread, ServerError> {
        let (messages, received) = async_channel::unbounded();
        let (id, counters) = (spec.id, Arc::clone(&spec.counters));
        let handle = std::thread::Builder::new()
            .name(format!("{SHARD_THREAD}{id}"))
            .spawn(move || {
                let _ended = Ended { shard: id, tell: spec.ended.clone() };
                if let Some(core) = spec.core {
                    pin(core);
                }
                TokioRuntime::run(|runtime| run(spec, received, runtime))
                    .map_err(|source| ServerError::Io { what: "starting a runtime", source })?
            })
            .map_err(|source| ServerError::Io { what: "starting a thread", source })?;
        Ok(ShardThread { id, messages, counters, handle })
    }

    /// Waits for the end of the thread.
    pub fn join(self) -> Result<(), ServerError> {
        match self.handle.join() {
            Ok(result) => result,
            Err(_) => Err(ServerError::ThreadDied { shard: self.id }),
        }
    }
}

/// Sends the message about the thread's end, also after a panic.
struct Ended {
    shard: ShardId,
    tell: Sender<ShardId>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        // The server may have ended already, and with it the receiver.
        let _ = self.tell.try_send(self.shard);
    }
}

fn pin(core: usize) {
    let mut cores = rustix::thread::CpuSet::new();
    cores.set(core);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &cores) {
        tracing::warn!(core, %error, "thread not pinned");
    }
}

async fn run(
    spec: ThreadSpec,
    messages: Receiver<Message>,
    runtime: RuntimeHandle,
) -> Result<(), ServerError> {
    let flash = mount(&spec, &runtime).await;
    let specs = spec.volumes.into_iter().zip(flash.volumes).collect();
    let mut volumes = mount_hosts(specs, &runtime).await;
    let spare = spec.options.spare.clone();
    let shard = ShardSpec {
        id: spec.id,
        layout: spec.layout,
        options: spec.options,
        flash: flash.store,
        runtime: runtime.clone(),
        mesh: spec.mesh,
        inbox: spec.inbox,
    };
    let store = match Store::open(shard).await {
        Ok(store) => {
            let _ = spec.opened.send((spec.id, Ok(()))).await;
            store
        }
        Err(error) => {
            volumes.into_iter().for_each(VolumeHost::stop);
            // The main thread reports the error; the task just ends.
            let error = ServerError::Open { shard: spec.id, error };
            let _ = spec.opened.send((spec.id, Err(error))).await;
            return Ok(());
        }
    };
    let replies = ReplyBudget::new(spec.reply_bytes, spare.clone());
    let registry = Registry::new(Arc::clone(&spec.counters));
    let budgets = Budgets {
        requests: spec.requests,
        replies,
        spare,
        calm_store_bytes: spec.calm_store_bytes,
    };
    sweep_for_ever(&runtime, registry.clone(), budgets.clone(), spec.idle_timeout);
    if spec.id == ShardId(0) {
        runtime.spawn(Box::pin(clock_watch::watch(store.clone())));
    }
    let services = Services {
        store: store.hinted(CLIENT_HINT),
        context: spec.context,
        budgets,
        max_output_bytes: spec.max_output_bytes,
    };
    while let Ok(message) = messages.recv().await {
        match message {
            Message::Connection(arrival) => admit(arrival, &registry, &services, &runtime),
            Message::Report(answer) => {
                let store = store.clone();
                runtime.spawn(Box::pin(async move {
                    // The requester may have timed out.
                    let _ = answer.send(report(&store).await);
                }));
            }
            Message::Erase(erasure) => {
                let handle = runtime.clone();
                runtime.spawn(Box::pin(erase(erasure, handle)));
            }
            Message::Units(units) => {
                let store = store.clone();
                runtime.spawn(Box::pin(change_units(store, units)));
            }
            // No connection begins on this thread meanwhile: a mount of units that were just erased
            // reads their headers only.
            Message::Host(new, device) => {
                let source = FlashSource::Device(device);
                volumes.extend(mount_hosts(vec![(*new, source)], &runtime).await);
            }
            Message::Pair(sets) => pair(&volumes, sets, &runtime),
            Message::Drain(within, answer) => {
                let nbd = join_all(volumes.iter().map(|host| host.drain(within)));
                join(drain(&registry, &runtime, within), nbd).await;
                let _ = answer.send(());
            }
            Message::Close => break,
        }
    }
    let shard = spec.id;
    let mut unmounted = Ok(());
    for host in volumes {
        let closed = host.close().await;
        unmounted = unmounted.and(closed);
    }
    let closed = store.close().await.map_err(|error| ServerError::Close { shard, error });
    closed.and(unmounted)
}

fn pair(volumes: &[VolumeHost], sets: PairOfHosts, runtime: &RuntimeHandle) {
    let PairOfHosts { names, pair, answer } = sets;
    let domain = |name: &str| volumes.iter().find_map(|host| host.domain(name)).cloned();
    let both = names.each_ref().map(|name| domain(name).ok_or(name.clone()));
    runtime.spawn(Box::pin(async move {
        let paired = match both {
            [Ok(first), Ok(second)] => {
                let paired = first.pair(&second, pair.number(), pair.window()).await;
                paired.map_err(|error| error.to_string())
            }
            [Err(name), _] | [_, Err(name)] => Err(format!("the set `{name}` is not mounted")),
        };
        let _ = answer.send(paired);
    }));
}

async fn change_units(store: Store, UnitsOfStore { units, change, answer }: UnitsOfStore) {
    let changed = match change {
        UnitsChange::Join(device, epoch) => match device.open_queue_pair(&units) {
            Ok(queue) => store.join_units(queue, epoch).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        },
        UnitsChange::Drain => store.drain_units(&units).await.map_err(|error| error.to_string()),
        UnitsChange::Leave => store.leave_units(&units).await.map_err(|error| error.to_string()),
        UnitsChange::Keep => {
            store.keep_units(&units);
            Ok(())
        }
    };
    let _ = answer.send(changed);
}

async fn erase(erasure: Erasure, runtime: RuntimeHandle) {
    let Erasure { device, units, epoch, answer } = erasure;
    let erased = match device.open_queue_pair(&units) {
        Ok(queue) => erase_units(queue, epoch, runtime).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let _ =
        answer.send(erased.map_err(|reason| format!("units {units} cannot be erased: {reason}")));
}

/// The flash of the store and of the volumes.
async fn mount(spec: &ThreadSpec, runtime: &RuntimeHandle) -> ShardFlash {
    let domains: Vec<_> = spec.volumes.iter().map(|host| &host.domain).collect();
    let store = (&spec.layout, spec.id);
    ShardFlash::mount(&spec.device, store, &domains, spec.options.ftl, runtime).await
}

fn admit(arrival: Arrival, registry: &Registry, services: &Services, runtime: &RuntimeHandle) {
    let Arrival { socket, tls, slot } = arrival;
    match TcpStream::from_std(socket) {
        Ok(socket) => {
            let transport = Transport::new(socket, tls);
            let authenticated = !services.context.needs_password() && !transport.is_handshaking();
            let registered = registry.enter(transport, runtime.now(), authenticated);
            runtime.spawn(Box::pin(connection::run(registered, slot, services.clone())));
        }
        Err(error) => tracing::warn!(%error, "connection dropped"),
    }
}

async fn report(store: &Store) -> Option<Report> {
    let (stats, units) = (store.stats().await, store.units().await);
    match (stats, units) {
        (Ok(store), Ok(units)) => Some(Report { store, units }),
        (Err(error), _) | (_, Err(error)) => {
            tracing::debug!(%error, "no report");
            None
        }
    }
}

fn sweep_for_ever(
    runtime: &RuntimeHandle,
    registry: Registry,
    budgets: Budgets,
    idle: Option<Duration>,
) {
    let clock = runtime.clone();
    runtime.spawn(Box::pin(async move {
        loop {
            clock.sleep_until(clock.now() + SWEEP_INTERVAL).await;
            let waiting = Waiting {
                for_replies: budgets.replies.waiting() + budgets.spare.waiting_reads(),
                for_requests: budgets.requests.waiting(),
            };
            registry.sweep(clock.now(), idle, waiting);
        }
    }));
}

/// Waits for connections to end, then disconnects the remaining ones.
async fn drain(registry: &Registry, runtime: &RuntimeHandle, within: Duration) {
    registry.drain();
    for last in [within, CUT_TIMEOUT] {
        let timeout = runtime.sleep_until(runtime.now() + last);
        let emptied = std::pin::pin!(registry.emptied());
        futures_util::future::select(emptied, timeout).await;
        match registry.len() {
            0 => return,
            connections => {
                tracing::warn!(connections, "clients are disconnected");
                registry.cut();
            }
        }
    }
}
