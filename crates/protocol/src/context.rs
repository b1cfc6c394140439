//! What all connections of a server share, on all of its threads.

use crate::clients::Clients;
use crate::commands::{COMMANDS, Spec};
use crate::config::{self, FixedSetting};
use crate::cursors::Cursors;
use crate::recording::Recordings;
use crate::slowlog::Slowlog;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use subtle::ConstantTimeEq;

/// A line that the server adds to a section of INFO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfoField {
    /// The section, in lower case: `memory`, `server`, `flash` ...
    pub section: &'static str,
    /// The field's name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

/// What SHUTDOWN asks the server for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownRequest {
    /// The client that asked.
    pub client: u64,
}

/// What a server is started with.
pub struct ContextOptions {
    /// The password that AUTH asks for; none lets everybody in.
    pub password: Option<String>,
    /// Settings beside the defaults that CONFIG GET shows, such as `port`; a name of the defaults
    /// replaces its value.
    pub settings: Vec<FixedSetting>,
    /// When the server started, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// Where the choices of RANDOMKEY begin.
    pub seed: u64,
    /// Fields that the server adds to INFO; asked at every INFO.
    pub info: Box<dyn Fn() -> Vec<InfoField> + Send + Sync>,
    /// Called by SHUTDOWN, on the thread of the connection.
    pub shutdown: Box<dyn Fn(ShutdownRequest) + Send + Sync>,
}

impl ContextOptions {
    /// No password, nothing added, and a SHUTDOWN that only sets
    /// [`Context::shutdown_requested`].
    pub fn new(started_at_ms: u64, seed: u64) -> ContextOptions {
        ContextOptions {
            password: None,
            settings: Vec::new(),
            started_at_ms,
            seed,
            info: Box::new(Vec::new),
            shutdown: Box::new(|_| {}),
        }
    }
}

impl fmt::Debug for ContextOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the password.
        f.debug_struct("ContextOptions").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Counters since the start, or since CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections accepted.
    pub connections: AtomicU64,
    /// Connections turned away by the server.
    pub rejected_connections: AtomicU64,
    /// Commands run.
    pub commands: AtomicU64,
    /// Error replies.
    pub errors: AtomicU64,
    /// Bytes received; the server counts.
    pub input_bytes: AtomicU64,
    /// Bytes sent; the server counts.
    pub output_bytes: AtomicU64,
}

impl Counters {
    fn all(&self) -> [&AtomicU64; 6] {
        [
            &self.connections,
            &self.rejected_connections,
            &self.commands,
            &self.errors,
            &self.input_bytes,
            &self.output_bytes,
        ]
    }
}

/// Shared by all sessions.
pub struct Context {
    password: Option<Box<[u8]>>,
    pub(crate) settings: Vec<FixedSetting>,
    started_at_ms: u64,
    random: AtomicU64,
    info: Box<dyn Fn() -> Vec<InfoField> + Send + Sync>,
    shutdown: Box<dyn Fn(ShutdownRequest) + Send + Sync>,
    shutdown_requested: AtomicBool,
    per_command: Box<[AtomicU64]>,
    pub(crate) cursors: Cursors,
    /// Who records what clients do.
    pub(crate) recordings: Recordings,
    /// Who is connected.
    pub clients: Clients,
    /// What took long.
    pub slowlog: Slowlog,
    /// What was done.
    pub counters: Counters,
}

impl Context {
    /// The context of a server that starts.
    pub fn new(options: ContextOptions) -> Context {
        let ContextOptions { password, settings, started_at_ms, seed, info, shutdown } = options;
        let mut all = settings;
        for default in config::defaults() {
            if !all.iter().any(|(name, _)| *name == default.0) {
                all.push(default);
            }
        }
        Context {
            password: password
                .filter(|password| !password.is_empty())
                .map(|p| p.into_bytes().into()),
            settings: all,
            started_at_ms,
            random: AtomicU64::new(seed),
            info,
            shutdown,
            shutdown_requested: AtomicBool::new(false),
            per_command: COMMANDS.iter().map(|_| AtomicU64::new(0)).collect(),
            cursors: Cursors::new(started_at_ms),
            recordings: Recordings::default(),
            clients: Clients::default(),
            slowlog: Slowlog::default(),
            counters: Counters::default(),
        }
    }

    /// When the server started, in milliseconds since the Unix epoch.
    pub fn started_at_ms(&self) -> u64 {
        self.started_at_ms
    }

    /// Whether clients must authenticate.
    pub fn needs_password(&self) -> bool {
        self.password.is_some()
    }

    /// Whether a password is right; the time it takes does not tell how much of it is.
    pub(crate) fn accepts(&self, password: &[u8]) -> bool {
        match &self.password {
            Some(right) => right.ct_eq(password).into(),
            None => true,
        }
    }

    /// Whether a client has asked the server to stop.
    pub fn shutdown_requested(&self) -> bool {
        self.shutdown_requested.load(Ordering::Acquire)
    }

    pub(crate) fn request_shutdown(&self, client: u64) {
        self.shutdown_requested.store(true, Ordering::Release);
        (self.shutdown)(ShutdownRequest { client });
    }

    pub(crate) fn info_fields(&self) -> Vec<InfoField> {
        (self.info)()
    }

    /// The next number of a SplitMix64 sequence.
    pub(crate) fn random(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.random.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn count_commands(&self, index: usize, count: u64) {
        if let Some(counter) = self.per_command.get(index) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
        self.counters.commands.fetch_add(count, Ordering::Relaxed);
    }

    /// How often each command was run; those never run are left out.
    pub fn command_counts(&self) -> Vec<(&'static Spec, u64)> {
        let counts = self.per_command.iter().map(|count| count.load(Ordering::Relaxed));
        COMMANDS.iter().zip(counts).filter(|(_, count)| *count > 0).collect()
    }

    pub(crate) fn reset_counters(&self) {
        self.counters.all().iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
        self.per_command.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the password.
        f.debug_struct("Context").field("counters", &self.counters).finish_non_exhaustive()
    }
}
