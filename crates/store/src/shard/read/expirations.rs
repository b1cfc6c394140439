//! The number of keys that have expired. Nothing removes a key at its time, so a key counts when a
//! lookup or a scan first finds it expired, or else when a merge removes it.

use bytes::Bytes;
use softflash_base::checksum::hash64;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;

/// Maximum number of expired keys that are remembered: 1 MiB. Further ones count when a merge
/// removes them.
const MOST: usize = 1 << 16;

/// An expired version of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::shard) struct Expired(u64);

impl Expired {
    /// The version of `key` that expired at this time.
    pub(in crate::shard) fn of(key: &Bytes, expires_at_ms: u64) -> Expired {
        Expired(hash64(key) ^ hash64(&expires_at_ms.to_le_bytes()))
    }
}

/// Counts expired keys, each once.
#[derive(Debug, Default)]
pub(in crate::shard) struct Expirations {
    count: Cell<u64>,
    /// Counted, and not removed yet.
    found: RefCell<HashSet<Expired>>,
}

impl Expirations {
    /// A lookup or a scan has found a key expired.
    pub(super) fn note_found(&self, expired: Expired) {
        let mut found = self.found.borrow_mut();
        if found.len() < MOST && found.insert(expired) {
            self.count.set(self.count.get() + 1);
        }
    }

    /// A merge has removed an expired key.
    pub(in crate::shard) fn note_removed(&self, expired: Expired) {
        if !self.found.borrow_mut().remove(&expired) {
            self.count.set(self.count.get() + 1);
        }
    }

    /// The keys counted since the shard was opened.
    pub(in crate::shard) fn count(&self) -> u64 {
        self.count.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_counts_once_whether_it_is_found_or_removed() {
        let expirations = Expirations::default();
        let version =
            |key: &'static str, at_ms| Expired::of(&Bytes::from_static(key.as_bytes()), at_ms);
        for _ in 0..3 {
            expirations.note_found(version("a", 5));
        }
        expirations.note_found(version("b", 5));
        assert_eq!(expirations.count(), 2);
        expirations.note_removed(version("a", 5));
        expirations.note_removed(version("c", 5));
        assert_eq!(expirations.count(), 3);
        // The key was written again, and has expired again.
        expirations.note_found(version("a", 9));
        assert_eq!(expirations.count(), 4);
    }

    #[test]
    fn keys_beyond_the_limit_count_when_they_are_removed() {
        let expirations = Expirations::default();
        let version = |number: usize| Expired::of(&Bytes::from(number.to_string()), 1);
        (0..MOST + 10).for_each(|number| expirations.note_found(version(number)));
        assert_eq!(expirations.count(), MOST as u64);
        (0..MOST + 10).for_each(|number| expirations.note_removed(version(number)));
        assert_eq!(expirations.count(), MOST as u64 + 10);
    }
}
