//! Acknowledged writes are found after a restart, after a clean stop or a crash.

#![expect(clippy::print_stdout, reason = "the seed of a random test is printed")]

use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_store::{Durability, Entry, StoreError};
use softflash_testing::model::{key, value};
use softflash_testing::{Model, Testbed};
use std::time::Duration;

fn seed() -> u64 {
    let seed = std::env::var("SOFTFLASH_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(20_261_121);
    println!("seed {seed}: replay with SOFTFLASH_SEED={seed}");
    seed
}

fn small_testbed(shards: u16, slices: u16) -> Testbed {
    let mut testbed = Testbed::new(shards, slices, 4, 24, 1 << 20);
    testbed.options.memory_bytes = 4 << 20;
    testbed
}

#[test]
fn a_value_is_found_immediately_and_after_restarts() {
    let testbed = small_testbed(1, 1);
    let mut model = Model::default();
    testbed.run(async |stores, _| {
        model.put(&stores[0], Bytes::from_static(b"k"), Bytes::from_static(b"v")).await;
        model.compare(&stores[0]).await;
    });
    testbed.crash(async |stores, _| {
        model.compare(&stores[0]).await;
        model.put(&stores[0], Bytes::new(), Bytes::new()).await;
    });
    testbed.run(async |stores, _| model.compare(&stores[0]).await);
    let report = testbed.check();
    assert!(report.ok, "{report:?}");
}

#[test]
fn a_random_history_survives_crashes() {
    for (shards, slices) in [(1, 1), (2, 3)] {
        let testbed = small_testbed(shards, slices);
        let mut random = Rng::seeded(seed());
        let mut model = Model::default();
        for round in 0..6 {
            let mut session = async |stores: &[softflash_store::Store], _: &_| {
                model.compare(&stores[0]).await;
                for _ in 0..250 {
                    let key = key(random.below(400));
                    if random.chance(0.2) {
                        model.delete(&stores[0], key).await;
                    } else {
                        let value = value(&mut random, 12_000);
                        model.put(&stores[0], key, value).await;
                    }
                }
                model.compare(&stores[0]).await;
            };
            if round % 2 == 0 {
                testbed.crash(&mut session)
            } else {
                testbed.run(&mut session)
            }
            let report = testbed.check();
            assert!(report.ok, "round {round}: {report:?}");
        }
    }
}

#[test]
fn large_values_are_read_back_whole() {
    let mut testbed = Testbed::new(1, 1, 4, 24, 8 << 20);
    testbed.options.memory_bytes = 256 << 20;
    let mut random = Rng::seeded(seed());
    let mut model = Model::default();
    let sizes = [0, 1, 4095, 4096, 65_536, 1 << 20, (1 << 20) + 1, 9 << 20, 64 << 20];
    testbed.crash(async |stores, _| {
        for (number, size) in sizes.into_iter().enumerate() {
            let mut bytes = vec![0u8; size];
            bytes.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            model.put(&stores[0], key(number as u64), Bytes::from(bytes)).await;
        }
        model.compare(&stores[0]).await;
    });
    testbed.run(async |stores, _| {
        model.compare(&stores[0]).await;
        let long = Bytes::from(vec![b'k'; 65_536]);
        model.put(&stores[0], long.clone(), Bytes::from_static(b"v")).await;
        let mut transaction = stores[0].begin();
        let too_long = Bytes::from(vec![b'k'; 65_537]);
        let refused = transaction.put(too_long, Entry::default());
        assert!(matches!(refused, Err(StoreError::KeyTooLong { .. })), "{refused:?}");
    });
    testbed.run(async |stores, _| model.compare(&stores[0]).await);
    assert!(testbed.check().ok);
}

#[test]
fn with_interval_durability_a_clean_stop_keeps_all_writes() {
    let mut testbed = small_testbed(1, 2);
    testbed.options.durability = Durability::Interval(Duration::from_millis(50));
    let mut random = Rng::seeded(seed());
    let mut model = Model::default();
    testbed.run(async |stores, _| {
        for _ in 0..2000 {
            let value = value(&mut random, 2000);
            model.put(&stores[0], key(random.below(500)), value).await;
        }
    });
    testbed.run(async |stores, _| model.compare(&stores[0]).await);
}
