//! State that all connections of a server share, on all threads.

mod counters;
pub mod settings;

pub use counters::Counters;

use crate::acl::{Acl, FixedPassword, Reason, Salts, UserFile, Users};
use crate::command::Spec;
use crate::error::CommandError;
use crate::resp::reply::Reply;
use crate::scripts::Scripts;
use crate::sets::SetAdmin;
use crate::shared::clients::Clients;
use crate::shared::command_stats::{CommandStat, CommandStats};
use crate::shared::cursors::Cursors;
use crate::shared::forgery::ForgeryLog;
use crate::shared::kept::{KeptMemory, UnlimitedMemory};
use crate::shared::loss_log::LossLog;
use crate::shared::recording::Recordings;
use crate::shared::recording::volume::VolumeRecordings;
use crate::shared::slowlog::Slowlog;
use crate::volumes::VolumeAdmin;
use futures_util::future::{BoxFuture, ready};
use settings::FixedSetting;
use softflash_store::Store;
use softflash_store::value::DEFAULT_VALUE_BYTES;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A line that the server adds to a section of INFO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfoField {
    /// Name of the section in lower case: `memory`, `server`, `flash` ...
    pub section: &'static str,
    /// Name of the field.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

/// A SHUTDOWN request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownRequest {
    /// The client that requested it.
    pub client: u64,
}

/// A job that takes long.
pub type Job = Box<dyn FnOnce() + Send>;

/// Runs a job for the client at an address (`ip:port`) on another thread. A job that cannot be run
/// is dropped.
pub type Elsewhere = dyn Fn(&str, Job) -> BoxFuture<'static, ()> + Send + Sync;

/// Start-up options of the context.
pub struct ContextOptions {
    /// The users.
    pub acl: Acl,
    /// Storage of the users for ACL LOAD and ACL SAVE, if there is one.
    pub user_file: Option<Box<dyn UserFile>>,
    /// The only password of the user `default`, regardless of the file.
    pub password: Option<String>,
    /// Cryptographically secure random bytes for the salts of passwords.
    pub salts: Box<Salts>,
    /// Runs password hashing and file writes.
    pub elsewhere: Box<Elsewhere>,
    /// Settings that CONFIG GET shows besides the defaults, such as `port`; the name of a default
    /// replaces its value.
    pub settings: Vec<FixedSetting>,
    /// Start of the server, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// Seed of RANDOMKEY.
    pub seed: u64,
    /// Fields that the server adds to INFO; called for every INFO.
    pub info: Box<dyn Fn() -> Vec<InfoField> + Send + Sync>,
    /// Called by SHUTDOWN on the thread of the connection.
    pub shutdown: Box<dyn Fn(ShutdownRequest) + Send + Sync>,
    /// The volumes for FLASH.VOLUME, if the server has some.
    pub volumes: Option<Box<dyn VolumeAdmin>>,
    /// The sets for FLASH.SET, if the server has a data directory.
    pub sets: Option<Box<dyn SetAdmin>>,
    /// The memory of transactions and watched keys.
    pub kept_memory: Arc<dyn KeptMemory>,
    /// Longer arguments of a request are refused.
    pub max_argument_bytes: usize,
    /// A reply has values of at most this many bytes together.
    pub max_reply_bytes: u64,
}

impl ContextOptions {
    /// Defaults for tests and simulation: no users but an open `default`, salts derived from the
    /// seed (not secure), jobs run on the calling thread, no additional fields, and a SHUTDOWN that
    /// only sets [`Context::shutdown_requested`].
    pub fn new(started_at_ms: u64, seed: u64) -> ContextOptions {
        ContextOptions {
            acl: Acl::open(),
            user_file: None,
            password: None,
            salts: salts_from(seed),
            elsewhere: Box::new(|_, job| {
                job();
                Box::pin(ready(()))
            }),
            settings: Vec::new(),
            started_at_ms,
            seed,
            info: Box::new(Vec::new),
            shutdown: Box::new(|_| {}),
            volumes: None,
            sets: None,
            kept_memory: Arc::new(UnlimitedMemory),
            max_argument_bytes: DEFAULT_VALUE_BYTES,
            max_reply_bytes: u64::MAX,
        }
    }
}

/// Salts that are the same in every run with the same seed.
fn salts_from(seed: u64) -> Box<Salts> {
    let state = AtomicU64::new(seed);
    Box::new(move |salt| salt.fill_with(|| next_random(&state).to_le_bytes()[0]))
}

