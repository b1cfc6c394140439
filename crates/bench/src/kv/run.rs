//! One phase on one thread.

use super::distribution::{Order, Picker};
use super::keys::Keys;
use super::load::{Load, just_before, key};
use super::tally::{Tally, Took};
use super::work::Work;
use super::workload::Kind;
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use softflash_base::random::Rng;
use softflash_base::{SliceId, Time};
use softflash_store::{Entry, Store, StoreError};
use std::cell::RefCell;

/// One phase on one thread.
pub struct Run<'a> {
    store: &'a Store,
    load: &'a Load,
    work: &'a Work,
    keys: &'a RefCell<Keys>,
    rng: RefCell<Rng>,
    picker: RefCell<Picker>,
    /// The thread's clock at the start of the phase, which was this long ago.
    started: (Time, u64),
}

/// What an operation does.
enum Task {
    Read { key: Bytes },
    Write { place: u64, key: Bytes, value: Bytes },
    Insert { number: u32, value: Bytes },
    Delete { place: u64, key: Bytes },
    Modify { key: Bytes, value: Bytes },
    Scan { key: Bytes, limit: usize },
}

impl<'a> Run<'a> {
    /// Prepares a phase with the keys of this thread.
    pub fn new(
        store: &'a Store,
        load: &'a Load,
        work: &'a Work,
        keys: &'a RefCell<Keys>,
        rng: Rng,
    ) -> Run<'a> {
        let picker = RefCell::new(keys.borrow().picker(work.order));
        let started = (store.runtime().now(), work.elapsed_ns());
        Run { store, load, work, keys, rng: RefCell::new(rng), picker, started }
    }

    /// Makes operations until none is left, for all threads together.
    pub async fn phase(&self) -> Result<Tally, StoreError> {
        let mut tally = Tally::new();
        if self.keys.borrow().len() > 0 {
            match self.work.order {
                Order::Ascending => self.scan_all(&mut tally).await?,
                _ => self.operations(&mut tally).await?,
            }
            tally.series.end(self.at_ns());
        }
        tally.live_keys = self.keys.borrow().live();
        Ok(tally)
    }

    async fn operations(&self, tally: &mut Tally) -> Result<(), StoreError> {
        let mut under_way = FuturesUnordered::new();
        let (mut begun, mut seen) = (0, self.store.shard_stalls());
        loop {
            while under_way.len() < self.load.depth as usize && self.begins(begun) {
                under_way.push(self.operation(begun));
                begun += 1;
            }
            let Some(took) = under_way.next().await else { return Ok(()) };
            let (at_ns, stalls) = (self.at_ns(), self.store.shard_stalls());
            tally.record(took?, at_ns);
            tally.series.record_stalls(at_ns, stalls.since(seen));
            seen = stalls;
        }
    }

    /// Whether the thread makes one more operation after it has begun so many.
    fn begins(&self, begun: u64) -> bool {
        match self.work.order {
            // Every key of this thread once.
            Order::Once => begun < self.keys.borrow().len() && self.work.count(),
            _ => self.work.take(),
        }
    }

    async fn operation(&self, index: u64) -> Result<Took, StoreError> {
        match self.draw(index) {
            Task::Read { key } => self.read(&key).await,
            Task::Write { place, key, value } => {
                let took = self.write(key, value).await?;
                self.keys.borrow_mut().written(place);
                Ok(took)
            }
            Task::Insert { number, value } => {
                let took = self.write(key(number), value).await?;
                self.keys.borrow_mut().inserted(number);
                Ok(took)
            }
            Task::Delete { place, key } => {
                let took = self.delete(key).await?;
                self.keys.borrow_mut().deleted(place);
                Ok(took)
            }
            Task::Modify { key, value } => self.modify(key, value).await,
            Task::Scan { key, limit } => self.scan_from(&key, limit).await,
        }
    }

    /// Draws the next operation.
    fn draw(&self, index: u64) -> Task {
        let mut rng = self.rng.borrow_mut();
        let kind = self.work.mix.draw(&mut rng);
        if kind == Kind::Insert {
            let number = self.keys.borrow_mut().new_number();
            return Task::Insert { number, value: self.load.value(&mut rng) };
        }
        let keys = self.keys.borrow();
        let (place, key) = match self.work.order {
            Order::Once => (index, keys.at(index)),
            _ => keys.pick(&mut self.picker.borrow_mut(), &mut rng),
        };
        match kind {
            Kind::Read => Task::Read { key },
            Kind::Write | Kind::Insert => {
                Task::Write { place, key, value: self.load.value(&mut rng) }
            }
            Kind::Delete => Task::Delete { place, key },
            Kind::Modify => Task::Modify { key, value: self.load.value(&mut rng) },
            Kind::Scan => Task::Scan { key, limit: self.work.workload.scan_keys(&mut rng) },
        }
    }

    async fn read(&self, key: &Bytes) -> Result<Took, StoreError> {
        let began = self.now();
        let found = self.store.begin().get(key).await?.ok_or_else(|| missing(key))?;
        let bytes = (key.len() + found.value.len()) as u64;
        Ok(Took { read_ns: Some(self.since_ns(began)), bytes, ..Took::default() })
    }

    async fn write(&self, key: Bytes, value: Bytes) -> Result<Took, StoreError> {
        let began = self.now();
        let mut transaction = self.store.begin();
        transaction.put(key, Entry::new(value))?;
        let token = self.store.commit(transaction).await?;
        self.store.durable(&token).await?;
        let bytes = self.load.record_bytes();
        Ok(Took { write_ns: Some(self.since_ns(began)), bytes, ..Took::default() })
    }

    async fn delete(&self, key: Bytes) -> Result<Took, StoreError> {
        let (began, bytes) = (self.now(), key.len() as u64);
        let mut transaction = self.store.begin();
        transaction.delete(key)?;
        let token = self.store.commit(transaction).await?;
        self.store.durable(&token).await?;
        Ok(Took { write_ns: Some(self.since_ns(began)), bytes, ..Took::default() })
    }

    /// Reads a key and writes it, again if another operation wrote it between.
    async fn modify(&self, key: Bytes, value: Bytes) -> Result<Took, StoreError> {
        let began = self.now();
        loop {
            let mut transaction = self.store.begin();
            let found = transaction.get(&key).await?.ok_or_else(|| missing(&key))?;
            let (has_read, read_bytes) = (self.now(), key.len() + found.value.len());
            transaction.put(key.clone(), Entry::new(value.clone()))?;
            let token = match self.store.commit(transaction).await {
                Err(StoreError::Conflict) => continue,
                committed => committed?,
            };
            self.store.durable(&token).await?;
            return Ok(Took {
                read_ns: Some(has_read.since_ns(began)),
                write_ns: Some(self.since_ns(has_read)),
                bytes: read_bytes as u64 + self.load.record_bytes(),
            });
        }
    }

    async fn scan_from(&self, key: &Bytes, limit: usize) -> Result<Took, StoreError> {
        let slice = self.store.layout().slice_of(key);
        let (took, _) = self.page(slice, Some(just_before(key)), limit).await?;
        Ok(took)
    }

    /// Reads page after page of this thread's slices, and starts over at their end.
    async fn scan_all(&self, tally: &mut Tally) -> Result<(), StoreError> {
        let slices: Vec<SliceId> =
            self.store.layout().slices_of(self.store.local_id()).map(SliceId).collect();
        let mut after: Option<Bytes> = None;
        let mut cursor = 0;
        while self.work.take() {
            let Some(&slice) = slices.get(cursor % slices.len().max(1)) else { break };
            let limit = self.work.workload.scan_keys(&mut self.rng.borrow_mut());
            let (took, next) = self.page(slice, after.take(), limit).await?;
            tally.record(took, self.at_ns());
            after = next;
            if after.is_none() {
                cursor += 1;
            }
        }
        Ok(())
    }

    /// Reads a page, and returns the key after which the next one begins.
    async fn page(
        &self,
        slice: SliceId,
        after: Option<Bytes>,
        limit: usize,
    ) -> Result<(Took, Option<Bytes>), StoreError> {
        let began = self.now();
        let page = self.store.scan(slice, after, limit).await?;
        let read_ns = Some(self.since_ns(began));
        let sizes = page.items.iter().map(|(key, entry)| key.len() + entry.value.len());
        let bytes = sizes.sum::<usize>() as u64;
        Ok((Took { read_ns, bytes, ..Took::default() }, page.next))
    }

    fn now(&self) -> Time {
        self.store.runtime().now()
    }

    fn since_ns(&self, began: Time) -> u64 {
        self.now().since_ns(began)
    }

    /// Time since the start of the phase, which is the same for all threads.
    fn at_ns(&self) -> u64 {
        let (here, at_ns) = self.started;
        at_ns + self.since_ns(here)
    }
}

fn missing(key: &Bytes) -> StoreError {
    let key = String::from_utf8_lossy(key).into_owned();
    StoreError::DataLoss(format!("{key} was written and is missing"))
}
