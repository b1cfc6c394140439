//! Acknowledged writes are found after a restart, after a clean stop or a crash.

#![expect(clippy::print_stdout, reason = "the seed of a random test is printed")]

use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_store::{Durability, Entry, StoreError};
use softflash_testing::model::{key, value};
use softflash_testing::{Bed, Model};
use std::time::Duration;

fn seed() -> u64 {
    let seed = std::env::var("SOFTFLASH_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(20_261_121);
    println!("seed {seed}: replay with SOFTFLASH_SEED={seed}");
    seed
}

fn small_bed(shards: u16, slices: u16) -> Bed {
    let mut bed = Bed::new(shards, slices, 4, 24, 1 << 20);
    bed.options.memory_bytes = 4 << 20;
    bed
}

#[test]
fn a_value_is_found_immediately_and_after_restarts() {
    let bed = small_bed(1, 1);
    let mut model = Model::default();
    bed.run(async |stores, _| {
        model.put(&stores[0], Bytes::from_static(b"k"), Bytes::from_static(b"v")).await;
        model.compare(&stores[0]).await;
    });
    bed.crash(async |stores, _| {
        model.compare(&stores[0]).await;
        model.put(&stores[0], Bytes::new(), Bytes::new()).await;
    });
    bed.run(async |stores, _| model.compare(&stores[0]).await);
    let report = bed.check();
    assert!(report.ok, "{report:?}");
}

#[test]
fn a_random_history_survives_crashes() {
    for (shards, slices) in [(1, 1), (2, 3)] {
        let bed = small_bed(shards, slices);
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
                bed.crash(&mut session)
            } else {
                bed.run(&mut session)
            }
            let report = bed.check();
            assert!(report.ok, "round {round}: {report:?}");
        }
    }
}

#[test]
fn large_values_are_read_back_whole() {
    let mut bed = Bed::new(1, 1, 4, 24, 8 << 20);
    bed.options.memory_bytes = 256 << 20;
    let mut random = Rng::seeded(seed());
    let mut model = Model::default();
    let sizes = [0, 1, 4095, 4096, 65_536, 1 << 20, (1 << 20) + 1, 9 << 20, 64 << 20];
    bed.crash(async |stores, _| {
        for (number, size) in sizes.into_iter().enumerate() {
            let mut bytes = vec![0u8; size];
            bytes.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            model.put(&stores[0], key(number as u64), Bytes::from(bytes)).await;
        }
        model.compare(&stores[0]).await;
    });
    bed.run(async |stores, _| {
        model.compare(&stores[0]).await;
        let long = Bytes::from(vec![b'k'; 65_536]);
        model.put(&stores[0], long.clone(), Bytes::from_static(b"v")).await;
        let mut transaction = stores[0].begin();
        let too_long = Bytes::from(vec![b'k'; 65_537]);
        let refused = transaction.put(too_long, Entry::default());
        assert!(matches!(refused, Err(StoreError::KeyTooLong { .. })), "{refused:?}");
    });
    bed.run(async |stores, _| model.compare(&stores[0]).await);
    assert!(bed.check().ok);
}

#[test]
fn with_interval_durability_a_clean_stop_keeps_all_writes() {
    let mut bed = small_bed(1, 2);
    bed.options.durability = Durability::Interval(Duration::from_millis(50));
    let mut random = Rng::seeded(seed());
    let mut model = Model::default();
    bed.run(async |stores, _| {
        for _ in 0..2000 {
            let value = value(&mut random, 2000);
            model.put(&stores[0], key(random.below(500)), value).await;
        }
    });
    bed.run(async |stores, _| model.compare(&stores[0]).await);
}
