//! Small devices: the smallest ones that `format` takes fill up and come back, and flash that goes
//! bad under a full store stays readable to the end.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_device::{Device, ModelConfig, ModelDevice};
use softflash_runtime::RuntimeHandle;
use softflash_store::capacity::{Capacity, FlashSize};
use softflash_store::layout::split;
use softflash_store::{Entry, Store, StoreError, StoreLayout, StoreOptions};
use softflash_testing::VirtualTestbed;
use softflash_testing::model::key;
use std::collections::BTreeMap;
use std::sync::Arc;

const VALUE_BYTES: usize = 6000;
const SECOND_NS: u64 = 1_000_000_000;

/// A device of `channels` units of so many superblocks of 256 KiB.
pub fn config(channels: u16, superblocks: u32) -> ModelConfig {
    let mut config = ModelConfig::model();
    config.array.geometry.channels = channels;
    config.array.geometry.chips_per_channel = 1;
    config.array.geometry.planes_per_die = 1;
    config.array.geometry.blocks_per_plane = superblocks;
    config.array.geometry.pages_per_block = 64;
    config
}

pub fn testbed(
    config: ModelConfig,
    layout: StoreLayout,
    value_threshold: Option<usize>,
) -> VirtualTestbed {
    let device = Arc::new(ModelDevice::in_memory(config).unwrap());
    let layout = StoreLayout { units: split(device.info().units, layout.shards), ..layout };
    let options =
        StoreOptions { memory_bytes: 8 << 20, value_threshold, ..StoreOptions::default() };
    VirtualTestbed { device, layout, options }
}

fn layout(slices: u16, copies: u8, parity: u8) -> StoreLayout {
    StoreLayout { copies, parity, ..StoreLayout::new(1, slices, 4) }
}

/// Superblocks of a unit of the smallest device on which data fit, as `format` computes it.
fn smallest(layout: &StoreLayout) -> u32 {
    let device = ModelDevice::in_memory(config(4, 64)).unwrap();
    let payload_bytes = softflash_ftl::payload_bytes(&device.info().geometry);
    let fits = |superblocks_of_unit: &u32| {
        let flash = FlashSize { superblocks_of_unit: *superblocks_of_unit, payload_bytes };
        Capacity::of(layout, &StoreOptions::default(), flash).usable_bytes > 0
    };
    (1..1000).find(fits).unwrap()
}

pub async fn write(store: &Store, number: u64, value: Option<Bytes>) -> Result<(), StoreError> {
    let mut transaction = store.begin();
    match value {
        Some(value) => transaction.put(key(number), Entry::new(value))?,
        None => transaction.delete(key(number))?,
    }
    let token = store.commit(transaction).await?;
    store.durable(&token).await
}

/// Writes, again and again while the flash is full, for a minute.
async fn write_patiently(
    (store, runtime): (&Store, &RuntimeHandle),
    number: u64,
    value: Option<Bytes>,
) -> Result<(), StoreError> {
    let deadline = runtime.now().0 + 60 * SECOND_NS;
    loop {
        match write(store, number, value.clone()).await {
            Err(StoreError::OutOfSpace) if runtime.now().0 < deadline => {
                runtime.sleep_until(runtime.now() + SECOND_NS / 10).await;
            }
            written => return written,
        }
    }
}

/// Writes keys until three in a row are refused; returns how many were not.
async fn fill(store: &Store, runtime: &RuntimeHandle) -> u64 {
    let value = Bytes::from(vec![42; VALUE_BYTES]);
    let (mut written, mut refused) = (0, 0);
    while refused < 3 {
        match write(store, written, Some(value.clone())).await {
            Ok(()) => (written, refused) = (written + 1, 0),
            Err(StoreError::OutOfSpace) => {
                refused += 1;
                runtime.sleep_until(runtime.now() + SECOND_NS).await;
            }
            Err(error) => unreachable!("{error}"),
        }
    }
    written
}

#[test]
fn the_smallest_devices_that_hold_data_fill_up_and_come_back() {
    for (slices, copies, parity) in [(1, 1, 0), (2, 1, 0), (8, 1, 0), (2, 2, 0), (2, 1, 3)] {
        let layout = layout(slices, copies, parity);
        for value_threshold in [None, Some(1000)] {
            let superblocks = smallest(&layout);
            println!("{layout:?}, values from {value_threshold:?}, {superblocks} superblocks");
            let testbed = testbed(config(4, superblocks), layout.clone(), value_threshold);
            testbed.session(async |stores, runtime| {
                let store = &stores[0];
                for round in 0..2 {
                    let written = fill(store, runtime).await;
                    println!("round {round}: {written} values");
                    assert!(written > 0, "round {round}: nothing fits");
                    for number in 0..written {
                        let deleted = write_patiently((store, runtime), number, None).await;
                        assert_eq!(deleted, Ok(()), "round {round}: key {number} is not deleted");
                    }
                    let value = Some(Bytes::from(vec![43; VALUE_BYTES]));
                    let again = write_patiently((store, runtime), 0, value).await;
                    assert_eq!(again, Ok(()), "round {round}: no room a minute after");
                    write_patiently((store, runtime), 0, None).await.unwrap();
                }
            });
        }
    }
}

/// Overwrites and deletes keys, until the flash is worn out or there were `writes`. Returns whether
/// it is worn out.
async fn churn(
    store: &Store,
    known: &mut BTreeMap<u64, Option<u8>>,
    random: &mut Rng,
    writes: u64,
) -> bool {
    for _ in 0..writes {
        let (number, fill) = (random.below(400), random.below(256) as u8);
        let value = random.chance(0.9).then(|| Bytes::from(vec![fill; VALUE_BYTES / 4]));
        match write(store, number, value.clone()).await {
            Ok(()) => drop(known.insert(number, value.map(|_| fill))),
            Err(StoreError::OutOfSpace) => {}
            Err(StoreError::WornOut { bad, total }) => {
                assert!(4 * bad >= total, "{bad} of {total} superblocks are bad");
                known.remove(&number);
                return true;
            }
            Err(error) => unreachable!("{error}"),
        }
    }
    false
}

async fn check(store: &Store, known: &BTreeMap<u64, Option<u8>>) {
    for (number, fill) in known {
        let found = store.begin().get(&key(*number)).await.unwrap();
        let found = found.map(|entry| entry.value.to_bytes()[0]);
        assert_eq!(found, *fill, "key {number}");
    }
}

#[test]
fn flash_that_goes_bad_under_a_full_store_stays_readable() {
    for seed in 0..4 {
        println!("seed {seed}");
        let mut config = config(1, 70);
        config.array.geometry.pages_per_block = 16;
        config.faults.erase_failure = 0.03;
        config.faults.program_failure = 0.003;
        config.seed = seed;
        let threshold = (seed % 2 == 0).then_some(100);
        let testbed = testbed(config, layout(1, 1, 0), threshold);
        let (mut known, mut random) = (BTreeMap::new(), Rng::seeded(seed));
        let mut sessions = 0;
        loop {
            let (is_worn_out, _) = testbed.session(async |stores, _| {
                check(&stores[0], &known).await;
                churn(&stores[0], &mut known, &mut random, 40).await
            });
            sessions += 1;
            if is_worn_out {
                break;
            }
            assert!(sessions < 500, "it never wears out");
        }
        println!("worn out in session {sessions}");
        for _ in 0..2 {
            testbed.session(async |stores, _| check(&stores[0], &known).await);
        }
    }
}
