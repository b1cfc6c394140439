//! Changes every byte that a store has written, one at a time: the offline check reports the
//! change, or the change has no effect.

#![expect(clippy::unwrap_used, reason = "tests end at the first error")]

use softflash_base::random::Rng;
use softflash_device::{Device, ModelConfig, ModelDevice};
use softflash_runtime::VirtualExecutor;
use softflash_store::check::{CheckReport, Progress, check};
use softflash_store::{StoreLayout, StoreOptions, open_all};
use softflash_testing::faulty::{Faults, FaultyDevice};
use softflash_testing::model::{key, value};
use softflash_testing::{Model, VirtualTestbed};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// A page: its unit, block and number. Superblocks have one block here.
type Page = (u16, u32, u32);

/// Bytes of a page.
const PAGE: usize = 4096;

/// A store with patches of flushes and compactions, values in value blocks, some in fragments, some
/// moved, and a log with events of all kinds, closed.
fn written() -> (VirtualTestbed, Model) {
    let mut config = ModelConfig::model();
    let geometry = &mut config.array.geometry;
    (geometry.channels, geometry.chips_per_channel, geometry.planes_per_die) = (2, 1, 1);
    (geometry.blocks_per_plane, geometry.pages_per_block) = (60, 32);
    let device = Arc::new(ModelDevice::in_memory(config).unwrap());
    let units = device.info().units;
    let layout = StoreLayout::new(2, 2, units);
    let options = StoreOptions {
        memory_bytes: 1 << 20,
        value_threshold: Some(3000),
        fragment_bytes: 4500,
        ..StoreOptions::default()
    };
    let testbed = VirtualTestbed { device, layout, options };
    let (mut model, mut random) = (Model::default(), Rng::seeded(5));
    for _ in 0..2 {
        testbed.session(async |stores, _| {
            for number in 0..60 {
                let store = &stores[number % 2];
                model.put(store, key(random.below(50)), value(&mut random, 7000)).await;
                if number % 5 == 0 {
                    model.delete(store, key(random.below(50))).await;
                }
            }
            for store in stores {
                // Moves the values of the session before.
                store.collect_values().await.unwrap();
                store.close().await.unwrap();
            }
        });
    }
    (testbed, model)
}

fn checked(testbed: &VirtualTestbed, faults: &Faults) -> CheckReport {
    let device = Arc::clone(&testbed.device) as Arc<dyn Device>;
    let device = Arc::new(FaultyDevice::new(device, faults.clone()));
    let executor = VirtualExecutor::new(1_000_000);
    executor.block_on(check(device, &testbed.layout, &executor.handle(), &Progress::default()))
}

/// Reads `page` with byte `at` changed by `mask`.
fn changed(page: Page, at: usize, mask: u8) -> Faults {
    let faults = Faults::default();
    faults.alter_reads(move |target, bytes| {
        let here = (target.unit.0, target.blocks[0]) == (page.0, page.1);
        let row = page.2.checked_sub(target.page).filter(|row| here && *row < target.rows);
        if let Some(byte) = row.and_then(|row| bytes.get_mut(row as usize * PAGE + at)) {
            *byte ^= mask;
        }
    });
    faults
}

/// The pages that a check reads.
fn pages_read(testbed: &VirtualTestbed) -> BTreeSet<Page> {
    let (pages, faults) = (Arc::new(Mutex::new(BTreeSet::new())), Faults::default());
    let noted = Arc::clone(&pages);
    faults.alter_reads(move |target, bytes| {
        for (row, bytes) in bytes.chunks(PAGE).enumerate() {
            if bytes.iter().any(|byte| *byte != 0xff) {
                let page = (target.unit.0, target.blocks[0], target.page + row as u32);
                noted.lock().unwrap().insert(page);
            }
        }
    });
    assert!(checked(testbed, &faults).ok);
    let pages = pages.lock().unwrap();
    pages.clone()
}

/// Opens the store with the change and compares all keys; restores the device afterwards.
fn is_harmless(testbed: &VirtualTestbed, model: &Model, faults: &Faults) -> bool {
    let image = testbed.device.image(testbed.device.info().all_units()).unwrap();
    let device = Arc::clone(&testbed.device) as Arc<dyn Device>;
    let device = Arc::new(FaultyDevice::new(device, faults.clone()));
    let executor = VirtualExecutor::new(1_000_000);
    let runtime = executor.handle();
    let right = executor.block_on(async {
        let stores = open_all(device, &testbed.layout, &testbed.options, &runtime).await.unwrap();
        let mut right = true;
        for number in 0..50 {
            let found = stores[0].begin().get(&key(number)).await;
            let found = found.map(|entry| entry.map(|entry| entry.value.to_bytes()));
            right &= found.is_ok_and(|found| found.as_ref() == model.entries.get(&key(number)));
        }
        right
    });
    drop(executor);
    testbed.device.restore(&image).unwrap();
    right
}

#[test]
fn every_changed_byte_is_reported_or_has_no_effect() {
    let thorough = std::env::var_os("SOFTFLASH_THOROUGH").is_some();
    let (testbed, model) = written();
    let pages: Vec<Page> = pages_read(&testbed).into_iter().collect();
    let seed = std::env::var("SOFTFLASH_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    println!("SOFTFLASH_SEED={seed}");
    let mut random = Rng::seeded(seed);
    let all = pages.iter().flat_map(|page| (0..PAGE).map(|at| (*page, at)));
    let places: Vec<(Page, usize)> = match thorough {
        true => all.collect(),
        false => (0..1500)
            .map(|_| {
                (
                    pages[random.below(pages.len() as u64) as usize],
                    random.below(PAGE as u64) as usize,
                )
            })
            .collect(),
    };
    let (mut reported, mut harmless) = (0, 0);
    for (page, at) in &places {
        let faults = changed(*page, *at, 1 << random.below(8));
        if !checked(&testbed, &faults).ok {
            reported += 1;
        } else {
            // Padding, pages of earlier generations, and superseded records.
            harmless += 1;
            if !thorough || random.chance(0.01) {
                assert!(is_harmless(&testbed, &model, &faults), "byte {at} of page {page:?}");
            }
        }
    }
    println!(
        "{} pages, {} bytes changed: {reported} reported, {harmless} harmless",
        pages.len(),
        places.len()
    );
    assert!(reported > places.len() / 4, "{reported} of {}", places.len());
}
