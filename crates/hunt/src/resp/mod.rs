//! Clients of the server's command layer: they send and receive bytes.
//!
//! - [`wire`]: a client's implementation of RESP;
//! - [`command`]: commands on keys, and their text;
//! - [`semantics`]: the effects of commands, and the possible effects of unanswered ones;
//! - [`ledger`]: the reference of the keys that only one client writes;
//! - [`stages`]: their possible states while another client removes all keys;
//! - `durability`: the check of these keys where nothing acknowledged may be lost;
//! - [`lists`]: keys that all clients write;
//! - `admission`: the server's memory, which may be small;
//! - [`mod@line`]: a connection that splits its data, and may be lost;
//! - `common`: what all clients share; `session`: what they need in one session; `pauses`: how long
//!   they pause;
//! - `refusals`: writes that the store may have refused;
//! - [`client`]: a client, its keys and its pipelines of commands;
//! - `transaction`, `scan`, `sharing`, `watching`, `unused_watches`: requests of several steps;
//! - `work`: makes the requests of a session; [`requests`]: draws their commands.

mod admission;
pub mod client;
pub mod command;
mod common;
mod durability;
pub mod ledger;
pub mod line;
pub mod lists;
mod pauses;
mod refusals;
pub mod requests;
mod scan;
pub mod semantics;
mod session;
mod sharing;
pub mod stages;
mod transaction;
mod unused_watches;
mod watching;
pub mod wire;
mod work;

use crate::scenario::Scenario;
use crate::session_failure::SessionFailure;
use admission::SharedMemory;
use bytes::Bytes;
use client::RespClient;
use common::Common;
use futures_util::future::try_join_all;
use ledger::{Found, Slack};
use refusals::Refusals;
use semantics::Window;
use session::Session;
use softflash_base::random::Rng;
use softflash_protocol::{Context, ContextOptions};
use softflash_runtime::ByteSemaphore;
use softflash_store::{Store, StoreLayout};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All clients of a scenario, and the references that they share.
pub struct RespClients {
    clients: Vec<RespClient>,
    pub(crate) common: Common,
    /// Refusals since the last comparison.
    refusals: RefCell<Refusals>,
}

/// Records at the end of a session which writes the store may have refused.
struct NoteRefusals<'a> {
    clients: &'a RespClients,
    stores: &'a [Store],
}

impl Drop for NoteRefusals<'_> {
    fn drop(&mut self) {
        let mut refusals = self.clients.refusals.borrow_mut();
        for store in self.stores {
            refusals.full |= store.shard_stats().refused_writes > 0;
            if store.failure().is_some() {
                refusals.failed_logs.insert(store.local_id().0);
            }
        }
    }
}

impl RespClients {
    /// The clients of a scenario, if they speak RESP.
    pub fn of(scenario: &Scenario) -> Option<RespClients> {
        let resp = scenario.resp.as_ref()?;
        let rng = Rng::seeded(scenario.seed).fork("resp clients");
        let clients =
            (0..scenario.clients.count).map(|number| RespClient::new(number, &rng)).collect();
        let list_keys =
            (0..resp.lists).map(|number| Bytes::from(format!("list:{number}"))).collect();
        Some(RespClients { clients, common: Common::new(list_keys), refusals: RefCell::default() })
    }

    /// Runs all clients.
    pub async fn work(&self, stores: &[Store], scenario: &Scenario) -> Result<(), SessionFailure> {
        let options = ContextOptions::new(stores[0].now_ms(), scenario.seed);
        let memory = scenario.resp.as_ref().map(|resp| resp.memory.clone()).unwrap_or_default();
        let session = Session {
            common: &self.common,
            ledgers: self.clients.iter().map(|client| &client.ledger).collect(),
            scenario,
            stores,
            context: Arc::new(Context::new(options)),
            gate: ByteSemaphore::new(u64::from(scenario.clients.count)),
            removal: ByteSemaphore::new(1),
            memory: SharedMemory::new(memory),
        };
        // In any case: the reply to a refused write may not have arrived.
        let _noted = NoteRefusals { clients: self, stores };
        let work = self.clients.iter().map(|client| client.work(&session));
        try_join_all(work).await.map(drop)
    }

    /// Every key that may exist.
    pub fn keys(&self, scenario: &Scenario) -> Vec<Bytes> {
        let own = self.clients.iter().flat_map(|client| client.keys(scenario));
        own.chain(self.common.list_keys.iter().cloned()).collect()
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
            ledger.may_be_refused(self.refusals.borrow().clone());
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
            .common
            .list_keys
            .iter()
            .filter_map(|key| rest.remove_entry(key))
            .map(|(key, (value, _))| (key, value))
            .collect();
        if let Some(key) = rest.keys().next() {
            return Err(format!("key `{}` was never written", key.escape_ascii()));
        }
        self.refusals.take();
        let clears = clears.unwrap_or_else(|| [0].into());
        self.common.lists.borrow_mut().found(&lists, slack, &clears)
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
}
