//! Keys that clients watch for changes.

use bytes::Bytes;
use hashbrown::HashMap;
use softflash_base::planted::{self, Bug};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that is set when a watched key is written.
#[derive(Debug, Clone, Default)]
pub struct WatchToken(Arc<AtomicBool>);

impl WatchToken {
    /// Whether the key was written since the watch began.
    pub fn touched(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn touch(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether only the shard still holds the token.
    pub(crate) fn is_orphan(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// The watched keys of a shard.
pub struct Watches {
    tokens: HashMap<Bytes, Vec<WatchToken>>,
    since_sweep: usize,
    /// The number of registrations between sweeps, which drop orphaned tokens.
    sweep_every: usize,
}

impl Watches {
    /// No watches. Every `sweep_every` registrations a sweep drops orphaned tokens.
    pub fn new(sweep_every: usize) -> Watches {
        Watches { tokens: HashMap::new(), since_sweep: 0, sweep_every }
    }

    /// The number of tokens, including orphaned ones.
    pub fn count(&self) -> usize {
        self.tokens.values().map(Vec::len).sum()
    }

    /// Registers `token` for writes to `key`.
    pub fn add(&mut self, key: Bytes, token: WatchToken) {
        self.since_sweep += 1;
        if self.since_sweep >= self.sweep_every {
            self.since_sweep = 0;
            self.tokens.retain(|_, tokens| {
                tokens.retain(|token| match token.is_orphan() {
                    true => planted::bug(Bug::SweepKeepsOrphans),
                    false => !planted::bug(Bug::SweepDropsLive),
                });
                !tokens.is_empty()
            });
        }
        self.tokens.entry(key).or_default().push(token);
    }

    /// `key` is written.
    pub fn touch(&mut self, key: &[u8]) {
        if !self.tokens.is_empty()
            && let Some(tokens) = self.tokens.remove(key)
        {
            tokens.iter().for_each(WatchToken::touch);
        }
    }

    /// All keys are removed.
    pub fn touch_all(&mut self) {
        self.tokens.drain().flat_map(|(_, tokens)| tokens).for_each(|token| token.touch());
    }
}

#[cfg(test)]
mod tests;
