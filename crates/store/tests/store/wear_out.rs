//! Flash that wears out block by block: writes continue while any unit takes them, and are then
//! refused with the reason; reads continue.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests end at the first error"
)]

use bytes::Bytes;
use softflash_base::UnitId;
use softflash_device::{Device, ModelConfig, ModelDevice};
use softflash_ftl::UnitState;
use softflash_store::layout::split;
use softflash_store::{Entry, Store, StoreError};
use softflash_testing::VirtualTestbed;
use softflash_testing::model::key;
use std::sync::Arc;

const KEYS: u64 = 16;

async fn put(store: &Store, number: u64, value: u64) -> Result<(), StoreError> {
    let mut transaction = store.begin();
    transaction.put(key(number), Entry::new(Bytes::from(vec![value as u8; 20_000])))?;
    let token = store.commit(transaction).await?;
    store.durable(&token).await
}

/// Units of 100 superblocks; each erase may make its superblock bad.
fn testbed(channels: u16, seed: u64) -> VirtualTestbed {
    let mut config = ModelConfig::model();
    config.array.geometry.channels = channels;
    config.array.geometry.chips_per_channel = 1;
    config.array.geometry.planes_per_die = 1;
    config.array.geometry.blocks_per_plane = 100;
    config.array.geometry.pages_per_block = 64;
    config.faults.erase_failure = 0.05;
    config.seed = seed;
    let device = Arc::new(ModelDevice::in_memory(config).unwrap());
    let mut testbed = VirtualTestbed { device, ..VirtualTestbed::new(1, 100) };
    testbed.layout.units = split(testbed.device.info().units, testbed.layout.shards);
    testbed
}

/// Units with half of their superblocks bad.
fn worn_units(testbed: &VirtualTestbed) -> usize {
    let all = testbed.device.info().all_units();
    let queue = testbed.device.open_queue_pair(&all).unwrap();
    all.iter().filter(|unit| queue.bad_blocks(UnitId(*unit)).len() >= 50).count()
}

/// Each key holds the last acknowledged write, or the one write after it, whose outcome is unknown.
async fn check(store: &Store, acknowledged: u64) {
    for number in 0..KEYS {
        let entry = store.begin().get(&key(number)).await.unwrap().expect("a key is lost");
        let last = (0..=acknowledged).rev().find(|value| value % KEYS == number).unwrap_or(number);
        let found = entry.value.to_bytes();
        let possible = [last as u8, (last + KEYS) as u8];
        assert!(found.iter().all(|byte| *byte == found[0]), "key {number} is mixed");
        assert!(possible.contains(&found[0]), "key {number}: {} of {possible:?}", found[0]);
        assert!(found[0] == last as u8 || last + KEYS == acknowledged + 1, "key {number}");
    }
}

/// Overwrites keys in cyclic order until a write is refused. Returns the number of acknowledged
/// writes, the number of them while a unit was worn out, and the refusal.
async fn wear(store: &Store) -> (u64, u64, StoreError) {
    let (mut written, mut with_worn_units) = (0, 0);
    loop {
        let units = store.units().await.unwrap();
        let worn = units.iter().any(|unit| unit.state == UnitState::ReadOnly);
        if let Err(refusal) = put(store, written % KEYS, written).await {
            return (written, with_worn_units, refusal);
        }
        written += 1;
        with_worn_units += u64::from(worn);
    }
}

#[test]
fn worn_out_flash_stays_readable() {
    for seed in 0..3 {
        println!("seed {seed}");
        let testbed = testbed(1, seed);
        let (written, _) = testbed.session(async |stores, _| {
            let (written, _, refusal) = wear(&stores[0]).await;
            assert_eq!(refusal, StoreError::WornOut { bad: 50, total: 100 });
            check(&stores[0], written - 1).await;
            written
        });
        assert_eq!(worn_units(&testbed), 1);
        for _ in 0..2 {
            testbed.session(async |stores, _| {
                check(&stores[0], written - 1).await;
                let refusal = put(&stores[0], 0, 0).await.unwrap_err();
                assert_eq!(refusal, StoreError::WornOut { bad: 50, total: 100 });
            });
        }
    }
}

#[test]
fn other_units_take_the_writes_that_a_worn_out_unit_refuses() {
    for seed in 0..3 {
        println!("seed {seed}");
        let testbed = testbed(4, seed);
        let (written, _) = testbed.session(async |stores, _| {
            let (written, with_worn_units, refusal) = wear(&stores[0]).await;
            assert!(with_worn_units > 100, "{with_worn_units}, then {refusal}");
            check(&stores[0], written - 1).await;
            written
        });
        testbed.session(async |stores, _| check(&stores[0], written - 1).await);
    }
}
