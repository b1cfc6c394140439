//! The same store on a modelled flash array in virtual time: deterministic, and safe through power
//! cuts.

use bytes::Bytes;
use softflash_base::UnitId;
use softflash_base::random::Rng;
use softflash_device::{Device, ModelConfig, ModelDevice};
use softflash_store::Store;
use softflash_testing::model::{key, value};
use softflash_testing::{Model, VirtualTestbed};
use std::sync::Arc;

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
        let testbed = VirtualTestbed::new(2, 40);
        let mut random = Rng::seeded(seed);
        let mut model = Model::default();
        testbed.session(async |stores, _| {
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
    let testbed = VirtualTestbed::new(2, 40);
    let mut random = Rng::seeded(seed);
    let mut model = Model::default();
    for round in 0..8 {
        let count = 50 + random.below(100);
        let ((), at) = testbed.session(async |stores, runtime| {
            model.compare(&stores[0]).await;
            write_some(&mut model, &mut random, stores, count).await;
            // One more write without acknowledgement, so that a command is under way.
            let mut transaction = stores[0].begin();
            let entry = softflash_store::Entry::new(Bytes::from(vec![9; 3000]));
            transaction.put(Bytes::from_static(b"in flight"), entry).unwrap();
            stores[0].commit(transaction).await.unwrap();
            runtime.sleep_until(runtime.now() + random.below(2_000_000)).await;
        });
        testbed.device.power_cut(at, round).unwrap();
        model.entries.remove(&b"in flight"[..]);
        testbed.session(async |stores, _| {
            model.delete(&stores[0], Bytes::from_static(b"in flight")).await;
        });
    }
}

#[test]
fn the_log_continues_in_other_blocks_when_some_fail() {
    let mut failed_blocks = 0;
    for seed in 0..12 {
        println!("seed {seed}");
        let mut config = ModelConfig::model();
        // Segments of 14 pages, so that many of the failures hit the checkpoint at the start of a
        // segment.
        config.array.geometry.chips_per_channel = 1;
        config.array.geometry.planes_per_die = 1;
        config.array.geometry.blocks_per_plane = 400;
        config.array.geometry.pages_per_block = 16;
        config.faults.program_failure = 3e-3;
        config.faults.erase_failure = 3e-3;
        config.seed = seed;
        let testbed = VirtualTestbed {
            device: Arc::new(ModelDevice::in_memory(config).unwrap()),
            ..VirtualTestbed::new(2, 400)
        };
        let (mut model, mut random) = (Model::default(), Rng::seeded(seed));
        for _ in 0..2 {
            testbed.session(async |stores, _| {
                model.compare(&stores[0]).await;
                write_some(&mut model, &mut random, stores, 250).await;
            });
        }
        testbed.session(async |stores, _| model.compare(&stores[0]).await);
        let all = testbed.device.info().all_units();
        let queue = testbed.device.open_queue_pair(&all).unwrap();
        failed_blocks += all.iter().map(|unit| queue.bad_blocks(UnitId(unit)).len()).sum::<usize>();
    }
    assert!(failed_blocks > 12, "{failed_blocks} blocks failed");
}
