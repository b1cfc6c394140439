//! The server: opens the data, starts the threads, waits for a stop request, and shuts down.

use crate::budget::{MemoryPlan, RequestBudget};
use crate::config::ServerConfig;
use crate::endpoints::{Addresses, Endpoints, Open};
use crate::error::ServerError;
use crate::http;
use crate::listener::{ConnectionAdmission, Worker, accept};
use crate::login::elsewhere;
use crate::nbd::{self, NbdAdmission};
use crate::network::UnauthenticatedLimit;
use crate::sets::{Hosts, Sets};
use crate::signals::{on_hangup, stop_signal};
use crate::telemetry::{ServerStats, Snapshot, ThreadCounters};
use crate::thread::{Message, ShardThread, ThreadSpec};
use crate::users::{AclFile, salts};
use crate::volume_admin::Admin;
use crate::volumes::{HostSpec, Request, Volumes};
use async_channel::{Receiver, Sender};
use softflash_base::ShardId;
use softflash_datadir::{DataDir, DataDirError, USERS_NAME};
use softflash_device::{Device, OpenOptions};
use softflash_protocol::acl::Acl;
use softflash_protocol::volumes::VolumeAdmin;
use softflash_protocol::{Context, ContextOptions};
use softflash_store::StoreOptions;
use softflash_store::memory::SpareMemory;
use softflash_store::opening::Mesh;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, oneshot};

/// Serves the data directory on the endpoints bound for these settings until SIGTERM, SIGINT or
/// SHUTDOWN, then closes it. Calls `ready` once connections are accepted, with whether the user
/// `default` needs a password.
///
/// # Errors
/// [`ServerError`]: before `ready`, invalid settings or directory; afterwards, a shard that ended
/// or did not close cleanly.
pub fn serve(
    data: DataDir,
    endpoints: Endpoints,
    config: &ServerConfig,
    ready: impl FnOnce(Addresses, bool),
) -> Result<(), ServerError> {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| ServerError::Io { what: "starting a runtime", source })?;
    tokio.block_on(run(data, endpoints, config, ready))
}

