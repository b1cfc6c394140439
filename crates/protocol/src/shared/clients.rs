//! Connected clients, for CLIENT LIST and CLIENT KILL.

use crate::shared::kill::KillSwitch;
use crate::shared::lock::lock;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A client's state and last command.
#[derive(Debug, Clone, Default)]
pub struct ClientActivity {
    /// Name of its user, if it has one.
    pub user: Option<Arc<str>>,
    /// The name set by CLIENT SETNAME.
    pub name: Bytes,
    /// The last command, as `client|list`.
    pub command: &'static str,
    /// Time of the last command, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Commands queued since MULTI, or -1.
    pub queued: i64,
    /// Keys watched.
    pub watched: usize,
    /// RESP version.
    pub protocol: i64,
}

/// A connected client, visible to all threads.
#[derive(Debug)]
pub struct Client {
    /// Unique number.
    pub id: u64,
    /// Its address, `ip:port`.
    pub address: String,
    /// The server's address.
    pub local_address: String,
    /// Time of the connection, in milliseconds since the Unix epoch.
    pub connected_at_ms: u64,
    activity: Mutex<ClientActivity>,
    kill: KillSwitch,
    has_left: AtomicBool,
}

impl Client {
    /// A copy of its activity.
    pub fn activity(&self) -> ClientActivity {
        lock(&self.activity).clone()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut ClientActivity)) {
        change(&mut lock(&self.activity));
    }

    /// Asks its connection to end.
    pub fn kill(&self) {
        self.kill.throw();
    }

    /// Whether it was killed.
    pub fn is_killed(&self) -> bool {
        self.kill.is_thrown()
    }

    /// Completes when it is killed; to be awaited by one task, concurrently with reads from the
    /// socket.
    pub async fn killed(&self) {
        self.kill.thrown().await;
    }

    /// Records that its connection was reset, so that nobody receives its replies.
    pub fn note_reset(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }

    /// Whether its connection was reset. Its requests that change data run all the same, as in
    /// Redis; those that only read are for nobody.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    /// Its line in CLIENT LIST.
    pub fn line(&self, now_ms: u64) -> String {
        let ClientActivity { user, name, command, at_ms, queued, watched: _, protocol } =
            self.activity();
        let flags = if queued >= 0 { "x" } else { "N" };
        format!(
            "id={} addr={} laddr={} fd=0 name={} age={} idle={} flags={flags} db=0 sub=0 psub=0 \
             ssub=0 multi={queued} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 \
             omem=0 tot-mem=0 events=r cmd={} user={} redir=-1 resp={protocol}\n",
            self.id,
            self.address,
            self.local_address,
            String::from_utf8_lossy(&name),
            now_ms.saturating_sub(self.connected_at_ms) / 1000,
            now_ms.saturating_sub(at_ms) / 1000,
            if command.is_empty() { "NULL" } else { command },
            user.as_deref().unwrap_or("(none)"),
        )
    }
}

/// All connected clients.
#[derive(Debug, Default)]
pub struct Clients {
    last_id: AtomicU64,
    connected: Mutex<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    /// Adds a client that connects at `now_ms`.
    pub fn enter(&self, address: String, local_address: String, now_ms: u64) -> Arc<Client> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let activity =
            ClientActivity { at_ms: now_ms, queued: -1, protocol: 2, ..ClientActivity::default() };
        let client = Arc::new(Client {
            id,
            address,
            local_address,
            connected_at_ms: now_ms,
            activity: Mutex::new(activity),
            kill: KillSwitch::new(),
            has_left: AtomicBool::new(false),
        });
        lock(&self.connected).insert(id, Arc::clone(&client));
        client
    }

    /// Removes a client that has disconnected.
    pub fn leave(&self, id: u64) {
        lock(&self.connected).remove(&id);
    }

    /// Number of clients.
    pub fn count(&self) -> usize {
        lock(&self.connected).len()
    }

    /// All clients in order of their numbers.
    pub fn all(&self) -> Vec<Arc<Client>> {
        lock(&self.connected).values().cloned().collect()
    }
}
