//! ACL LOG: denied commands, keys and logins.

use crate::shared::lock::lock;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of entries.
const MAX_ENTRIES: usize = 128;
/// Equal denials of the same user within this time share an entry, as in Redis.
const GROUPED_WITHIN_MS: u64 = 60_000;
/// Maximum bytes of a key or command in an entry.
const MAX_OBJECT_BYTES: usize = 128;

/// Reason of a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Authentication,
    Command,
    Key,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Reason::Authentication => "auth",
            Reason::Command => "command",
            Reason::Key => "key",
        }
    }
}

/// An entry.
#[derive(Debug, Clone)]
pub(crate) struct Denial {
    pub count: u64,
    pub reason: Reason,
    /// `toplevel` or `multi`.
    pub context: &'static str,
    /// The command, or the key.
    pub object: Vec<u8>,
    pub user: String,
    pub client: String,
    pub at_ms: u64,
}

impl Denial {
    fn repeats(&self, other: &Denial) -> bool {
        self.reason == other.reason
            && self.context == other.context
            && self.object == other.object
            && self.user == other.user
            && self.at_ms.saturating_sub(other.at_ms) < GROUPED_WITHIN_MS
    }
}

/// A bounded list, newest first, with a counter for each reason.
#[derive(Debug, Default)]
pub(crate) struct DenialLog {
    entries: Mutex<VecDeque<Denial>>,
    authentication: AtomicU64,
    command: AtomicU64,
    key: AtomicU64,
}

impl DenialLog {
    pub fn enter(&self, mut denial: Denial) {
        self.counter(denial.reason).fetch_add(1, Ordering::Relaxed);
        denial.object.truncate(MAX_OBJECT_BYTES);
        let mut entries = lock(&self.entries);
        let earlier = entries.iter().position(|entry| denial.repeats(entry));
        if let Some(earlier) = earlier.and_then(|place| entries.remove(place)) {
            denial.count += earlier.count;
        }
        entries.push_front(denial);
        entries.truncate(MAX_ENTRIES);
    }

    pub fn newest(&self, count: usize) -> Vec<Denial> {
        lock(&self.entries).iter().take(count).cloned().collect()
    }

    pub fn reset(&self) {
        lock(&self.entries).clear();
    }

    /// Number of denials for this reason since the start.
    pub fn count(&self, reason: Reason) -> u64 {
        self.counter(reason).load(Ordering::Relaxed)
    }

    fn counter(&self, reason: Reason) -> &AtomicU64 {
        match reason {
            Reason::Authentication => &self.authentication,
            Reason::Command => &self.command,
            Reason::Key => &self.key,
        }
    }
}
