//! Shards whose units are not neighbours, on a file device.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_base::{UnitId, UnitSet};
use softflash_flash::Flash;
use softflash_ftl::FtlConfig;
use softflash_runtime::RealExecutor;
use softflash_store::{Durability, StoreOptions, open_all};
use softflash_testing::model::key;
use softflash_testing::{Model, Testbed};
use std::time::Duration;

const SPARE: u16 = 4;

/// Two shards on five of six units.
fn testbed(sets: [&str; 2]) -> Testbed {
    let mut testbed = Testbed::new(2, 4, 6, 32, 1 << 20);
    testbed.layout.units = sets.iter().map(|set| set.parse().unwrap()).collect();
    testbed.options = StoreOptions { memory_bytes: 4 << 20, ..StoreOptions::default() };
    testbed
}

/// Whether a unit has never been written.
fn is_new(testbed: &Testbed, unit: u16) -> bool {
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    executor.block_on(async {
        let queue = testbed.device().open_queue_pair(&UnitSet::from(unit..unit + 1)).unwrap();
        let config = FtlConfig { erased_target: 0, ..FtlConfig::default() };
        let (flash, inventory) = Flash::mount(queue, config, runtime).await.unwrap();
        flash.stop();
        inventory.superblocks.is_empty() && flash.newest_generation(unit) == 0
    })
}

#[test]
fn shards_on_units_that_are_not_neighbours_keep_their_data() {
    let mut testbed = testbed(["0,2,5", "1,3"]);
    assert_eq!(testbed.layout.problem(), None);
    let at_once = testbed.options.durability;
    let (mut model, mut rng) = (Model::default(), Rng::seeded(7));
    testbed.options.durability = Durability::Interval(Duration::from_secs(1));
    for round in 0..3 {
        testbed.run(async |stores, _| {
            model.compare(&stores[0]).await;
            for _ in 0..3000 {
                let value = Bytes::from(vec![round; 2000 + rng.below(6000) as usize]);
                model.put(&stores[0], key(rng.below(1500)), value).await;
            }
            let units = stores[0].units().await.unwrap();
            let ids: Vec<_> = units.iter().map(|unit| unit.unit).collect();
            assert_eq!(ids, [0, 2, 5, 1, 3].map(UnitId));
            assert!(units.iter().all(|unit| unit.bytes_programmed > 0), "each unit takes data");
        });
    }
    testbed.options.durability = at_once;
    testbed.crash(async |stores, _| {
        for number in 0..50 {
            model.put(&stores[0], key(number), Bytes::from("the last value")).await;
        }
    });
    testbed.run(async |stores, _| model.compare(&stores[0]).await);
    let report = testbed.check();
    assert!(report.ok, "{report:?}");
    assert!(is_new(&testbed, SPARE) && !is_new(&testbed, 5), "a unit of nobody stays as it was");
}

#[test]
fn shards_with_a_common_unit_are_refused() {
    let testbed = testbed(["0,2,5", "1-2"]);
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    let opened = executor.block_on(async {
        open_all(testbed.device(), &testbed.layout, &testbed.options, &runtime).await
    });
    let refused = opened.err().unwrap().to_string();
    assert!(refused.contains("unit 2 belongs to shard 0 and to shard 1"), "{refused}");
}
