//! Who is connected: what CLIENT LIST shows and CLIENT KILL ends.

use crate::shared::kill::KillSwitch;
use crate::shared::lock::lock;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What a client does and did last.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    /// The user that it is, if it is any.
    pub user: Option<Arc<str>>,
    /// The name it gave itself.
    pub name: Bytes,
    /// Its last command, as `client|list`.
    pub command: &'static str,
    /// When that was, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Commands queued since MULTI, or -1.
    pub queued: i64,
    /// Keys watched.
    pub watched: usize,
    /// The version of RESP that it speaks.
    pub protocol: i64,
}

/// A connected client as all threads see it.
#[derive(Debug)]
pub struct Client {
    /// Its number, never given twice.
    pub id: u64,
    /// Its address, `ip:port`.
    pub address: String,
    /// The server's address that it is connected to.
    pub local_address: String,
    /// When it connected, in milliseconds since the Unix epoch.
    pub connected_at_ms: u64,
    activity: Mutex<Activity>,
    kill: KillSwitch,
}

impl Client {
    /// A copy of its activity.
    pub fn activity(&self) -> Activity {
        lock(&self.activity).clone()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Activity)) {
        change(&mut lock(&self.activity));
    }

    /// Tells its connection to end.
    pub fn kill(&self) {
        self.kill.throw();
    }

    /// Whether it was killed.
    pub fn is_killed(&self) -> bool {
        self.kill.is_thrown()
    }

    /// Completes when it is killed; to be awaited beside reads from the socket, by one task.
    pub async fn killed(&self) {
        self.kill.thrown().await;
    }

    /// Its line in CLIENT LIST.
    pub fn line(&self, now_ms: u64) -> String {
        let Activity { user, name, command, at_ms, queued, watched: _, protocol } = self.activity();
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
    /// Enters a client that connects at `now_ms`.
    pub fn enter(&self, address: String, local_address: String, now_ms: u64) -> Arc<Client> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let activity = Activity { at_ms: now_ms, queued: -1, protocol: 2, ..Activity::default() };
        let client = Arc::new(Client {
            id,
            address,
            local_address,
            connected_at_ms: now_ms,
            activity: Mutex::new(activity),
            kill: KillSwitch::new(),
        });
        lock(&self.connected).insert(id, Arc::clone(&client));
        client
    }

    /// Strikes a client that has gone.
    pub fn leave(&self, id: u64) {
        lock(&self.connected).remove(&id);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        lock(&self.connected).len()
    }

    /// All of them in order of their numbers.
    pub fn all(&self) -> Vec<Arc<Client>> {
        lock(&self.connected).values().cloned().collect()
    }
}