fn run_id(salts: &Salts) -> String {
    let mut bytes = [0; 20];
    salts(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The next number of a SplitMix64 sequence.
fn next_random(state: &AtomicU64) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let state = state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl fmt::Debug for ContextOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the password.
        f.debug_struct("ContextOptions").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Numbers of denials by the ACL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denials {
    /// Failed logins.
    pub authentication: u64,
    /// Denied commands, or commands denied because of their keys.
    pub commands: u64,
}

/// What the server does for its sessions, and the limits that it sets; see [`ContextOptions`].
pub(crate) struct Services {
    pub(crate) user_file: Option<Box<dyn UserFile>>,
    pub(crate) salts: Box<Salts>,
    pub(crate) elsewhere: Box<Elsewhere>,
    pub(crate) settings: Vec<FixedSetting>,
    pub(crate) volumes: Option<Box<dyn VolumeAdmin>>,
    pub(crate) sets: Option<Box<dyn SetAdmin>>,
    pub(crate) kept_memory: Arc<dyn KeptMemory>,
    pub(crate) max_argument_bytes: usize,
    pub(crate) max_reply_bytes: u64,
}

/// State shared by all sessions.
pub struct Context {
    /// The users and their permissions.
    pub acl: Acl,
    password: Option<FixedPassword>,
    pub(crate) services: Services,
    started_at_ms: u64,
    random: AtomicU64,
    info: Box<dyn Fn() -> Vec<InfoField> + Send + Sync>,
    shutdown: Box<dyn Fn(ShutdownRequest) + Send + Sync>,
    shutdown_requested: AtomicBool,
    pub(crate) command_stats: CommandStats,
    run_id: String,
    pub(crate) loss_log: LossLog,
    pub(crate) forgery_log: ForgeryLog,
    pub(crate) cursors: Cursors,
    pub(crate) scripts: Scripts,
    /// The recordings of keys.
    pub(crate) recordings: Recordings,
    /// The recordings of volumes.
    pub volume_recordings: Arc<VolumeRecordings>,
    /// The connected clients.
    pub clients: Clients,
    /// The slow log.
    pub slowlog: Slowlog,
    /// Counters.
    pub counters: Counters,
}

impl Context {
    /// The context of a starting server.
    pub fn new(options: ContextOptions) -> Context {
        let ContextOptions { acl, user_file, password, salts, elsewhere, .. } = options;
        let ContextOptions { settings, started_at_ms, seed, info, shutdown, volumes, sets, .. } =
            options;
        let ContextOptions { kept_memory, max_argument_bytes, max_reply_bytes, .. } = options;
        let mut all = settings;
        for default in settings::defaults() {
            if !all.iter().any(|(name, _)| *name == default.0) {
                all.push(default);
            }
        }
        let run_id = run_id(&*salts);
        let context = Context {
            acl,
            password: password
                .filter(|password| !password.is_empty())
                .map(|password| FixedPassword::new(password.as_bytes(), &*salts)),
            services: Services {
                user_file,
                salts,
                elsewhere,
                settings: all,
                volumes,
                sets,
                kept_memory,
                max_argument_bytes,
                max_reply_bytes,
            },
            started_at_ms,
            random: AtomicU64::new(seed),
            info,
            shutdown,
            shutdown_requested: AtomicBool::new(false),
            command_stats: CommandStats::new(),
            run_id,
            loss_log: LossLog::default(),
            forgery_log: ForgeryLog::default(),
            cursors: Cursors::new(started_at_ms),
            scripts: Scripts::default(),
            recordings: Recordings::default(),
            volume_recordings: Arc::default(),
            clients: Clients::default(),
            slowlog: Slowlog::default(),
            counters: Counters::default(),
        };
        if context.password.is_some() {
            let mut users = context.acl.users();
            context.keep_default_password(&mut users);
            context.acl.replace_all(users);
        }
        context
    }

    /// Start of the server, in milliseconds since the Unix epoch.
    pub fn started_at_ms(&self) -> u64 {
        self.started_at_ms
    }

    /// The counters of each command that was called.
    pub fn command_stats(&self) -> Vec<CommandStat> {
        self.command_stats.known().into_iter().map(|(_, stat)| stat).collect()
    }

    /// Counts the reply of a command that has run if it is an error, and logs lost data.
    pub(crate) fn note_reply(&self, store: &Store, spec: &Spec, reply: &Reply) {
        let Reply::Error(error) = reply else { return };
        self.command_stats.add_failed(spec.id);
        self.counters.count_error(&error.text());
        if let Some(place) = error.data_loss() {
            self.loss_log.tell(spec.name, place, store.runtime().now());
        }
    }

    /// Counts a command that was refused before it ran; none is one that is not known.
    pub(crate) fn note_refused(&self, spec: Option<&Spec>, error: &CommandError) {
        if let Some(spec) = spec {
            self.command_stats.add_refused(spec.id);
        }
        self.counters.count_error(&error.text());
    }

    /// Denials since the start.
    pub fn denials(&self) -> Denials {
        let count = |reason| self.acl.log.count(reason);
        Denials {
            authentication: count(Reason::Authentication),
            commands: count(Reason::Command) + count(Reason::Key),
        }
    }

    /// Whether clients must authenticate.
    pub fn needs_password(&self) -> bool {
        self.acl.asks_for_password()
    }

    /// Sets the start-up password of `default`, if there is one.
    pub(crate) fn keep_default_password(&self, users: &mut Users) {
        if let Some(password) = &self.password {
            password.give(users);
        }
    }

    /// Whether a client has requested a shutdown.
    pub fn shutdown_requested(&self) -> bool {
        self.shutdown_requested.load(Ordering::Acquire)
    }

    /// Stops what a client records, if it does.
    pub(crate) fn stop_recording(&self, client: u64) {
        self.recordings.stop(client);
        self.volume_recordings.stop(client);
    }

    pub(crate) fn request_shutdown(&self, client: u64) {
        self.shutdown_requested.store(true, Ordering::Release);
        (self.shutdown)(ShutdownRequest { client });
    }

    /// Identifies this run of the server: 40 random hexadecimal digits.
    pub(crate) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The value of a setting that cannot be changed.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        let setting = self.services.settings.iter().find(|(known, _)| known == name);
        setting.map(|(_, value)| value.as_str())
    }

    pub(crate) fn info_fields(&self) -> Vec<InfoField> {
        (self.info)()
    }

    /// A random number for RANDOMKEY.
    pub(crate) fn random(&self) -> u64 {
        next_random(&self.random)
    }

    /// Sets all counters to 0; the store has counted so many expired keys.
    pub(crate) fn reset_counters(&self, expired_keys: u64) {
        self.counters.reset(expired_keys);
        self.command_stats.reset();
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the password.
        f.debug_struct("Context").field("counters", &self.counters).finish_non_exhaustive()
    }
}
