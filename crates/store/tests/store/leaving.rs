//! Units leave a store while it is in use, and belong to somebody else from then on: nothing is
//! lost, not even by power cuts while they are emptied.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends at the first error, and prints its seed"
)]

use super::mirror_support::{self, Mirror};
use super::repair_support::{SUPERBLOCK, flip, patches};
use super::small_devices::{config, testbed, write};
use bytes::Bytes;
use futures_util::future::{Either, select};
use softflash_base::UnitSet;
use softflash_base::random::Rng;
use softflash_device::Device;
use softflash_flash::erase_units;
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_store::{Store, StoreError, StoreLayout, open_all};
use softflash_testing::model::{key, value};
use softflash_testing::{Model, Testbed, VirtualTestbed};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

const KEYS: u64 = 600;
const MOST_BYTES: u64 = 12_000;

/// A store on so many units, with values of all sizes in its tree, or the larger ones outside.
fn half_full(seed: u64, layout: StoreLayout, threshold: Option<usize>) -> (VirtualTestbed, Model) {
    println!("seed {seed}: {layout:?}, values from {threshold:?}");
    let units = layout.units[0].len() as u16;
    let testbed = testbed(config(units, 64), layout, threshold);
    let (mut model, mut rng) = (Model::default(), Rng::seeded(seed));
    testbed.session(async |stores, _| {
        for number in 0..KEYS {
            model.put(&stores[0], key(number), value(&mut rng, MOST_BYTES)).await;
        }
    });
    (testbed, model)
}

/// Changes keys until `until` completes; returns its output.
async fn work_until<T>(
    store: &Store,
    model: &mut Model,
    rng: &mut Rng,
    until: impl Future<Output = T>,
) -> T {
    let mut until = pin!(until);
    loop {
        let change = async {
            let number = key(rng.below(KEYS));
            match rng.chance(0.1) {
                true => model.delete(store, number).await,
                false => model.put(store, number, value(rng, MOST_BYTES)).await,
            }
        };
        match select(until, pin!(change)).await {
            Either::Left((output, change)) => {
                change.await;
                return output;
            }
            Either::Right(((), still)) => until = still,
        }
    }
}

async fn drain(store: &Store, units: &UnitSet) -> Result<(), StoreError> {
    store.drain_units(units).await
}

/// Another owner can have the units: they are erased.
async fn erase(testbed: &VirtualTestbed, units: &UnitSet, epoch: u32, runtime: &RuntimeHandle) {
    let device: Arc<dyn Device> = Arc::clone(&testbed.device) as Arc<dyn Device>;
    let queue = device.open_queue_pair(units).unwrap();
    erase_units(queue, epoch, runtime.clone()).await.unwrap();
}

/// Units leave under writes; the table changes, they are erased, join again, and leave again.
fn units_come_and_go(copies: u8, parity: u8, units: u16, leaving: &str, threshold: Option<usize>) {
    let seed = 0x1ea7 + u64::from(copies) + u64::from(parity) + u64::from(threshold.is_some());
    let layout = StoreLayout { copies, parity, ..StoreLayout::new(1, 4, units) };
    let (mut testbed, mut model) = half_full(seed, layout, threshold);
    let (leaving, all): (UnitSet, _) = (leaving.parse().unwrap(), UnitSet::from(0..units));
    let rest: UnitSet = all.iter().filter(|unit| !leaving.contains(*unit)).collect();
    let mut rng = Rng::seeded(!seed);
    for round in 0..2 {
        testbed.session(async |stores, runtime| {
            let store = &stores[0];
            assert!(store.bytes_on(&leaving) > 0);
            work_until(store, &mut model, &mut rng, drain(store, &leaving)).await.unwrap();
            assert_eq!(store.bytes_on(&leaving), 0);
            let late = runtime.sleep_until(runtime.now() + Duration::from_secs(1));
            work_until(store, &mut model, &mut rng, late).await;
            assert_eq!(store.bytes_on(&leaving), 0, "a drained unit takes no data");
            store.leave_units(&leaving).await.unwrap();
            assert_eq!(store.units().await.unwrap().len(), rest.len());
            erase(&testbed, &leaving, 2 * round, runtime).await;
            model.compare(store).await;
            let late = runtime.sleep_until(runtime.now() + Duration::from_secs(1));
            work_until(store, &mut model, &mut rng, late).await;
        });
        testbed.layout.units = vec![rest.clone()];
        testbed.layout.epoch = 2 * round + 1;
        testbed.session(async |stores, runtime| {
            let store = &stores[0];
            model.compare(store).await;
            let late = runtime.sleep_until(runtime.now() + Duration::from_secs(1));
            work_until(store, &mut model, &mut rng, late).await;
            erase(&testbed, &leaving, 2 * round + 1, runtime).await;
            let queue = testbed.device.open_queue_pair(&leaving).unwrap();
            store.join_units(queue, 2 * round + 2).await.unwrap();
            let late = runtime.sleep_until(runtime.now() + Duration::from_secs(2));
            work_until(store, &mut model, &mut rng, late).await;
            assert!(store.bytes_on(&leaving) > 0, "a unit that comes back takes data");
        });
        testbed.layout.units = vec![all.clone()];
        testbed.layout.epoch = 2 * round + 2;
    }
    testbed.session(async |stores, _| {
        model.compare(&stores[0]).await;
        stores[0].close().await.unwrap();
    });
}