async fn run(
    data: DataDir,
    endpoints: Endpoints,
    config: &ServerConfig,
    ready: impl FnOnce(Addresses, bool),
) -> Result<(), ServerError> {
    let signal =
        stop_signal().map_err(|source| ServerError::Io { what: "handling signals", source })?;
    if (config.was_signalled)() {
        tracing::info!("stopped before the start, by a signal");
        return Ok(());
    }
    let device = softflash_device::inspect(&data.device_path()).map_err(DataDirError::from)?;
    let domains = data.manifest().domains(device.units);
    if config.nbd.is_some() && domains.is_empty() {
        return Err(ServerError::NoVolumeUnits { path: data.path().to_owned() });
    }
    let addresses = endpoints.addresses;
    let certificates = endpoints.certificates();
    let reloaded = certificates.clone();
    on_hangup(move || reloaded.iter().for_each(|tls| tls.reload()))
        .map_err(|source| ServerError::Io { what: "handling signals", source })?;
    let Open { resp: listeners, nbd, http } = endpoints.open()?;
    let shutdown = Arc::new(Notify::new());
    let (volumes, requests) = Volumes::new(&domains);
    // A set for volumes can be created where units are spare.
    let has_spare = !data.manifest().table(device.units).spare(device.units).is_empty();
    let volumes = (!domains.is_empty() || has_spare).then_some(volumes);
    let memory = Memory::new(&config.options);
    let sets = Sets::new(volumes.clone());
    let with = (volumes.clone(), sets.clone(), &memory);
    let context = context(&data, config, addresses, Arc::clone(&shutdown), with)?;
    let needs_password = context.needs_password();
    config.check_protection(!needs_password)?;
    if let Some(nbd) = config.nbd {
        NbdAdmission::check(config, nbd, needs_password)?;
    }
    let unauthenticated = UnauthenticatedLimit::new(config.max_unauthenticated);
    let mut threads =
        ShardThreads::start(&data, config, context, memory, (volumes.clone(), requests))?;
    sets.serve(data, Arc::clone(&threads.device), threads.hosts(config));
    tokio::pin!(signal);
    let opened = tokio::select! {
        opened = threads.opened() => match opened {
            Ok(()) => {
                sets.finish_move().await;
                Ok(true)
            }
            Err(error) => Err(error),
        },
        () = &mut signal => Ok(false),
    };
    let outcome = match opened {
        Ok(true) => {
            ready(addresses, needs_password);
            let admission = ConnectionAdmission {
                max_clients: config.max_clients,
                unauthenticated: Arc::clone(&unauthenticated),
                protected: config.protected,
                context: Arc::clone(&threads.context),
            };
            let nbd_accepting = match (nbd, config.nbd, volumes.clone()) {
                (Some(listener), Some(nbd), Some(volumes)) => {
                    let context = Arc::clone(&threads.context);
                    let admission =
                        NbdAdmission::new(config, nbd, certificates, context, unauthenticated);
                    Some(tokio::spawn(nbd::accept(listener, admission, volumes)))
                }
                _ => None,
            };
            let accepting = accept(&listeners, threads.workers(), &admission);
            let (stop_http, http_stopped) = oneshot::channel::<()>();
            let serving = http.map(|listener| serve_http(listener, threads.source(), http_stopped));
            let outcome = tokio::select! {
                () = accepting => Ok(()),
                () = signal => Ok(()),
                () = shutdown.notified() => Ok(()),
                died = threads.death() => Err(ServerError::ThreadDied { shard: died }),
            };
            drop(stop_http);
            drop(listeners);
            if let Some(accepting) = nbd_accepting {
                accepting.abort();
            }
            threads.drain(config.drain_timeout).await;
            if let Some(serving) = serving {
                serving.abort();
            }
            outcome
        }
        Ok(false) => Ok(()),
        Err(error) => Err(error),
    };
    let closed = threads.close();
    sets.close();
    outcome.and(closed)
}

fn serve_http(
    listener: TcpListener,
    source: http::Source,
    stopped: oneshot::Receiver<()>,
) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        let stop = async move {
            let _ = stopped.await;
        };
        if let Err(error) = http::serve(listener, source, stop).await {
            tracing::error!(%error, "HTTP has ended");
        }
    })
}

/// The memory that all threads share.
struct Memory {
    plan: MemoryPlan,
    spare: SpareMemory,
    requests: RequestBudget,
}

impl Memory {
    fn new(options: &StoreOptions) -> Memory {
        let plan = MemoryPlan::new(options.memory_bytes, options.max_value_bytes);
        let spare = plan.spare();
        let requests = RequestBudget::new(plan.request_bytes, spare.clone());
        Memory { plan, spare, requests }
    }
}

/// The threads of all shards.
struct ShardThreads {
    device: Arc<dyn Device>,
    threads: Vec<ShardThread>,
    opened: Receiver<(ShardId, Result<(), ServerError>)>,
    ended: Receiver<ShardId>,
    context: Arc<Context>,
    volumes: Option<Volumes>,
    requests: RequestBudget,
    request_bytes: u64,
    started: SystemTime,
}

