//! Keys that have expired stay dead, whatever the wall clock does.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use bytes::Bytes;
use softflash_device::{Device, ModelConfig, ModelDevice};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_store::{Entry, Store, StoreLayout, StoreOptions, open_all};
use std::sync::Arc;

fn array() -> Arc<ModelDevice> {
    let mut config = ModelConfig::model();
    config.array.geometry.blocks_per_plane = 40;
    config.array.geometry.pages_per_block = 64;
    Arc::new(ModelDevice::in_memory(config).unwrap())
}

/// Opens the store with a wall clock that shows `wall_ms`, lets `work` work, and drops everything.
fn session<R>(
    device: &Arc<ModelDevice>,
    wall_ms: u64,
    work: impl AsyncFnOnce(&Store, &RuntimeHandle, &VirtualExecutor) -> R,
) -> R {
    let executor = VirtualExecutor::new(wall_ms);
    let runtime = executor.handle();
    let layout =
        StoreLayout { shards: 1, slices: 1, units: device.info().units, compression: Vec::new() };
    let options = StoreOptions { memory_bytes: 4 << 20, ..StoreOptions::default() };
    let device: Arc<dyn Device> = Arc::clone(device) as Arc<dyn Device>;
    executor.block_on(async {
        let stores = open_all(device, &layout, &options, &runtime).await.unwrap();
        work(&stores[0], &runtime, &executor).await
    })
}

async fn put(store: &Store, key: &'static str, expires_at_ms: u64) {
    let mut view = store.view();
    let entry = Entry { expires_at_ms, ..Entry::new(Bytes::from_static(b"value")) };
    view.put(Bytes::from_static(key.as_bytes()), entry).unwrap();
    let ticket = store.commit(view).await.unwrap();
    store.durable(&ticket).await.unwrap();
}

async fn exists(store: &Store, key: &'static str) -> bool {
    store.view().get(&Bytes::from_static(key.as_bytes())).await.unwrap().is_some()
}

#[test]
fn a_key_that_was_seen_expired_stays_dead_when_the_wall_clock_steps_back() {
    session(&array(), 1_000_000, async |store, _, executor| {
        put(store, "short", 1_010_000).await;
        put(store, "long", 9_000_000).await;
        assert!(exists(store, "short").await);
        executor.set_wall_ms(1_010_001);
        assert!(!exists(store, "short").await);
        executor.set_wall_ms(500_000);
        assert!(!exists(store, "short").await);
        assert!(exists(store, "long").await);
    });
}

#[test]
fn it_stays_dead_through_crashes_and_restarts_in_the_past() {
    let device = array();
    session(&device, 1_000_000, async |store, _, executor| {
        put(store, "short", 1_010_000).await;
        executor.set_wall_ms(1_010_001);
        assert!(!exists(store, "short").await);
    });
    for wall_ms in [1_000_000, 0, 1_009_999] {
        session(&device, wall_ms, async |store, _, _| {
            assert!(!exists(store, "short").await, "alive at {wall_ms}");
        });
    }
}

#[test]
fn time_goes_on_from_where_it_was_while_the_wall_lags() {
    session(&array(), 1_000_000, async |store, runtime, executor| {
        put(store, "key", 1_005_000).await;
        executor.set_wall_ms(10);
        runtime.sleep_until(runtime.now() + 4_000_000_000).await;
        assert!(exists(store, "key").await);
        runtime.sleep_until(runtime.now() + 2_000_000_000).await;
        assert!(!exists(store, "key").await);
    });
}
