//! What the clients of a scenario share: the reference of the keys that all of them write, and
//! what has happened in the session.

use super::lists::Lists;
use super::stages::Removals;
use bytes::Bytes;
use softflash_base::checksum::{hash64, identity};
use softflash_runtime::Notify;
use std::cell::{Cell, RefCell};

/// What the clients of a scenario share.
pub(crate) struct Common {
    /// The reference of the keys that all clients write.
    pub lists: RefCell<Lists>,
    /// These keys.
    pub list_keys: Vec<Bytes>,
    /// Hash of all bytes received.
    trace: Cell<u64>,
    /// A client has disconnected in this session; the commands it sent may still run.
    lost: Cell<bool>,
    /// Requests started in this session.
    requests: Cell<u64>,
    /// Pauses begun in this session.
    pauses: Cell<u64>,
    /// Removals of all keys started in this session.
    cleared: Cell<u64>,
    begins: Notify,
    /// The highest expiry clock of all sessions, at their ends.
    latest_ms: Cell<u64>,
}

impl Common {
    pub fn new(list_keys: Vec<Bytes>) -> Common {
        Common {
            lists: RefCell::default(),
            list_keys,
            trace: Cell::new(0),
            lost: Cell::new(false),
            requests: Cell::new(0),
            pauses: Cell::new(0),
            cleared: Cell::new(0),
            begins: Notify::new(),
            latest_ms: Cell::new(0),
        }
    }

    /// A session starts.
    pub fn begins_session(&self) {
        self.lost.set(false);
        self.requests.set(0);
        self.pauses.set(0);
        self.cleared.set(0);
    }

    /// The expiry clocks of a session had this value when it ended.
    pub fn note_clock(&self, ms: u64) {
        self.latest_ms.set(self.latest_ms.get().max(ms));
    }

    /// The highest expiry clock of all sessions, at their ends.
    pub fn latest_ms(&self) -> u64 {
        self.latest_ms.get()
    }

    /// Waits until this many requests and removals of all keys have started in this session.
    pub async fn begun(&self, requests: u64, removals: u64) {
        while self.requests.get() < requests || self.cleared.get() < removals {
            self.begins.notified().await;
        }
    }

    /// Requests and pauses that have started in this session: a client pauses before a request, and
    /// up to twice in it.
    pub fn steps_made(&self) -> u64 {
        self.requests.get() + self.pauses.get()
    }

    /// A client pauses.
    pub fn note_pause(&self) {
        self.pauses.set(self.pauses.get() + 1);
    }

    /// A request starts.
    pub fn note_request(&self) {
        self.requests.set(self.requests.get() + 1);
        self.begins.notify_all();
    }

    /// A client disconnects; the commands that it sent may run later.
    pub fn note_lost_client(&self) {
        self.lost.set(true);
    }

    /// Whether a client has disconnected in this session.
    pub fn has_lost_client(&self) -> bool {
        self.lost.get()
    }

    /// A removal of all keys starts.
    pub fn note_removal(&self) {
        self.lists.borrow_mut().removal_begins();
        self.cleared.set(self.cleared.get() + 1);
        self.begins.notify_all();
    }

    /// Whether a removal of all keys has started in this session.
    pub fn has_removed(&self) -> bool {
        self.cleared.get() > 0
    }

    /// Removals of all keys since the last comparison.
    pub fn removals(&self) -> Removals {
        self.lists.borrow().removals()
    }

    /// A client has received these bytes.
    pub fn note_received(&self, bytes: &[u8]) {
        self.trace.set(identity(&[self.trace.get(), hash64(bytes)]));
    }

    /// Hash of all bytes that clients received.
    pub fn trace(&self) -> u64 {
        self.trace.get()
    }
}