#[test]
fn units_leave_a_store_and_come_back() {
    units_come_and_go(1, 0, 4, "1,3", None);
}

#[test]
fn units_leave_a_store_with_separated_values_and_come_back() {
    units_come_and_go(1, 0, 4, "0,2", Some(3000));
}

#[test]
fn units_leave_a_store_with_two_copies_and_come_back() {
    units_come_and_go(2, 0, 5, "0,4", None);
    units_come_and_go(2, 0, 5, "1", Some(3000));
}

#[test]
fn units_leave_a_store_with_parity_and_come_back() {
    units_come_and_go(1, 3, 6, "2,5", None);
    units_come_and_go(1, 2, 4, "0", Some(3000));
}

/// Nobody writes: each unit is emptied nevertheless, the open segment of the log with it.
#[test]
fn units_of_an_idle_store_are_emptied() {
    for (copies, parity, threshold) in
        [(1, 0, None), (1, 0, Some(3000)), (2, 0, None), (1, 2, None)]
    {
        let layout = StoreLayout { copies, parity, ..StoreLayout::new(1, 4, 5) };
        let (testbed, model) = half_full(11, layout, threshold);
        testbed.session(async |stores, runtime| {
            let store = &stores[0];
            for unit in 0..5 {
                let units = UnitSet::from(unit..unit + 1);
                let late = runtime.sleep_until(runtime.now() + Duration::from_secs(600));
                let drained = select(Box::pin(drain(store, &units)), late).await;
                assert!(
                    matches!(drained, Either::Left((Ok(()), _))),
                    "unit {unit} has {} bytes left",
                    store.bytes_on(&units)
                );
                store.keep_units(&units);
            }
            model.compare(store).await;
        });
    }
}

/// The power fails while units are emptied, again and again, and between that and the change of the
/// table.
#[test]
fn power_cuts_while_units_are_emptied_lose_nothing() {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = std::env::var("SOFTFLASH_SEED").map_or(now, |seed| seed.parse().unwrap());
    println!("replay with SOFTFLASH_SEED={seed}");
    for (copies, parity, threshold) in
        [(1, 0, None), (1, 0, Some(3000)), (2, 0, None), (1, 2, None)]
    {
        let layout = StoreLayout { copies, parity, ..StoreLayout::new(1, 4, 5) };
        let (testbed, mut model) = half_full(seed, layout, threshold);
        let mut rng = Rng::seeded(!seed);
        for _ in 0..8 {
            let leaving = UnitSet::from(0..1 + rng.below(2) as u16);
            testbed.session(async |stores, runtime| {
                let store = &stores[0];
                model.compare(store).await;
                let cut = Duration::from_micros(rng.below(1_500_000));
                let cut = runtime.sleep_until(runtime.now() + cut);
                let both = select(Box::pin(drain(store, &leaving)), cut);
                work_until(store, &mut model, &mut rng, both).await;
            });
        }
        testbed.session(async |stores, _| model.compare(&stores[0]).await);
    }
}

#[test]
fn units_whose_data_fit_nowhere_else_stay_and_take_data() {
    let (testbed, mut model) = half_full(7, StoreLayout::new(1, 4, 2), None);
    testbed.session(async |stores, _| {
        let store = &stores[0];
        let mut number = KEYS;
        let mut rng = Rng::seeded(7);
        loop {
            let value = value(&mut rng, MOST_BYTES);
            match write(store, number, Some(value.clone())).await {
                Ok(()) => model.put(store, key(number), value).await,
                Err(StoreError::OutOfSpace) => break,
                Err(error) => unreachable!("{error}"),
            }
            number += 1;
        }
        let leaving = UnitSet::from(1..2);
        let refused = store.drain_units(&leaving).await.unwrap_err();
        let text = refused.to_string();
        assert!(matches!(refused, StoreError::NotDrained { .. }), "{text}");
        assert!(
            text.contains("the units 1 cannot leave") && text.contains("delete keys"),
            "{text}"
        );
        let early = store.leave_units(&leaving).await.unwrap_err().to_string();
        assert!(early.contains("they were not drained"), "{early}");
        let other = store.drain_units(&UnitSet::from(1..3)).await.unwrap_err().to_string();
        assert!(other.contains("shard 0") && other.contains("has the units 0-1"), "{other}");
        for number in 0..number / 2 {
            model.delete(store, key(number)).await;
        }
        let before = store.bytes_on(&leaving);
        for number in 0..200 {
            model.put(store, key(number), Bytes::from(vec![9; 9000])).await;
        }
        assert!(store.bytes_on(&leaving) > 0, "{before} bytes before");
        model.compare(store).await;
    });
}

