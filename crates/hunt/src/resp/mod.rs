//! Clients of the server's command layer: they send and receive bytes.
//!
//! - [`wire`]: a client's implementation of RESP;
//! - [`command`]: commands on keys, and their text;
//! - [`semantics`]: the effects of commands, and the possible effects of unanswered ones;
//! - [`ledger`]: the reference of the keys that only one client writes;
//! - [`stages`]: their possible states while another client removes all keys;
//! - `firm`: the check of these keys where nothing acknowledged may be lost;
//! - [`lists`]: keys that all clients write;
//! - `admission`: the server's memory, which may be small;
//! - [`mod@line`]: a connection that splits its data, and may be lost;
//! - [`client`]: makes requests and records them in the references;
//! - `transaction`, `scan`, `sharing`, `watching`: requests of several steps;
//! - [`requests`]: draws requests.

mod admission;
pub mod client;
pub mod command;
mod firm;
pub mod ledger;
pub mod line;
pub mod lists;
pub mod requests;
mod scan;
pub mod semantics;
mod sharing;
pub mod stages;
mod transaction;
mod watching;
pub mod wire;

use crate::scenario::Scenario;
use crate::trouble::Trouble;
use admission::SharedMemory;
use bytes::Bytes;
use client::RespClient;
use futures_util::future::try_join_all;
use ledger::{Found, Slack};
use lists::Lists;
use semantics::Window;
use softflash_base::checksum::{hash64, identity};
use softflash_base::random::Rng;
use softflash_protocol::{Context, ContextOptions};
use softflash_runtime::{ByteSemaphore, Notify};
use softflash_store::{Store, StoreLayout};
use stages::Removals;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All clients of a scenario, and the references that they share.
pub struct Crew {
    clients: Vec<RespClient>,
    lists: RefCell<Lists>,
    list_keys: Vec<Bytes>,
    /// Hash of all bytes received.
    trace: Cell<u64>,
    /// A client has disconnected in this session; the commands it sent may still run.
    lost: Cell<bool>,
    /// Writes were refused for lack of space since the last comparison, possibly without a reply.
    refused: Cell<bool>,
    /// Requests started in this session.
    requests: Cell<u64>,
    /// Removals of all keys started in this session.
    cleared: Cell<u64>,
    begins: Notify,
}

/// Records at the end of a session whether the store has refused writes.
struct NoteRefusals<'a> {
    crew: &'a Crew,
    stores: &'a [Store],
}

impl Drop for NoteRefusals<'_> {
    fn drop(&mut self) {
        if self.stores.iter().any(|store| store.shard_stats().refused_writes > 0) {
            self.crew.refused.set(true);
        }
    }
}

/// The state that the clients of a session share.
pub(crate) struct Session<'a> {
    pub crew: &'a Crew,
    pub scenario: &'a Scenario,
    pub stores: &'a [Store],
    pub context: Arc<Context>,
    /// Every request takes a share; a FLUSHALL that must run alone takes all.
    pub gate: ByteSemaphore,
    /// Held by a FLUSHALL that runs concurrently with others.
    pub removal: ByteSemaphore,
    /// The server's memory for requests and replies.
    pub memory: SharedMemory,
}

impl Session<'_> {
    /// Range of the current time: the clocks of shards may differ where the wall clock has been set
    /// back.
    pub fn clock_ms(&self) -> Window {
        let wall_ms = self.stores.first().map_or(0, |store| store.runtime().wall_ms());
        if !self.scenario.pace.steps_back {
            return Window { from_ms: wall_ms, to_ms: wall_ms };
        }
        let clocks = || self.stores.iter().map(Store::now_ms);
        Window { from_ms: clocks().min().unwrap_or(0), to_ms: clocks().max().unwrap_or(0) }
    }

    /// The shard of a key.
    pub fn shard_of(&self, key: &[u8]) -> u16 {
        self.stores.first().map_or(0, |store| store.shard_of(key).0)
    }
}

impl Crew {
    /// The clients of a scenario, if they speak RESP.
    pub fn of(scenario: &Scenario) -> Option<Crew> {
        let resp = scenario.resp.as_ref()?;
        let rng = Rng::seeded(scenario.seed).fork("resp clients");
        let clients =
            (0..scenario.clients.count).map(|number| RespClient::new(number, &rng)).collect();
        let list_keys =
            (0..resp.lists).map(|number| Bytes::from(format!("list:{number}"))).collect();
        Some(Crew {
            clients,
            lists: RefCell::default(),
            list_keys,
            trace: Cell::new(0),
            lost: Cell::new(false),
            refused: Cell::new(false),
            requests: Cell::new(0),
            cleared: Cell::new(0),
            begins: Notify::new(),
        })
    }

    /// A session starts.
    pub fn begins_session(&self) {
        self.lost.set(false);
        self.requests.set(0);
        self.cleared.set(0);
    }

