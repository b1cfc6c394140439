//! The number of live keys: while the store runs, and as a check counts them.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]
#![expect(clippy::print_stdout, reason = "a failing test says what it did")]

use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_store::{Entry, Store};
use softflash_testing::Testbed;
use std::collections::BTreeMap;

const KEYS: u64 = 3000;

fn key(number: u64) -> Bytes {
    Bytes::from(format!("key{number:06}"))
}

async fn write(store: &Store, number: u64, entry: Option<Entry>) {
    let mut transaction = store.begin();
    match entry {
        Some(entry) => transaction.put(key(number), entry).unwrap(),
        None => transaction.delete(key(number)).unwrap(),
    }
    store.commit(transaction).await.unwrap();
}

/// Random writes, most of them to patches; 1 in `one_in` values expires, long after the test.
/// Returns how many keys are live, and how many of them expire.
fn fill(testbed: &Testbed, seed: u64, one_in: u64) -> (u64, u64) {
    let mut rng = Rng::seeded(seed);
    let mut live: BTreeMap<u64, bool> = BTreeMap::new();
    testbed.run(async |stores, _| {
        let later_ms = stores[0].now_ms() + 10_000_000;
        for _ in 0..20_000 {
            let number = rng.below(KEYS);
            let expires = rng.below(one_in) == 0;
            let entry = (!rng.chance(0.2)).then(|| {
                let value = Bytes::from(vec![number as u8; rng.below(2000) as usize]).into();
                Entry { value, expires_at_ms: if expires { later_ms } else { 0 } }
            });
            match entry {
                Some(_) => live.insert(number, expires),
                None => live.remove(&number),
            };
            write(&stores[0], number, entry).await;
        }
        let keys = live.len() as u64;
        let expiring = live.values().filter(|expires| **expires).count() as u64;
        let count = stores[0].key_count().await.unwrap();
        let stats = stores[0].stats().await.unwrap();
        println!("seed {seed}: {keys} keys, {expiring} expire; counted {count:?}");
        assert!(stats.flushes > 2, "most keys are in patches: {stats:?}");
        assert!(count.keys.abs_diff(keys) <= 10, "seed {seed}: {count:?} of {keys}");
        assert!(count.expiring.abs_diff(expiring) * 20 <= keys, "seed {seed}: {count:?}");
        assert_eq!((stats.keys, stats.expiring_keys), (count.keys, count.expiring));
        (keys, expiring)
    })
}

#[test]
fn a_check_counts_the_live_keys_exactly() {
    for shards in [1, 2] {
        for seed in 1..4 {
            let mut testbed = Testbed::new(shards, shards * 2, 4, 48, 1 << 20);
            testbed.options.memory_bytes = 8 << 20;
            let (keys, _) = fill(&testbed, seed, 3);
            let report = testbed.check();
            assert!(report.ok, "seed {seed}: {report:?}");
            assert_eq!(report.keys, Some(keys), "seed {seed}, {shards} shards");
        }
    }
}

#[test]
fn keys_that_expire_are_counted_exactly_where_all_or_none_do() {
    for (one_in, seed) in [(1, 5), (1 << 40, 6)] {
        let mut testbed = Testbed::new(1, 2, 4, 48, 1 << 20);
        testbed.options.memory_bytes = 8 << 20;
        fill(&testbed, seed, one_in);
        testbed.run(async |stores, _| {
            let count = stores[0].key_count().await.unwrap();
            let all = if one_in == 1 { count.keys } else { 0 };
            assert_eq!(count.expiring, all, "seed {seed}: {count:?}");
        });
    }
}

#[test]
fn an_expiry_counts_as_soon_as_it_is_set_and_no_longer_than_it_stands() {
    let testbed = Testbed::new(1, 1, 4, 48, 1 << 20);
    testbed.run(async |stores, _| {
        let store = &stores[0];
        let later_ms = store.now_ms() + 10_000_000;
        let expiring = async || store.key_count().await.unwrap().expiring;
        let entry = |expires_at_ms| Entry { value: Bytes::from("v").into(), expires_at_ms };
        for number in 0..3 {
            write(store, number, Some(entry(later_ms))).await;
        }
        assert_eq!(expiring().await, 3);
        write(store, 0, Some(entry(0))).await;
        write(store, 1, None).await;
        assert_eq!(expiring().await, 1);
    });
    assert_eq!(testbed.check().keys, Some(2));
}