/// A store on two units, its patches, and the unit of the first one.
fn with_patches() -> (Testbed, Model, Vec<super::repair_support::FoundPatch>, UnitSet) {
    let mut testbed = Testbed::new(1, 1, 2, 64, SUPERBLOCK);
    testbed.options.memory_bytes = 32 << 20;
    testbed.options.value_threshold = None;
    let (mut model, mut rng) = (Model::default(), Rng::seeded(21));
    let places = testbed.run(async |stores, _| {
        for number in 0..200 {
            model.put(&stores[0], key(number), value(&mut rng, MOST_BYTES)).await;
        }
        stores[0].flush().await.unwrap();
        let blocks = stores[0].blocks();
        let ids = blocks.ids().into_iter();
        ids.map(|id| (id.0, blocks.superblocks(id)[0].unit.0)).collect::<BTreeMap<u64, u16>>()
    });
    let ids: Vec<u64> = places.keys().copied().collect();
    let found = patches(&testbed, &ids, SUPERBLOCK);
    let unit = places[&found[0].block];
    (testbed, model, found, UnitSet::from(unit..unit + 1))
}

/// A patch whose keys nobody knows would vanish without a word: what it hides would be read.
#[test]
fn a_lost_patch_keeps_its_unit() {
    let (testbed, model, found, unit) = with_patches();
    flip(&testbed, found[0].filter());
    testbed.run(async |stores, _| {
        let refused = stores[0].drain_units(&unit).await.unwrap_err().to_string();
        assert!(
            refused.contains("cannot be read") && refused.contains("`softflash check --repair`"),
            "{refused}"
        );
        assert!(stores[0].blocks().contains(softflash_blocks::BlockId(found[0].block)));
        let mut reports = 0;
        for number in 0..200 {
            let read = stores[0].begin().get(&key(number)).await;
            reports += u32::from(matches!(read, Err(StoreError::DataLoss(_))));
        }
        assert!(reports > 0, "the loss is reported as before");
    });
    flip(&testbed, found[0].filter());
    testbed.run(async |stores, _| model.compare(&stores[0]).await);
}

/// The drain ends with the block's name, and merges go on meanwhile.
#[test]
fn a_patch_with_damaged_data_ends_the_drain() {
    let (testbed, model, found, unit) = with_patches();
    flip(&testbed, found[0].data() + 1000);
    // It waits for a minute.
    let executor = VirtualExecutor::new(1_000_000);
    let runtime = executor.handle();
    executor.block_on(async {
        let opened = open_all(testbed.device(), &testbed.layout, &testbed.options, &runtime);
        let stores = opened.await.unwrap();
        let refused = stores[0].drain_units(&unit).await.unwrap_err().to_string();
        let block = softflash_blocks::BlockId(found[0].block).to_string();
        assert!(refused.contains("have not moved") && refused.contains(&block), "{refused}");
        assert!(stores[0].bytes_on(&unit) > 0);
        stores[0].close().await.unwrap();
    });
    drop(executor);
    flip(&testbed, found[0].data() + 1000);
    testbed.run(async |stores, _| model.compare(&stores[0]).await);
}

/// Of three units with two copies one is lost: neither of the others can leave.
#[test]
fn units_that_redundancy_needs_stay() {
    for parity in [false, true] {
        let mirror = match parity {
            false => Mirror::new(1, 3),
            true => Mirror::with_parity(1, 4, 2),
        };
        let (mut model, mut rng) = (Model::default(), Rng::seeded(22));
        mirror.session(async |stores, runtime| {
            mirror_support::write(stores, &mut model, &mut rng, 300).await;
            mirror.kill(0);
            mirror_support::write_more(stores, &mut model, &mut rng, 300).await;
            mirror_support::rebuilt(&stores[0], runtime).await;
            let leaving = UnitSet::from(2..if parity { 4 } else { 3 });
            let refused = stores[0].drain_units(&leaving).await.unwrap_err().to_string();
            assert!(refused.contains("lost or worn out"), "{refused}");
            mirror_support::write_more(stores, &mut model, &mut rng, 100).await;
            model.compare(&stores[0]).await;
        });
    }
}
