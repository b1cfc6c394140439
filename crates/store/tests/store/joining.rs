//! Units join a store that is full, while it is in use; the next start has them by its layout.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test ends at the first error, and prints its seed"
)]

use super::small_devices::{config, testbed, write};
use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_base::{ShardId, UnitSet};
use softflash_device::Device;
use softflash_flash::erase_units;
use softflash_runtime::RuntimeHandle;
use softflash_store::{Store, StoreError, StoreLayout};
use softflash_testing::VirtualTestbed;
use softflash_testing::model::key;
use std::sync::Arc;

const VALUE_BYTES: usize = 6000;
const EPOCH: u32 = 1;

fn value_of(seed: u64, number: u64) -> Bytes {
    let mut bytes = vec![0; VALUE_BYTES];
    Rng::seeded(seed ^ number).fill(&mut bytes);
    bytes.into()
}

/// Writes keys from `first` on until the store is full; returns the number of the next one.
async fn fill(store: &Store, seed: u64, first: u64) -> u64 {
    let mut number = first;
    loop {
        match write(store, number, Some(value_of(seed, number))).await {
            Ok(()) => number += 1,
            Err(StoreError::OutOfSpace) => return number,
            Err(error) => panic!("key {number}: {error}"),
        }
    }
}

async fn join(testbed: &VirtualTestbed, store: &Store, units: &UnitSet, runtime: &RuntimeHandle) {
    let device: Arc<dyn Device> = Arc::clone(&testbed.device) as Arc<dyn Device>;
    let queue = device.open_queue_pair(units).unwrap();
    erase_units(queue, EPOCH - 1, runtime.clone()).await.unwrap();
    store.join_units(device.open_queue_pair(units).unwrap(), EPOCH).await.unwrap();
}

async fn compare(store: &Store, seed: u64, keys: u64) {
    for number in 0..keys {
        let found = store.begin().get(&key(number)).await.unwrap();
        let found = found.map(|entry| entry.value.to_bytes());
        assert!(found == Some(value_of(seed, number)), "key {number}");
    }
}

fn full_store_gets_units(copies: u8, parity: u8, had: u16) {
    let seed = 0x0109 + u64::from(copies) + u64::from(parity);
    println!("seed {seed:#x}");
    let mut testbed = testbed(
        config(2 * had, 48),
        StoreLayout { copies, parity, ..StoreLayout::new(1, 4, had) },
        None,
    );
    let (old, new) = (UnitSet::from(0..had), UnitSet::from(had..2 * had));
    testbed.layout.units = vec![old.clone()];
    let (keys, _) = testbed.session(async |stores, runtime| {
        let store = &stores[0];
        let full = fill(store, seed, 0).await;
        assert_eq!(store.units().await.unwrap().len(), usize::from(had));
        let usable = store.stats().await.unwrap().usable_bytes;
        join(&testbed, store, &new, runtime).await;
        assert_eq!(store.units().await.unwrap().len(), usize::from(2 * had));
        assert!(store.stats().await.unwrap().usable_bytes > usable / 10 * 19);
        let keys = fill(store, seed, full).await;
        assert!(keys > full / 10 * 18, "full with {full} keys, and with {keys} after the growth");
        compare(store, seed, keys).await;
        let units = store.units().await.unwrap();
        let used = |unit: u16| units.iter().any(|it| it.unit.0 == unit && it.space.live > 8);
        assert!(new.iter().all(used), "{units:?}");
        keys
    });
    // As after a kill: the table has given the units to the shard.
    testbed.layout.units = vec![old.iter().chain(&new).collect()];
    testbed.layout.epoch = EPOCH;
    assert_eq!(testbed.layout.units_of(ShardId(0)).len(), usize::from(2 * had));
    testbed.session(async |stores, _| {
        compare(&stores[0], seed, keys).await;
        stores[0].close().await.unwrap();
    });
    testbed.session(async |stores, _| compare(&stores[0], seed, keys).await);
}

#[test]
fn a_full_store_takes_as_much_again_on_units_that_join_it() {
    full_store_gets_units(1, 0, 2);
}

#[test]
fn a_full_store_with_two_copies_uses_units_that_join_it() {
    full_store_gets_units(2, 0, 2);
}

#[test]
fn a_full_store_with_parity_uses_units_that_join_it() {
    full_store_gets_units(1, 2, 3);
}

#[test]
fn units_do_not_join_a_store_that_has_closed() {
    let mut testbed = testbed(config(4, 48), StoreLayout::new(1, 4, 2), None);
    testbed.layout.units = vec![UnitSet::from(0..2)];
    testbed.session(async |stores, _| {
        stores[0].close().await.unwrap();
        let queue = testbed.device.open_queue_pair(&UnitSet::from(2..4)).unwrap();
        let refused = stores[0].join_units(queue, EPOCH).await;
        assert_eq!(refused, Err(StoreError::Closed));
    });
}
