//! The writes of a transaction so far, for its commands on the whole store.
//!
//! These writes are in the store transaction and not committed, so a list of the store's keys would
//! not show them.

use crate::error::Result;
use bytes::Bytes;
use softflash_store::stats::KeyCount;
use softflash_store::value::Wanted;
use softflash_store::{Entry, Exclusive};
use std::collections::BTreeMap;

/// Keys written or removed by a transaction.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// All keys of the store were removed first.
    pub cleared: bool,
    /// Expiry of each written key (0 for none); none for a removed key.
    pub keys: BTreeMap<Bytes, Option<u64>>,
}

impl Changes {
    pub fn note(&mut self, key: &Bytes, entry: Option<&Entry>) {
        self.keys.insert(key.clone(), entry.map(|entry| entry.expires_at_ms));
    }

    pub fn clear(&mut self) {
        self.keys.clear();
        self.cleared = true;
    }

    fn is_live(expires_at_ms: Option<u64>, now_ms: u64) -> bool {
        expires_at_ms.is_some_and(|at_ms| at_ms == 0 || at_ms > now_ms)
    }

    /// The keys that were written and have not expired.
    pub fn live(&self, now_ms: u64) -> impl Iterator<Item = &Bytes> {
        let live = move |(_, expiry): &(&Bytes, &Option<u64>)| Changes::is_live(**expiry, now_ms);
        self.keys.iter().filter(live).map(|(key, _)| key)
    }

    fn count_live(&self, now_ms: u64) -> KeyCount {
        let is_live = |expiry: &&Option<u64>| Changes::is_live(**expiry, now_ms);
        let live = self.keys.values().filter(is_live);
        let expiring = live.clone().filter(|expiry| **expiry != Some(0)).count() as u64;
        KeyCount { keys: live.count() as u64, expiring }
    }

    /// Whether the transaction has not touched the key, so that the store's state applies.
    pub fn is_untouched(&self, key: &Bytes) -> bool {
        !self.cleared && !self.keys.contains_key(key)
    }
}

/// A transaction's changes and its exclusive access to the store.
#[derive(Clone, Copy)]
pub(crate) struct Overlay<'a> {
    pub changes: &'a Changes,
    pub exclusive: &'a Exclusive,
}

impl Overlay<'_> {
    /// The number of keys, and of those that expire.
    pub async fn key_count(&self, now_ms: u64) -> Result<KeyCount> {
        let mut count = self.changes.count_live(now_ms);
        if self.changes.cleared {
            return Ok(count);
        }
        count.add(self.exclusive.key_count().await?);
        let mut transaction = self.exclusive.begin();
        for key in self.changes.keys.keys() {
            if let Some(replaced) = transaction.find(key, Wanted::Keys).await? {
                count.keys = count.keys.saturating_sub(1);
                let expires = u64::from(replaced.expires_at_ms != 0);
                count.expiring = count.expiring.saturating_sub(expires);
            }
        }
        Ok(count)
    }
}