    /// Runs all clients.
    pub async fn work(&self, stores: &[Store], scenario: &Scenario) -> Result<(), Trouble> {
        let options = ContextOptions::new(stores[0].now_ms(), scenario.seed);
        let memory = scenario.resp.as_ref().map(|resp| resp.memory.clone()).unwrap_or_default();
        let session = Session {
            crew: self,
            scenario,
            stores,
            context: Arc::new(Context::new(options)),
            gate: ByteSemaphore::new(u64::from(scenario.clients.count)),
            removal: ByteSemaphore::new(1),
            memory: SharedMemory::new(memory),
        };
        // In any case: the reply to a refused write may not have arrived.
        let _noted = NoteRefusals { crew: self, stores };
        let work = self.clients.iter().map(|client| client.work(&session));
        try_join_all(work).await.map(drop)
    }

    /// Every key that may exist.
    pub fn keys(&self, scenario: &Scenario) -> Vec<Bytes> {
        let own = self.clients.iter().flat_map(|client| client.keys(scenario));
        own.chain(self.list_keys.iter().cloned()).collect()
    }

    /// Compares the contents found with the reference; `slack` defines the permitted losses. The
    /// contents found become the new base.
    ///
    /// # Errors
    /// The contents found are not possible.
    pub fn judge(
        &self,
        scenario: &Scenario,
        found: &Found,
        at: Window,
        layout: &StoreLayout,
        slack: Slack,
    ) -> Result<(), String> {
        let shard_of = |key: &[u8]| layout.shard_of(key).0;
        let mut clears: Option<BTreeSet<usize>> = None;
        let mut rest = found.clone();
        for client in &self.clients {
            let own: Found =
                client.keys(scenario).filter_map(|key| rest.remove_entry(&key)).collect();
            let mut ledger = client.ledger.borrow_mut();
            if self.refused.get() {
                ledger.may_be_refused();
            }
            let judged = ledger.judge(&own, at, layout.shards, &shard_of, slack);
            let possible = judged.map_err(|what| format!("client {}: {what}", client.number))?;
            let common = match clears.take() {
                None => possible,
                Some(known) => known.intersection(&possible).copied().collect(),
            };
            if common.is_empty() {
                return Err(
                    "FLUSHALL removed the keys of one client and not those of another".to_owned()
                );
            }
            clears = Some(common);
            ledger.settle(&own);
        }
        let lists: BTreeMap<Bytes, Bytes> = self
            .list_keys
            .iter()
            .filter_map(|key| rest.remove_entry(key))
            .map(|(key, (value, _))| (key, value))
            .collect();
        if let Some(key) = rest.keys().next() {
            return Err(format!("key `{}` was never written", key.escape_ascii()));
        }
        self.refused.set(false);
        let clears = clears.unwrap_or_else(|| [0].into());
        self.lists.borrow_mut().found(&lists, slack, &clears)
    }

    /// Compares each key by itself, except those that the store reports as lost.
    ///
    /// # Errors
    /// The contents found are not possible.
    pub fn judge_rest(
        &self,
        found: &Found,
        unreadable: &BTreeSet<Bytes>,
        at: Window,
        layout: &StoreLayout,
        slack: Slack,
    ) -> Result<(), String> {
        let shard_of = |key: &[u8]| layout.shard_of(key).0;
        for client in &self.clients {
            let owns = |key: &Bytes| client.owns(key);
            let own = found.iter().filter(|(key, _)| owns(key));
            let own = own.map(|(key, held)| (key.clone(), held.clone())).collect();
            client.ledger.borrow().judge_each(&own, unreadable, at, &shard_of, slack)?;
        }
        Ok(())
    }

    /// Waits until this many requests and removals of all keys have started in this session.
    pub async fn begun(&self, requests: u64, removals: u64) {
        while self.requests.get() < requests || self.cleared.get() < removals {
            self.begins.notified().await;
        }
    }

    /// Requests started in this session.
    pub fn requests_made(&self) -> u64 {
        self.requests.get()
    }

    fn note_request(&self) {
        self.requests.set(self.requests.get() + 1);
        self.begins.notify_all();
    }

    /// Hash of all bytes that clients received.
    pub fn trace(&self) -> u64 {
        self.trace.get()
    }

    /// Removals of all keys since the last comparison.
    fn removals(&self) -> Removals {
        self.lists.borrow().removals()
    }

    /// Whether a removal of all keys has started in this session.
    pub fn has_removed(&self) -> bool {
        self.cleared.get() > 0
    }

    /// A removal of the keys of all clients has started.
    fn removal_begins(&self) {
        self.lists.borrow_mut().removal_begins();
        self.cleared.set(self.cleared.get() + 1);
        self.begins.notify_all();
        for client in &self.clients {
            client.ledger.borrow_mut().removal_begins();
        }
    }

    /// It was answered.
    fn removal_ended(&self) {
        self.lists.borrow_mut().removal_ended();
        let ended = self.removals().ended;
        for client in &self.clients {
            client.ledger.borrow_mut().removals_ended(ended);
        }
    }

    fn note_received(&self, bytes: &[u8]) {
        self.trace.set(identity(&[self.trace.get(), hash64(bytes)]));
    }
}
