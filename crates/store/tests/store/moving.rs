//! Compaction moves patches without overlap to the next level without a copy.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use softflash_base::random::Rng;
use softflash_runtime::RuntimeHandle;
use softflash_store::Store;
use softflash_testing::model::{key, value};
use softflash_testing::{Model, VirtualTestbed};

/// Values that almost fill a patch of 1 MiB.
const VALUES: u64 = 16;
const VALUE_BYTES: usize = 60_000;
/// Patches to write: more than level 0 keeps.
const PATCHES: u64 = 18;

/// Writes keys patch by patch in the given order; returns the bytes that compaction wrote.
async fn load(
    store: &Store,
    runtime: &RuntimeHandle,
    model: &mut Model,
    number: impl Fn(u64) -> u64,
) -> u64 {
    let mut random = Rng::seeded(1);
    for patch in 0..PATCHES {
        for place in 0..VALUES {
            let mut bytes = value(&mut random, 8).to_vec();
            bytes.resize(VALUE_BYTES, 7);
            model.put(store, key(number(patch * VALUES + place)), bytes.into()).await;
        }
        store.flush().await.unwrap();
    }
    runtime.sleep_until(runtime.now() + 5_000_000_000).await;
    store.stats().await.unwrap().compaction_bytes_written
}

fn testbed() -> VirtualTestbed {
    let mut testbed = VirtualTestbed::new(1, 64);
    testbed.options.memory_bytes = 16 << 20;
    testbed.options.value_threshold = None;
    testbed
}

#[test]
fn a_load_in_order_is_moved_down_and_survives_a_crash() {
    let testbed = testbed();
    let mut model = Model::default();
    testbed.session(async |stores, runtime| {
        let compacted = load(&stores[0], runtime, &mut model, |number| number).await;
        assert_eq!(compacted, 0, "data loaded in order was copied");
        let stats = stores[0].stats().await.unwrap();
        assert!(stats.compactions > 0, "no compaction ran, so the test is void");
        model.compare(&stores[0]).await;
    });
    // After a crash the tree is recovered from the log.
    testbed.session(async |stores, _| model.compare(&stores[0]).await);
}

#[test]
fn runs_that_overlap_are_merged() {
    let testbed = testbed();
    let mut model = Model::default();
    testbed.session(async |stores, runtime| {
        // Every patch has keys from the whole range.
        let scattered = |number| number % VALUES * PATCHES + number / VALUES;
        let compacted = load(&stores[0], runtime, &mut model, scattered).await;
        assert!(compacted > 0, "runs that overlap were moved");
        model.compare(&stores[0]).await;
    });
}
