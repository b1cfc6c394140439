//! Static wear levelling of a store: most data are never written again, and their flash must wear
//! as that of the few data that are written all the time.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_device::{ModelConfig, ModelDevice};
use softflash_policy::WearPolicy;
use softflash_store::{Entry, Store, StoreError};
use softflash_testing::VirtualTestbed;
use softflash_testing::model::key;
use std::sync::Arc;
use std::time::Duration;

/// Superblocks of 256 KiB in each of four units.
const SUPERBLOCKS: u32 = 32;
/// Keys that stay, a quarter of the flash, and keys that are overwritten.
const COLD: u64 = 400;
const HOT: u64 = 100;
const VALUE_BYTES: usize = 20_000;
const OVERWRITES: u64 = 90_000;
/// One of so many writes waits until it is durable: until then nothing that was overwritten may go.
const WRITES_OF_SYNC: u64 = 16;
const SEED: u64 = 7;

/// The erases by which the most worn block of a unit may lead.
const LEAD: u32 = 6;
/// By how much the lead may be longer. Half of the superblocks of a unit hold cold data. When they
/// lag, one of them is moved for every eight superblocks that are written, by way of the few
/// superblocks that are free: these wear while the others wait.
const LATE: u32 = 24;

/// The values are in blocks of the value log, which move only for collection or for wear.
fn testbed(wear: WearPolicy) -> VirtualTestbed {
    let mut config = ModelConfig::model();
    config.array.geometry.blocks_per_plane = SUPERBLOCKS;
    config.array.geometry.pages_per_block = 16;
    let mut testbed = VirtualTestbed {
        device: Arc::new(ModelDevice::in_memory(config).unwrap()),
        ..VirtualTestbed::new(1, SUPERBLOCKS)
    };
    testbed.options.memory_bytes = 2 << 20;
    testbed.options.ftl.wear = wear;
    testbed.options.value_threshold = Some(8 << 10);
    testbed
}

fn value(number: u64) -> Bytes {
    let mut bytes = vec![0; VALUE_BYTES];
    Rng::seeded(number).fill(&mut bytes);
    Bytes::from(bytes)
}

async fn set(store: &Store, place: u64, number: u64) {
    for _ in 0..1000 {
        let mut transaction = store.begin();
        transaction.put(key(place), Entry::new(value(number))).unwrap();
        match store.commit(transaction).await {
            Err(StoreError::OutOfSpace) => {
                let runtime = store.runtime();
                runtime.sleep_until(runtime.now() + Duration::from_millis(5)).await;
            }
            Err(error) => unreachable!("{error}"),
            Ok(token) if number.is_multiple_of(WRITES_OF_SYNC) => {
                return store.durable(&token).await.unwrap();
            }
            Ok(_) => return,
        }
    }
    unreachable!("no room for key {place} within 5 s");
}

async fn check(store: &Store, newest: &[u64]) {
    let cold = (0..COLD).map(|place| (place, place));
    let hot = (COLD..).zip(newest.iter().copied());
    for (place, number) in cold.chain(hot) {
        let found = store.begin().get(&key(place)).await.unwrap();
        assert!(found.is_some_and(|it| it.value.to_bytes() == value(number)), "key {place}");
    }
}

/// The wear after many overwrites of the hot keys.
struct Worn {
    /// The fewest and the most erases of the blocks of each unit.
    erases: Vec<(u32, u32)>,
}

impl Worn {
    /// The greatest lead of a most worn block over the least worn one of its unit.
    fn lead(&self) -> u32 {
        self.erases.iter().map(|(fewest, most)| most - fewest).max().unwrap_or(0)
    }
}

fn overwritten(wear: WearPolicy) -> Worn {
    let testbed = testbed(wear);
    let ((worn, newest), _) = testbed.session(async |stores, _| {
        let store = &stores[0];
        let mut rng = Rng::seeded(SEED);
        let mut newest: Vec<u64> = (COLD..COLD + HOT).collect();
        for place in 0..COLD + HOT {
            set(store, place, place).await;
        }
        for number in COLD + HOT..COLD + HOT + OVERWRITES {
            let hot = rng.below(HOT);
            set(store, COLD + hot, number).await;
            newest[hot as usize] = number;
        }
        check(store, &newest).await;
        let units = store.units().await.unwrap();
        let erases = units.iter().map(|unit| (unit.erase_count_min, unit.erase_count_max));
        (Worn { erases: erases.collect() }, newest)
    });
    // What was moved is found again by a recovery.
    testbed.session(async |stores, _| check(&stores[0], &newest).await);
    worn
}

#[test]
fn static_levelling_keeps_the_lead_of_the_most_worn_block_within_its_bound() {
    println!("SOFTFLASH_SEED={SEED}");
    let without = overwritten(WearPolicy::DYNAMIC);
    println!("without it: {:?}", without.erases);
    assert!(without.lead() > 2 * (LEAD + LATE), "{:?}", without.erases);
    let with = overwritten(WearPolicy::level_by(LEAD));
    println!("with it: {:?}", with.erases);
    assert!(with.lead() <= LEAD + LATE, "{:?}", with.erases);
}
