//! Clients that speak to the server's own command layer: bytes in, bytes out.
//!
//! - [`wire`]: RESP as a client sees it;
//! - [`command`]: commands on keys, and how they are said;
//! - [`semantics`]: what commands do, and what may have come of those that nobody heard of;
//! - [`ledger`]: what a client was promised of the keys that only it writes;
//! - [`stages`]: what they may hold while somebody else removes everything;
//! - `firm`: what may be found of them where nothing may be lost;
//! - [`lists`]: keys that all clients write;
//! - `admission`: the server's memory, of which there may be little;
//! - [`mod@line`]: a connection, in pieces and sometimes lost;
//! - [`client`]: makes requests, and tells the references;
//! - `transaction`, `scan`, `sharing`, `watching`: requests of more than one step;
//! - [`requests`]: what is drawn to be asked for.

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

/// All clients of a scenario, and what they know together.
pub struct Crew {
    clients: Vec<RespClient>,
    lists: RefCell<Lists>,
    list_keys: Vec<Bytes>,
    /// Of everything that was received.
    trace: Cell<u64>,
    /// Somebody has gone in this session, and what it sent may still happen.
    lost: Cell<bool>,
    /// Writes were refused for lack of room since everything was last compared, perhaps without a word.
    refused: Cell<bool>,
    /// Requests that have begun in this session.
    requests: Cell<u64>,
    /// Removals of everything that have begun in this session.
    cleared: Cell<u64>,
    begins: Notify,
}

/// At the end of a session, notes whether the store has refused writes.
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

/// What the clients of a session share.
pub(crate) struct Session<'a> {
    pub crew: &'a Crew,
    pub scenario: &'a Scenario,
    pub stores: &'a [Store],
    pub context: Arc<Context>,
    /// Everybody takes a part of it, who removes everything alone takes all.
    pub gate: ByteSemaphore,
    /// Who removes everything beside others takes it.
    pub removal: ByteSemaphore,
    /// The server's, for requests and replies.
    pub memory: SharedMemory,
}

impl Session<'_> {
    /// What the time is, at the least and at the most: shards may differ where the wall clock has been set back.
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

    /// The power is on.
    pub fn begins_session(&self) {
        self.lost.set(false);
        self.requests.set(0);
        self.cleared.set(0);
    }

    /// All clients make their requests.
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
        // However this ends: a reply that says so may not have come.
        let _noted = NoteRefusals { crew: self, stores };
        let work = self.clients.iter().map(|client| client.work(&session));
        try_join_all(work).await.map(drop)
    }

    /// Every key that may be there.
    pub fn keys(&self, scenario: &Scenario) -> Vec<Bytes> {
        let own = self.clients.iter().flat_map(|client| client.keys(scenario));
        own.chain(self.list_keys.iter().cloned()).collect()
    }

    /// Compares with what was found, of which some need not be there. It is the truth from then on.
    ///
    /// # Errors
    /// What was found cannot be.
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
                return Err("everything of one client was removed, and not of another".to_owned());
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
            return Err(format!("key `{}` was written by nobody", key.escape_ascii()));
        }
        self.refused.set(false);
        let clears = clears.unwrap_or_else(|| [0].into());
        self.lists.borrow_mut().found(&lists, slack, &clears)
    }

    /// Compares keys one by one, but for those that the store says it has lost.
    ///
    /// # Errors
    /// What was found cannot be.
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

    /// Waits until so many requests, and removals of everything, have begun in this session.
    pub async fn begun(&self, requests: u64, removals: u64) {
        while self.requests.get() < requests || self.cleared.get() < removals {
            self.begins.notified().await;
        }
    }

    /// Requests that have begun in this session.
    pub fn requests_made(&self) -> u64 {
        self.requests.get()
    }

    fn note_request(&self) {
        self.requests.set(self.requests.get() + 1);
        self.begins.notify_all();
    }

    /// Of everything that clients have received.
    pub fn trace(&self) -> u64 {
        self.trace.get()
    }

    /// Removals of everything since everything was last compared.
    fn removals(&self) -> Removals {
        self.lists.borrow().removals()
    }

    /// Whether a removal of everything has begun in this session.
    pub fn has_removed(&self) -> bool {
        self.cleared.get() > 0
    }

    /// Everybody's keys are about to be removed.
    fn removal_begins(&self) {
        self.lists.borrow_mut().removal_begins();
        self.cleared.set(self.cleared.get() + 1);
        self.begins.notify_all();
        for client in &self.clients {
            client.ledger.borrow_mut().removal_begins();
        }
    }

    /// They have been.
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
