//! The time that a drive waits for the host, before it folds its SLC cache.

use crate::spec::PageMapped;

/// How long the host has been idle.
pub(super) struct Idling {
    /// The time without a request after which the host counts as idle.
    patience_ns: u64,
    /// When the last request completed; `u64::MAX` while one is under way.
    since: u64,
}

impl Idling {
    /// No request has come yet.
    pub(super) fn new(layout: &PageMapped) -> Idling {
        let idle_ms = layout.slc_cache.map_or(0, |cache| cache.idle_ms);
        Idling { patience_ns: u64::from(idle_ms) * 1_000_000, since: 0 }
    }

    /// A request has come.
    pub(super) fn end(&mut self) {
        self.since = u64::MAX;
    }

    /// The last request has completed.
    pub(super) fn begin(&mut self, now: u64) {
        self.since = now;
    }

    /// When the host counts as idle; `u64::MAX` while a request is under way.
    #[inline]
    pub(super) fn counts_from(&self) -> u64 {
        self.since.saturating_add(self.patience_ns)
    }
}
