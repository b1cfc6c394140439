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
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn token() -> WatchToken {
        WatchToken(Arc::new(AtomicBool::new(false)))
    }

    fn key(name: &str, number: usize) -> Bytes {
        Bytes::from(format!("{name}{number}"))
    }

    #[test]
    fn sweeps_drop_orphans_and_nothing_else() {
        let mut watches = Watches::default();
        let live: Vec<WatchToken> = (0..SWEEP_EVERY / 2).map(|_| token()).collect();
        for (number, token) in live.iter().enumerate() {
            // Beside one that nobody holds any more.
            watches.add(key("live", number), self::token());
            watches.add(key("live", number), token.clone());
        }
        for number in 0..10 * SWEEP_EVERY {
            watches.add(key("orphan", number), token());
            let orphans = watches.tokens.len() - live.len();
            assert!(orphans <= SWEEP_EVERY, "{orphans} orphans after {number}");
        }
        assert!(live.iter().all(|token| !token.touched()));
        for (number, token) in live.iter().enumerate() {
            assert_eq!(watches.tokens[&key("live", number)].len(), 1);
            watches.touch(&key("live", number));
            assert!(token.touched());
        }
        assert!(watches.tokens.keys().all(|key| key.starts_with(b"orphan")));
    }

    #[test]
    fn a_removal_of_everything_touches_all_and_forgets_them() {
        let mut watches = Watches::default();
        let tokens: Vec<WatchToken> = (0..3 * SWEEP_EVERY).map(|_| token()).collect();
        for (number, token) in tokens.iter().enumerate() {
            watches.add(key("k", number), token.clone());
        }
        watches.touch_all();
        assert!(tokens.iter().all(WatchToken::touched) && watches.tokens.is_empty());
    }
}
