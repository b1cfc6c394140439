//! A client: one outstanding request, on keys of its own.

use crate::reference::{Batch, Promise};
use crate::scenario::{Clients, Scenario};
use crate::session_failure::SessionFailure;
use bytes::Bytes;
use softflash_base::ShardId;
use softflash_base::random::Rng;
use softflash_store::{Entry, Store, StoreError, Transaction};
use std::cell::RefCell;
use std::time::Duration;

/// A client of a scenario.
pub struct Client {
    number: u16,
    key_count: u64,
    pub(crate) rng: RefCell<Rng>,
    /// The keys of its last write.
    last: RefCell<Vec<Bytes>>,
    /// The reference of its keys.
    pub promise: RefCell<Promise>,
}

impl Client {
    /// The clients of a scenario.
    pub fn all(scenario: &Scenario) -> Vec<Client> {
        let rng = Rng::seeded(scenario.seed).fork("clients");
        let client = |number: u16| Client {
            number,
            key_count: scenario.clients.keys,
            rng: RefCell::new(rng.fork(number.to_le_bytes())),
            last: RefCell::default(),
            promise: RefCell::default(),
        };
        (0..scenario.clients.count).map(client).collect()
    }

    /// The client to which a key belongs.
    pub fn owner(key: &[u8]) -> Option<u16> {
        let digits = key.strip_prefix(b"client")?.get(..2)?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// Whether a key belongs to it.
    pub(crate) fn owns(&self, key: &[u8]) -> bool {
        Client::owner(key) == Some(self.number)
    }

    /// All keys that it may write.
    pub fn keys(&self) -> impl Iterator<Item = Bytes> {
        (0..self.key_count).map(|number| self.key(number))
    }

    fn key(&self, number: u64) -> Bytes {
        let padding = "k".repeat((number % 40) as usize);
        Bytes::from(format!("client{:02}:{number}:{padding}", self.number))
    }

    /// Makes all requests of a session, beside the other `clients`.
    pub async fn work(
        &self,
        stores: &[Store],
        clients: &[Client],
        workload: &Clients,
        durable: bool,
    ) -> Result<(), SessionFailure> {
        for _ in 0..workload.requests {
            let store = &stores[self.rng.borrow_mut().below(stores.len() as u64) as usize];
            if workload.pause_us > 0 {
                let pause = Duration::from_micros(workload.pause_us);
                store.runtime().sleep_until(store.runtime().now() + pause).await;
            }
            if workload.scans > 0.0 && self.rng.borrow_mut().chance(workload.scans) {
                self.scan(store, clients).await?;
            } else if self.rng.borrow_mut().chance(workload.reads) {
                self.read(store, workload).await?;
            } else {
                let batch = self.batch(workload);
                self.promise.borrow_mut().begins(batch.clone());
                write(store, batch).await.map_err(SessionFailure::from)?;
                self.promise.borrow_mut().is_answered(store.runtime().now());
                if durable {
                    self.promise.borrow_mut().is_durable();
                }
            }
        }
        Ok(())
    }

    /// A read must return the last value written.
    async fn read(&self, store: &Store, workload: &Clients) -> Result<(), SessionFailure> {
        let key = self.key(self.rng.borrow_mut().below(workload.keys));
        let expected = self.promise.borrow().current().get(&key).cloned();
        let found = store.begin().get(&key).await.map_err(SessionFailure::from)?;
        let found = found.map(|entry| entry.value.to_bytes());
        if found == expected {
            return Ok(());
        }
        let length = |value: Option<Bytes>| value.map(|value| value.len());
        Err(SessionFailure::Wrong(format!(
            "key `{}`: {:?} bytes read, {:?} written",
            key.escape_ascii(),
            length(found),
            length(expected),
        )))
    }

    fn batch(&self, workload: &Clients) -> Batch {
        let mut rng = self.rng.borrow_mut();
        let again = workload.again > 0.0 && rng.chance(workload.again);
        let kept = if again { self.last.take() } else { Vec::new() };
        let count = match kept.len() {
            0 => 1 + rng.below(workload.batch) as usize,
            count => count,
        };
        let mut batch = Batch::new();
        for place in 0..count {
            let key = match kept.get(place) {
                Some(key) => key.clone(),
                None => self.key(rng.below(workload.keys)),
            };
            if batch.iter().any(|(other, _)| *other == key) {
                continue;
            }
            let value = (!rng.chance(workload.deletes)).then(|| {
                let most = workload.longest_value(&mut rng);
                value(&mut rng, most)
            });
            batch.push((key, value));
        }
        self.last.replace(batch.iter().map(|(key, _)| key.clone()).collect());
        batch
    }
}

/// Bytes that are different from those of any other write.
fn value(rng: &mut Rng, most: u64) -> Bytes {
    let mut bytes = vec![0; rng.below(most + 1) as usize];
    let mark = rng.next_u64().to_le_bytes();
    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = mark[at % 8] ^ (at / 8) as u8);
    Bytes::from(bytes)
}

async fn write(store: &Store, batch: Batch) -> Result<(), StoreError> {
    let mut shards: Vec<ShardId> = batch.iter().map(|(key, _)| store.shard_of(key)).collect();
    shards.dedup();
    let token = match shards.len() {
        1 => store.commit(fill(store.begin(), batch)?).await?,
        _ => {
            let exclusive = store.exclusive(shards).await?;
            store.commit(fill(exclusive.begin(), batch)?).await?
        }
    };
    store.durable(&token).await
}

fn fill(mut transaction: Transaction, batch: Batch) -> Result<Transaction, StoreError> {
    for (key, value) in batch {
        match value {
            Some(value) => transaction.put(key, Entry::new(value))?,
            None => transaction.delete(key)?,
        }
    }
    Ok(transaction)
}
