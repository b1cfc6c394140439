//! Clients of a store, and their requests.

use super::run::failed;
use crate::cell::Control;
use crate::engine::client_loop;
use crate::engine::quota::Quota;
use crate::engine::tally::Tally;
use crate::error::LabError;
use bytes::Bytes;
use futures_util::future::try_join_all;
use softflash_base::{AccessKind, SliceId};
use softflash_runtime::RuntimeHandle;
use softflash_store::{Entry, Store, StoreError};
use softflash_workload::{KeyMaker, KvAccess, KvKind, KvSource, fill_value, version_of};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The maximum number of keys in one page of a scan.
const SCAN_PAGE_KEYS: u64 = 64;

/// The state that the clients of a slice share.
pub struct SliceClients {
    /// The shard of the slice.
    pub store: Store,
    /// The slice.
    pub slice: SliceId,
    /// Its keys.
    pub keys: KeyMaker,
    /// The version of the next write. Values contain key and version, so a wrong value is detected.
    pub version: Cell<u64>,
}

/// The state that all clients of a phase share.
pub struct Phase<'a> {
    /// Clock and executor.
    pub runtime: &'a RuntimeHandle,
    /// Records the requests; `None` during a warm-up, which is not measured.
    pub tally: Option<&'a Tally>,
    /// Checked for a stop.
    pub control: &'a Control<'a>,
    /// The time from a completion to the next request.
    pub think_ns: u64,
    /// Called after each request.
    pub told: &'a dyn Fn(),
}

/// A client: a stream of requests, with one or more under way at a time.
pub struct Client {
    slice: Rc<SliceClients>,
    source: RefCell<KvSource>,
    quota: Cell<Quota>,
}

impl Client {
    /// A client with an empty quota.
    pub fn new(slice: Rc<SliceClients>, source: KvSource) -> Client {
        let nothing = Quota { requests: Some(0), until: None };
        Client { slice, source: RefCell::new(source), quota: Cell::new(nothing) }
    }

    /// Sets the client's quota.
    pub fn allow(&self, quota: Quota) {
        self.quota.set(quota);
    }

    /// Submits `batch` requests at a time, and the next batch when all of them have completed.
    pub async fn in_batches(&self, phase: &Phase<'_>, batch: u32) -> Result<(), LabError> {
        let Phase { runtime, control, think_ns, .. } = *phase;
        let pace = client_loop::Pace { runtime, control, think_ns };
        let next = |_| self.next(phase).map(|access| self.request(phase, access));
        client_loop::closed(&pace, batch as usize, next).await
    }

    /// Keeps `batch` requests under way: each completion is followed by the next request.
    pub async fn without_barrier(&self, phase: &Phase<'_>, batch: u32) -> Result<(), LabError> {
        try_join_all((0..batch).map(|_| self.in_batches(phase, 1))).await.map(drop)
    }

    /// The client's next request, if its quota has one left.
    fn next(&self, phase: &Phase<'_>) -> Option<KvAccess> {
        let mut quota = self.quota.get();
        let allowed = quota.take(phase.runtime.now());
        self.quota.set(quota);
        allowed.then(|| self.source.borrow_mut().next())
    }

    /// Submits a request and waits for its completion.
    async fn request(&self, phase: &Phase<'_>, access: KvAccess) -> Result<(), LabError> {
        let made_at = phase.runtime.now();
        if let Some(tally) = phase.tally {
            tally.submitted();
        }
        let slice = &self.slice;
        let (kind, bytes) = match access.kind {
            KvKind::Read => (AccessKind::Read, slice.read(access.key).await?),
            KvKind::Scan => (AccessKind::Read, slice.scan(access.key, access.bytes).await?),
            KvKind::Write => (AccessKind::Write, slice.write(access.key, access.bytes).await?),
        };
        if let Some(tally) = phase.tally {
            tally.completed(kind, made_at, phase.runtime.now(), bytes);
        }
        (phase.told)();
        Ok(())
    }
}

impl SliceClients {
    fn key(&self, number: u64) -> Bytes {
        Bytes::copy_from_slice(&self.keys.key(number))
    }

    /// Reads a value; returns its bytes.
    async fn read(&self, number: u64) -> Result<u64, LabError> {
        let mut transaction = self.store.begin();
        let entry = transaction.get(&self.key(number)).await.map_err(failed)?;
        let entry = entry.ok_or_else(|| missing(self.slice, number))?;
        self.check(number, &entry)?;
        Ok(entry.value.len() as u64)
    }

    /// Scans keys and values from a key on, and wraps at the end of the slice, until it has seen
    /// `bytes`; returns the bytes of the values.
    async fn scan(&self, number: u64, bytes: u64) -> Result<u64, LabError> {
        // The key before the first one of the scan; `None` for the first key of the slice.
        let mut after = number.checked_sub(1).map(|before| self.key(before));
        let (mut seen, mut value_bytes) = (0, 1);
        while seen < bytes {
            let keys = (bytes - seen).div_ceil(value_bytes).clamp(1, SCAN_PAGE_KEYS);
            let limit = if seen == 0 { 1 } else { keys as usize };
            let page = self.store.scan(self.slice, after.take(), limit).await.map_err(failed)?;
            for (key, entry) in &page.items {
                let number = self.keys.number(key).unwrap_or(u64::MAX);
                self.check(number, entry)?;
                value_bytes = entry.value.len().max(1) as u64;
                seen += value_bytes;
            }
            if page.items.is_empty() && seen == 0 && page.next.is_none() && number == 0 {
                return Err(missing(self.slice, 0));
            }
            after = page.next;
        }
        Ok(seen)
    }

    /// Writes a value and waits until it is durable; returns its bytes.
    async fn write(&self, number: u64, bytes: u64) -> Result<u64, LabError> {
        self.write_some(&[(number, bytes)]).await?;
        Ok(bytes)
    }

    /// Writes values in one transaction and waits until it is durable.
    pub async fn write_some(&self, accesses: &[(u64, u64)]) -> Result<(), LabError> {
        let version = self.version.get();
        self.version.set(version + 1);
        let mut transaction = self.store.begin();
        for &(number, bytes) in accesses {
            let mut value = vec![0; bytes as usize];
            fill_value(number, version, &mut value);
            transaction.put(self.key(number), Entry::new(Bytes::from(value))).map_err(failed)?;
        }
        let token = self.store.commit(transaction).await.map_err(failed)?;
        self.store.durable(&token).await.map_err(failed)
    }

    /// Checks that an entry is a version of its key: all of its words are equal and encode the key.
    fn check(&self, number: u64, entry: &Entry) -> Result<(), LabError> {
        let wrong = || {
            LabError::Simulation(format!("slice {}: key {number} has a wrong value", self.slice))
        };
        for fragment in entry.value.fragments() {
            let version = version_of(number, fragment);
            let (words, _) = fragment.as_chunks::<8>();
            let alike = words.windows(2).all(|pair| pair[0] == pair[1]);
            if !alike || version.is_some_and(|version| version >= self.version.get()) {
                return Err(wrong());
            }
        }
        Ok(())
    }
}

fn missing(slice: SliceId, number: u64) -> LabError {
    failed(StoreError::DataLoss(format!("slice {slice}: key {number} is not there")))
}
