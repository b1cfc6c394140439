//! The store that `serve` runs, on a conventional drive in virtual time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_device::Device;
use softflash_drive::spec::{ControllerSpec, DeviceSpec, LinkSpec, PageMapped};
use softflash_drive::{Drive, DriveCounters, DriveDevice, Extents};
use softflash_runtime::VirtualExecutor;
use softflash_store::{Entry, Store, StoreLayout, StoreOptions, open_all};
use std::collections::BTreeMap;
use std::sync::Arc;

const WALL_MS: u64 = 1_000_000;
const UNITS: u16 = 4;

/// 200 MB of flash in the steady state, with a write buffer and a slow link.
fn device() -> Arc<DriveDevice> {
    let mut array = softflash_nand::presets::small();
    (array.geometry.blocks_per_plane, array.geometry.pages_per_block) = (96, 64);
    let mut spec = DeviceSpec::bare("small", &array);
    spec.link.write_bytes_per_second = 300_000_000;
    spec.link = LinkSpec { read_bytes_per_second: 300_000_000, ..spec.link };
    spec.controller =
        ControllerSpec { write_buffer_bytes: 1 << 20, read_page_ns: 2_000, ..spec.controller };
    let mut drive = Drive::new(&spec, &PageMapped::default(), 15.0).unwrap();
    drive.make_steady(2);
    let cut = Extents { units: UNITS, extent_bytes: 1 << 20, ..Extents::default() };
    Arc::new(DriveDevice::new(drive, &cut, 9).unwrap())
}

/// The result of a run: the end times of both sessions, compactions, and the drive's counters.
#[derive(Debug, PartialEq)]
struct Story {
    ends_ns: [u64; 2],
    compactions: u64,
    counters: DriveCounters,
}

fn key(number: u64) -> Vec<u8> {
    format!("key-{number:05}").into_bytes()
}

fn story(seed: u64) -> Story {
    let device = device();
    let mut expected = BTreeMap::new();
    let mut compactions = 0;
    let ends_ns = [0_u64, 1].map(|session| {
        let executor = VirtualExecutor::new(WALL_MS);
        let runtime = executor.handle();
        let own: Arc<dyn Device> = Arc::clone(&device) as Arc<dyn Device>;
        let layout = StoreLayout::new(2, 2, UNITS);
        let options = StoreOptions { memory_bytes: 8 << 20, ..StoreOptions::default() };
        let expected = &mut expected;
        compactions += executor.block_on(async {
            let stores = open_all(own, &layout, &options, &runtime).await.unwrap();
            verify(&stores, expected).await;
            let mut rng = Rng::seeded(seed + session);
            for _ in 0..4000 {
                let number = rng.below(600);
                let value = rng.next_u64().to_le_bytes().repeat(1 + rng.below(2000) as usize);
                let store = home(&stores, &key(number));
                let mut transaction = store.begin();
                transaction
                    .put(Bytes::from(key(number)), Entry::new(Bytes::from(value.clone())))
                    .unwrap();
                let token = store.commit(transaction).await.unwrap();
                store.durable(&token).await.unwrap();
                expected.insert(key(number), value);
            }
            verify(&stores, expected).await;
            let compactions = stores[0].stats().await.unwrap().compactions;
            for store in &stores {
                store.close().await.unwrap();
            }
            compactions
        });
        runtime.now().0
    });
    device.with_drive(|drive| drive.check().unwrap());
    Story { ends_ns, compactions, counters: device.with_drive(|drive| drive.counters()) }
}

/// The store of the shard that a key belongs to.
fn home<'a>(stores: &'a [Store], key: &[u8]) -> &'a Store {
    let layout = stores[0].layout();
    &stores[layout.shard_of_slice(layout.slice_of(key)).index()]
}

/// Reads every key, alone and in scans.
async fn verify(stores: &[Store], expected: &BTreeMap<Vec<u8>, Vec<u8>>) {
    for (key, value) in expected {
        let mut transaction = home(stores, key).begin();
        let entry = transaction.get(&Bytes::copy_from_slice(key)).await.unwrap().unwrap();
        assert!(entry.value.fragments().concat() == *value);
    }
    let mut scanned = BTreeMap::new();
    for slice in 0..2 {
        let store =
            &stores[stores[0].layout().shard_of_slice(softflash_base::SliceId(slice)).index()];
        let mut after = None;
        loop {
            let page = store.scan(softflash_base::SliceId(slice), after, 50).await.unwrap();
            for (key, entry) in page.items {
                let value = entry.value.fragments().concat();
                scanned.insert(key.to_vec(), value);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    assert!(scanned == *expected, "{} scanned, {} expected", scanned.len(), expected.len());
}

#[test]
fn a_store_keeps_what_it_was_given_through_compaction_collection_and_a_second_opening() {
    let story = story(1);
    assert!(story.compactions > 0, "{story:?}");
    assert!(story.counters.programmed_for_collection > 0, "{story:?}");
    assert!(story.ends_ns.iter().all(|end| *end > 0));
}

#[test]
fn equal_runs_are_equal() {
    assert_eq!(story(3), story(3));
}
