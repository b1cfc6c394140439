//! Keys that clients watch for changes.

use crate::store::WatchToken;
use bytes::Bytes;
use hashbrown::HashMap;

/// The watched keys of a shard.
#[derive(Default)]
pub struct Watches {
    tokens: HashMap<Bytes, Vec<WatchToken>>,
    since_sweep: usize,
}

/// Registrations after which tokens that nobody holds any more are dropped.
const SWEEP_EVERY: usize = 1024;

impl Watches {
    /// Tells `token` when `key` is written.
    pub fn add(&mut self, key: Bytes, token: WatchToken) {
        self.since_sweep += 1;
        if self.since_sweep >= SWEEP_EVERY {
            self.since_sweep = 0;
            self.tokens.retain(|_, tokens| {
                tokens.retain(|token| !token.is_orphan());
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

    /// Everything is removed.
    pub fn touch_all(&mut self) {
        self.tokens.drain().flat_map(|(_, tokens)| tokens).for_each(|token| token.touch());
    }
}

#[cfg(test)]
mod tests;
