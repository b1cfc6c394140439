//! A reference model of a store.

use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_store::{CommitToken, Entry, Store};
use std::collections::BTreeMap;

/// Acknowledged keys and values.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// The value by key.
    pub entries: BTreeMap<Bytes, Bytes>,
}

impl Model {
    /// Writes to the store and, once acknowledged, to the model.
    pub async fn put(&mut self, store: &Store, key: Bytes, value: Bytes) {
        let mut transaction = store.begin();
        transaction.put(key.clone(), Entry::new(value.clone())).unwrap();
        let token = store.commit(transaction).await.unwrap();
        store.durable(&token).await.unwrap();
        self.entries.insert(key, value);
    }

    /// Deletes in both.
    pub async fn delete(&mut self, store: &Store, key: Bytes) {
        let mut transaction = store.begin();
        transaction.delete(key.clone()).unwrap();
        let token: CommitToken = store.commit(transaction).await.unwrap();
        store.durable(&token).await.unwrap();
        self.entries.remove(&key);
    }

    /// Compares every key, by lookups and by scans of all slices.
    pub async fn compare(&self, store: &Store) {
        for (key, value) in &self.entries {
            let found = store.begin().get(key).await.unwrap();
            let found = found.map(|entry| entry.value.to_bytes());
            assert!(found.as_ref() == Some(value), "key {key:?}: {:?}", found.map(|f| f.len()));
        }
        let mut scanned = BTreeMap::new();
        for slice in 0..store.layout().slices {
            let (mut after, mut last) = (None, None);
            loop {
                let page = store.scan(softflash_base::SliceId(slice), after, 37).await.unwrap();
                for (key, entry) in page.items {
                    assert!(last.as_ref() < Some(&key), "scans are in order");
                    last = Some(key.clone());
                    assert!(scanned.insert(key, entry.value.to_bytes()).is_none());
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        assert_eq!(scanned.len(), self.entries.len(), "keys scanned");
        assert!(scanned == self.entries, "scans give what was written");
    }
}

/// A key out of `count`, with varying length.
pub fn key(number: u64) -> Bytes {
    let padding = "x".repeat((number % 23) as usize);
    Bytes::from(format!("key:{number:08}:{padding}"))
}

/// Bytes that are different from those of any other value.
pub fn value(random: &mut Rng, max_len: u64) -> Bytes {
    let len = random.below(max_len + 1) as usize;
    let mut bytes = vec![0; len];
    bytes.chunks_mut(8).for_each(|chunk| {
        let word = random.next_u64().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    });
    Bytes::from(bytes)
}
