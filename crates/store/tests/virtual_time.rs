//! The same store on a modelled flash array in virtual time: deterministic, and safe through power cuts.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_device::{Device, ModelConfig, ModelDevice};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_store::{Store, StoreLayout, StoreOptions, open_all};
use softflash_testing::Model;
use softflash_testing::model::{key, value};
use std::sync::Arc;

/// 4 channels of 40 superblocks of 1 MiB each.
fn array() -> Arc<ModelDevice> {
    let mut config = ModelConfig::model();
    config.array.geometry.blocks_per_plane = 40;
    config.array.geometry.pages_per_block = 64;
    Arc::new(ModelDevice::in_memory(config).unwrap())
}

/// Opens the store, lets `work` work, and drops everything; returns when.
fn session<R>(
    device: &Arc<ModelDevice>,
    work: impl AsyncFnOnce(&[Store], &RuntimeHandle) -> R,
) -> (R, softflash_base::Time) {
    let executor = VirtualExecutor::new(1_000_000);
    let runtime = executor.handle();
    let units = device.info().units;
    let layout = StoreLayout { shards: 2, slices: 2, units, compression: Vec::new() };
    let options = StoreOptions { memory_bytes: 4 << 20, ..StoreOptions::default() };
    let device: Arc<dyn Device> = Arc::clone(device) as Arc<dyn Device>;
    let result = executor.block_on(async {
        let stores = open_all(device, &layout, &options, &runtime).await.unwrap();
        work(&stores, &runtime).await
    });
    (result, runtime.now())
}

async fn write_some(model: &mut Model, random: &mut Rng, stores: &[Store], count: u64) {
    for _ in 0..count {
        let key = key(random.below(300));
        let store = &stores[random.below(2) as usize];
        if random.chance(0.2) {
            model.delete(store, key).await;
        } else {
            let value = value(random, 9000);
            model.put(store, key, value).await;
        }
    }
}

#[test]
fn equal_seeds_give_equal_runs_to_the_nanosecond() {
    let run = |seed| {
        let device = array();
        let mut random = Rng::seeded(seed);
        let mut model = Model::default();
        session(&device, async |stores, _| {
            write_some(&mut model, &mut random, stores, 400).await;
            model.compare(&stores[0]).await;
            format!("{:?}", stores[0].stats().await.unwrap())
        })
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
}

#[test]
fn acknowledged_writes_survive_power_cuts() {
    let seed = 77;
    println!("seed {seed}");
    let device = array();
    let mut random = Rng::seeded(seed);
    let mut model = Model::default();
    for round in 0..8 {
        let count = 50 + random.below(100);
        let ((), at) = session(&device, async |stores, runtime| {
            model.compare(&stores[0]).await;
            write_some(&mut model, &mut random, stores, count).await;
            // One more that is never acknowledged, so that something is under way.
            let mut view = stores[0].view();
            let entry = softflash_store::Entry::new(Bytes::from(vec![9; 3000]));
            view.put(Bytes::from_static(b"in flight"), entry).unwrap();
            stores[0].commit(view).await.unwrap();
            runtime.sleep_until(runtime.now() + random.below(2_000_000)).await;
        });
        device.power_cut(at, round).unwrap();
        model.entries.remove(&b"in flight"[..]);
        session(&device, async |stores, _| {
            model.delete(&stores[0], Bytes::from_static(b"in flight")).await;
        });
    }
}
