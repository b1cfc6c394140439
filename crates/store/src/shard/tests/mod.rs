//! Tests of shards without background tasks, in virtual time: a test runs their steps itself.

mod commit;
mod compact;
mod over_shards;
mod values;

use super::recovery::OnLogLoss;
use super::*;
use crate::error::StoreError;
use crate::store::open_all_for_repair;
use crate::store::{CommitToken, Store};
use crate::value::Entry;
use bytes::Bytes;
use futures_util::future::{Either, select};
use softflash_device::Device;
use softflash_runtime::VirtualExecutor;
use softflash_testing::array;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

pub(in crate::shard) const WALL_MS: u64 = 1_000_000;
pub(in crate::shard) const SECOND_NS: u64 = 1_000_000_000;

/// A device that a test opens several times.
pub(in crate::shard) struct Bench {
    device: Arc<dyn Device>,
    pub(in crate::shard) layout: StoreLayout,
    pub(in crate::shard) options: StoreOptions,
}

impl Bench {
    /// Four units of `superblocks` superblocks of `kib` KiB each, with one slice in each shard.
    pub(in crate::shard) fn new(shards: u16, superblocks: u32, kib: u32) -> Bench {
        let layout = StoreLayout::new(shards, shards, 4);
        // Values of all sizes go through log, memtable and tree.
        let options = StoreOptions { value_threshold: None, ..StoreOptions::default() };
        Bench { device: array(superblocks, kib), layout, options }
    }

    /// Opens the shards, runs `test`, and drops the shards.
    pub(in crate::shard) fn run<R>(
        &self,
        test: impl AsyncFnOnce(&[Store], &RuntimeHandle) -> R,
    ) -> R {
        let executor = VirtualExecutor::new(WALL_MS);
        let runtime = executor.handle();
        executor.block_on(async {
            let device = Arc::clone(&self.device);
            let (layout, options) = (&self.layout, &self.options);
            let stores = open_all_for_repair(device, layout, options, &runtime, OnLogLoss::Refuse);
            test(&stores.await.unwrap(), &runtime).await
        })
    }
}

pub(in crate::shard) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(in crate::shard) fn entry(len: usize) -> Entry {
    Entry::new(Bytes::from(vec![7; len]))
}

pub(in crate::shard) async fn put(store: &Store, key: &str, entry: Entry) {
    let mut transaction = store.begin();
    transaction.put(bytes(key), entry).unwrap();
    store.commit(transaction).await.unwrap();
}

pub(in crate::shard) async fn delete(store: &Store, key: &str) {
    let mut transaction = store.begin();
    transaction.delete(bytes(key)).unwrap();
    store.commit(transaction).await.unwrap();
}

/// The length of a value, read from memtables and flash without the cache.
pub(in crate::shard) async fn found(store: &Store, key: &str) -> Option<usize> {
    store.local().caches.clear();
    let entry = store.begin().get(&bytes(key)).await.unwrap();
    entry.map(|entry| entry.value.to_bytes().len())
}

/// The result of `work`, or `None` if it takes longer than this.
pub(in crate::shard) async fn within<T>(
    runtime: &RuntimeHandle,
    ns: u64,
    work: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(work), runtime.sleep_until(runtime.now() + ns)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

pub(in crate::shard) async fn rest(runtime: &RuntimeHandle, ns: u64) {
    runtime.sleep_until(runtime.now() + ns).await;
}
