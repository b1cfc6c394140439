//! What the clients of a session need besides their own references.

use super::admission::SharedMemory;
use super::common::Common;
use super::ledger::Ledger;
use super::semantics::Window;
use crate::scenario::Scenario;
use softflash_protocol::Context;
use softflash_runtime::ByteSemaphore;
use softflash_store::Store;
use std::cell::RefCell;
use std::sync::Arc;

/// The state that the clients of a session share.
pub(crate) struct Session<'a> {
    pub common: &'a Common,
    /// The references of the clients' own keys.
    pub ledgers: Vec<&'a RefCell<Ledger>>,
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

    /// A removal of the keys of all clients has started.
    pub fn removal_begins(&self) {
        self.common.note_removal();
        for ledger in &self.ledgers {
            ledger.borrow_mut().removal_begins();
        }
    }

    /// It was answered.
    pub fn removal_ended(&self) {
        self.common.lists.borrow_mut().removal_ended();
        let ended = self.common.removals().ended;
        for ledger in &self.ledgers {
            ledger.borrow_mut().removals_ended(ended);
        }
    }
}