impl ShardThreads {
    fn start(
        data: &DataDir,
        config: &ServerConfig,
        context: Arc<Context>,
        memory: Memory,
        (volumes, volume_requests): (Option<Volumes>, Vec<UnboundedReceiver<Request>>),
    ) -> Result<ShardThreads, ServerError> {
        let shards = data.manifest().store.shards;
        let Memory { plan, spare, requests } = memory;
        let per_shard = |bytes: u64| bytes / u64::from(shards);
        let device_options = OpenOptions {
            retained_bytes: usize::try_from(per_shard(plan.device_bytes)).unwrap_or(usize::MAX),
            ..OpenOptions::default()
        };
        let (device, layout) = data.open_device(device_options)?;
        let domains = data.manifest().domains(device.info().units).into_iter();
        let hosts = domains.zip(volume_requests).map(|(domain, requests)| HostSpec {
            domain: domain.with_policies(&config.policies),
            requests,
            recordings: Arc::clone(&context.volume_recordings),
        });
        let mut hosts: Vec<HostSpec> = hosts.collect();
        let started = now();
        let (mesh, inboxes) = Mesh::new(shards);
        let (open_sender, opened) = async_channel::unbounded();
        let (end_sender, ended) = async_channel::unbounded();
        let mut threads = Vec::new();
        for (inbox, id) in inboxes.into_iter().zip(0..) {
            let is_its = |host: &mut HostSpec| host.domain.shard == ShardId(id);
            threads.push(ShardThread::start(ThreadSpec {
                id: ShardId(id),
                layout: layout.clone(),
                options: StoreOptions {
                    memory_bytes: plan.store_bytes,
                    spare: spare.clone(),
                    ..config.options.clone()
                },
                device: Arc::clone(&device),
                mesh: mesh.clone(),
                inbox,
                context: Arc::clone(&context),
                requests: requests.clone(),
                reply_bytes: per_shard(plan.reply_bytes),
                max_output_bytes: plan.max_output_bytes(config.options.max_value_bytes),
                calm_store_bytes: plan.calm_store_bytes(),
                idle_timeout: config.idle_timeout,
                core: config.pin_threads.then_some(usize::from(id)),
                counters: Arc::default(),
                volumes: hosts.extract_if(.., is_its).collect(),
                opened: open_sender.clone(),
                ended: end_sender.clone(),
            })?);
        }
        let request_bytes = plan.request_bytes;
        Ok(ShardThreads {
            device,
            threads,
            opened,
            ended,
            context,
            volumes,
            requests,
            request_bytes,
            started,
        })
    }

    /// Waits until every shard is open, or one has failed to open. Then nothing speaks against
    /// serving the device any more, and its label is made whole.
    async fn opened(&self) -> Result<(), ServerError> {
        for _ in &self.threads {
            // A failing thread reports before it ends; one that panics does not.
            let opened = tokio::select! {
                biased;
                opened = self.opened.recv() => opened,
                died = self.death() => return Err(ServerError::ThreadDied { shard: died }),
            };
            match opened {
                Ok((_, Ok(()))) => {}
                Ok((_, Err(error))) => return Err(error),
                Err(_) => return Err(ServerError::ThreadDied { shard: ShardId(0) }),
            }
        }
        Ok(self.device.mend_label().map_err(DataDirError::from)?)
    }

    /// Completes when a thread ends unexpectedly.
    async fn death(&self) -> ShardId {
        match self.ended.recv().await {
            Ok(shard) => shard,
            Err(_) => ShardId(0),
        }
    }

    fn workers(&self) -> Vec<Worker> {
        let worker = |thread: &ShardThread| {
            let messages = thread.messages.clone();
            Worker {
                assign: Box::new(move |arrival| {
                    messages.try_send(Message::Connection(arrival)).is_ok()
                }),
                counters: Arc::clone(&thread.counters),
                assigned: 0,
            }
        };
        self.threads.iter().map(worker).collect()
    }

    /// The threads, for new sets.
    fn hosts(&self, config: &ServerConfig) -> Hosts {
        Hosts {
            threads: self.threads.iter().map(|thread| thread.messages.clone()).collect(),
            policies: config.policies,
            recordings: Arc::clone(&self.context.volume_recordings),
        }
    }

