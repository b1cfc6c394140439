//! Writers that are faster than the flash are slowed early and evenly, not stopped.

use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_store::stats::StoreStats;
use softflash_store::{Durability, Entry};
use softflash_testing::VirtualTestbed;
use std::time::Duration;

const VALUE_BYTES: usize = 4000;
const WRITES: usize = 60_000;

#[test]
fn a_backlog_slows_writers_evenly() {
    let mut testbed = VirtualTestbed::new(1, 128);
    testbed.options.memory_bytes = 16 << 20;
    testbed.options.durability = Durability::Interval(Duration::from_secs(1));
    let (mut waits_ns, _) = testbed.session(async |stores, runtime| {
        let (store, mut random) = (&stores[0], Rng::seeded(1));
        let mut waits_ns = Vec::with_capacity(WRITES);
        for _ in 0..WRITES {
            let began = runtime.now();
            let mut transaction = store.begin();
            let key = Bytes::from(format!("key:{:08}", random.below(10_000)));
            transaction.put(key, Entry::new(Bytes::from(vec![1; VALUE_BYTES]))).unwrap();
            store.commit(transaction).await.unwrap();
            waits_ns.push(runtime.now().since_ns(began));
            // A client that is much faster than the flash.
            runtime.sleep_until(runtime.now() + 1_000).await;
        }
        waits_ns
    });
    waits_ns.sort_unstable();
    let at = |share: f64| waits_ns[((waits_ns.len() - 1) as f64 * share) as usize] / 1000;
    let (median, high, longest) = (at(0.5), at(0.999), at(1.0));
    println!("p50 {median} us, p90 {} us, p99.9 {high} us, longest {longest} us", at(0.9));
    // The writes waited for seconds in total, because the client is faster than the flash.
    let total_ms = waits_ns.iter().sum::<u64>() / 1_000_000;
    assert!(total_ms > 3000, "{total_ms} ms: the writer was not slowed, so the test is void");
    assert!(high < 10_000, "one write in a thousand waited {high} us and more");
    assert!(longest < 50_000, "a write waited {longest} us");
}

/// Writes as small as those of a cache: 45 bytes of key, 20 of value.
const SMALL_WRITES: u64 = 150_000;

#[test]
fn small_records_do_not_wait_while_the_flash_keeps_up() {
    // Half of the rate at which one unit takes the flushes.
    for (slices, pause_ns) in [(1, 6_000), (8, 8_000)] {
        let mut testbed = VirtualTestbed::new(1, 128);
        testbed.layout.slices = slices;
        testbed.options.memory_bytes = 8 << 20;
        testbed.options.durability = Durability::Interval(Duration::from_secs(1));
        let (stats, _) = testbed.session(async |stores, runtime| {
            let store = &stores[0];
            for number in 0..SMALL_WRITES {
                let mut transaction = store.begin();
                let key = Bytes::from(format!("{:032}:{:012}", 0, number * 7919 % 1_000_003));
                transaction.put(key, Entry::new(Bytes::from_static(&[7; 20]))).unwrap();
                store.commit(transaction).await.unwrap();
                runtime.sleep_until(runtime.now() + pause_ns).await;
            }
            store.stats().await.unwrap()
        });
        let StoreStats { stall_us, flushes, flush_bytes_written, .. } = stats;
        println!("{slices} slices: {flushes} flushes, {flush_bytes_written} bytes, {stall_us} us");
        assert!(flushes > 10, "{flushes} flushes: the memtables were never full");
        assert_eq!(stall_us, 0, "{slices} slices: writes waited");
    }
}