    /// The source of HTTP's data: any thread that still runs.
    fn source(&self) -> http::Source {
        let messages: Vec<Sender<Message>> =
            self.threads.iter().map(|thread| thread.messages.clone()).collect();
        let counters: Vec<Arc<ThreadCounters>> =
            self.threads.iter().map(|thread| Arc::clone(&thread.counters)).collect();
        let (context, requests) = (Arc::clone(&self.context), self.requests.clone());
        let started = self.started;
        let (request_bytes, volumes) = (self.request_bytes, self.volumes.clone());
        Arc::new(move || {
            let (answer, report) = oneshot::channel();
            let asked = messages
                .first()
                .is_some_and(|first| first.try_send(Message::Report(answer)).is_ok());
            let timeouts = counters.iter().map(|thread| thread.timeouts.load(Ordering::Relaxed));
            let shared = &context.counters;
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let denials = context.denials();
            let uptime = now().duration_since(started).unwrap_or_default();
            let server = ServerStats {
                uptime_seconds: uptime.as_secs(),
                shards: counters.len() as u64,
                connections: context.clients.count() as u64,
                connections_accepted: read(&shared.connections),
                connections_rejected: read(&shared.rejected_connections),
                connections_timed_out: timeouts.sum(),
                authentication_failures: denials.authentication,
                commands_denied: denials.commands,
                commands: read(&shared.commands),
                received_bytes: read(&shared.input_bytes),
                sent_bytes: read(&shared.output_bytes),
                request_budget_held_bytes: requests.held_bytes(),
                request_budget_bytes: request_bytes,
            };
            let (volumes, commands) = (volumes.clone(), context.command_stats());
            Box::pin(async move {
                if !asked {
                    return None;
                }
                let report = report.await.ok().flatten()?;
                let (store, mut units) = (report.store, report.units);
                let volumes = match volumes {
                    Some(volumes) => {
                        units.extend(volumes.units().await);
                        volumes.stats().await
                    }
                    None => Vec::new(),
                };
                Some(Snapshot { server, store, volumes, units, commands })
            })
        })
    }

    /// Ends all connections; requests in progress have `within`.
    async fn drain(&mut self, within: Duration) {
        let drained = self.threads.iter().filter_map(|thread| {
            let (answer, drained) = oneshot::channel();
            thread.messages.try_send(Message::Drain(within, answer)).ok()?;
            Some(drained)
        });
        // A thread that has ended does not reply.
        let _ = futures_util::future::join_all(drained).await;
    }

    /// Closes all shards and waits for their threads. All connections of all threads must have
    /// ended, because a request may need any shard.
    fn close(self) -> Result<(), ServerError> {
        for thread in &self.threads {
            // A thread that has ended needs no message.
            let _ = thread.messages.try_send(Message::Close);
        }
        let mut outcome = Ok(());
        for thread in self.threads {
            let ended = thread.join();
            outcome = outcome.and(ended);
        }
        outcome
    }
}

#[expect(clippy::disallowed_methods, reason = "the server is a source of time")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn context(
    data: &DataDir,
    config: &ServerConfig,
    addresses: Addresses,
    shutdown: Arc<Notify>,
    (volumes, sets, memory): (Option<Volumes>, Sets, &Memory),
) -> Result<Arc<Context>, ServerError> {
    let path = config.acl_file.clone().unwrap_or_else(|| data.path().join(USERS_NAME));
    let file = AclFile::new(path.clone());
    let since_epoch = now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started_at_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    let seed = u64::try_from(since_epoch.as_nanos() & u128::from(u64::MAX)).unwrap_or(0);
    let mut options = ContextOptions::new(started_at_ms, seed);
    options.acl = Acl::new(file.users(&salts)?);
    options.user_file = Some(Box::new(file));
    options.password = config.password.clone();
    options.salts = Box::new(salts);
    options.elsewhere = elsewhere();
    options.settings = crate::info::settings(config, addresses, &path);
    let admin = |volumes| Box::new(Admin { volumes, sets: sets.clone() }) as Box<dyn VolumeAdmin>;
    options.volumes = volumes.map(admin);
    options.sets = Some(Box::new(sets));
    options.info = crate::info::fields(config, addresses);
    options.kept_memory = Arc::new(memory.requests.clone());
    options.max_argument_bytes = config.options.max_value_bytes;
    options.max_reply_bytes = memory.plan.max_output_bytes(config.options.max_value_bytes) as u64;
    options.shutdown = Box::new(move |_| shutdown.notify_one());
    Ok(Arc::new(Context::new(options)))
}
