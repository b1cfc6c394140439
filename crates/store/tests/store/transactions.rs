//! Transactions: conflicts, watches, exclusive access, and atomicity over shards through crashes.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use bytes::Bytes;
use softflash_base::ShardId;
use softflash_store::value::Wanted;
use softflash_store::{Entry, Store, StoreError};
use softflash_testing::{Testbed, VirtualTestbed};
use std::cell::Cell;
use std::rc::Rc;

fn testbed(shards: u16) -> Testbed {
    let mut testbed = Testbed::new(shards, shards, 4, 24, 1 << 20);
    testbed.options.memory_bytes = 4 << 20;
    testbed
}

fn number(entry: Option<Entry>) -> u64 {
    entry.map_or(0, |entry| {
        String::from_utf8_lossy(&entry.value.to_bytes()).parse().unwrap_or(u64::MAX)
    })
}

/// A key of each shard.
fn keys_of_all_shards(store: &Store) -> Vec<Bytes> {
    (0..store.layout().shards)
        .map(|shard| {
            let candidates = (0..).map(|number| Bytes::from(format!("key{number}")));
            let mut of_shard = candidates.filter(|key| store.shard_of(key) == ShardId(shard));
            of_shard.next().unwrap()
        })
        .collect()
}

async fn set_all(store: &Store, keys: &[Bytes], value: u64, wait: bool) {
    let shards = keys.iter().map(|key| store.shard_of(key)).collect();
    let exclusive = store.exclusive(shards).await.unwrap();
    let mut transaction = exclusive.begin();
    for key in keys {
        transaction.put(key.clone(), Entry::new(Bytes::from(value.to_string()))).unwrap();
    }
    let token = store.commit(transaction).await.unwrap();
    drop(exclusive);
    if wait {
        store.durable(&token).await.unwrap();
    }
}

#[test]
fn counters_incremented_concurrently_lose_nothing() {
    testbed(2).run(async |stores, runtime| {
        let key = Bytes::from_static(b"counter");
        let left = Rc::new(Cell::new(8));
        for task in 0..8 {
            let (store, key, left) = (stores[task % 2].clone(), key.clone(), Rc::clone(&left));
            runtime.spawn(Box::pin(async move {
                for _ in 0..50 {
                    loop {
                        let mut transaction = store.begin();
                        let next = number(transaction.get(&key).await.unwrap()) + 1;
                        softflash_runtime::yield_now().await;
                        transaction
                            .put(key.clone(), Entry::new(Bytes::from(next.to_string())))
                            .unwrap();
                        match store.commit(transaction).await {
                            Ok(_) => break,
                            Err(StoreError::Conflict) => {}
                            Err(error) => unreachable!("{error}"),
                        }
                    }
                }
                left.set(left.get() - 1);
            }));
        }
        while left.get() > 0 {
            runtime.sleep_until(runtime.now() + 1_000_000).await;
        }
        let found = stores[0].begin().get(&key).await.unwrap();
        assert_eq!(number(found), 400);
    });
}

#[test]
fn watches_detect_writes_and_clears() {
    testbed(2).run(async |stores, _| {
        let keys = keys_of_all_shards(&stores[0]);
        for key in &keys {
            let token = stores[0].watch(key.clone()).await.unwrap();
            assert!(!token.touched());
            let mut transaction = stores[1].begin();
            transaction.put(key.clone(), Entry::new(Bytes::from_static(b"1"))).unwrap();
            stores[1].commit(transaction).await.unwrap();
            assert!(token.touched());
        }
        let token = stores[0].watch(keys[1].clone()).await.unwrap();
        let all = (0..2).map(ShardId).collect();
        let exclusive = stores[0].exclusive(all).await.unwrap();
        let mut transaction = exclusive.begin();
        transaction.clear();
        stores[0].commit(transaction).await.unwrap();
        drop(exclusive);
        assert!(token.touched());
        assert_eq!(stores[0].key_count().await.unwrap().keys, 0);
    });
}

#[test]
fn a_batch_over_shards_is_atomic_after_a_crash_and_durable_if_acknowledged() {
    let testbed = testbed(3);
    let mut acknowledged = 0;
    for round in 1..=12 {
        let last = round * 100;
        testbed.crash(async |stores, runtime| {
            let keys = keys_of_all_shards(&stores[0]);
            let mut found = Vec::new();
            for key in &keys {
                found.push(number(stores[0].begin().get(key).await.unwrap()));
            }
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "torn: {found:?}");
            assert!(found[0] >= acknowledged, "{found:?}, acknowledged {acknowledged}");
            for value in last..last + 5 {
                set_all(&stores[value as usize % 3], &keys, value, true).await;
                acknowledged = value;
            }
            // Without waiting: the batch may be lost, but only as a whole.
            for value in last + 5..last + 8 {
                set_all(&stores[0], &keys, value, false).await;
            }
            runtime.sleep_until(runtime.now() + round * 40_000).await;
        });
        let report = testbed.check();
        assert!(report.ok, "round {round}: {report:?}");
    }
}

#[test]
fn a_clear_survives_a_crash_and_no_key_reappears() {
    for shards in [1, 2] {
        let testbed = testbed(shards);
        testbed.crash(async |stores, _| {
            for number in 0..3000 {
                let mut transaction = stores[0].begin();
                let key = Bytes::from(format!("old{number}"));
                transaction.put(key, Entry::new(Bytes::from(vec![1; 2000]))).unwrap();
                stores[0].commit(transaction).await.unwrap();
            }
            let all = (0..shards).map(ShardId).collect();
            let exclusive = stores[0].exclusive(all).await.unwrap();
            let mut transaction = exclusive.begin();
            transaction.clear();
            transaction
                .put(Bytes::from_static(b"new"), Entry::new(Bytes::from_static(b"1")))
                .unwrap();
            let token = stores[0].commit(transaction).await.unwrap();
            drop(exclusive);
            stores[0].durable(&token).await.unwrap();
        });
        for _ in 0..2 {
            testbed.crash(async |stores, _| {
                assert_eq!(stores[0].key_count().await.unwrap().keys, 1);
                let found = stores[0].begin().get(&Bytes::from_static(b"new")).await.unwrap();
                assert!(found.is_some());
                let old = stores[0].begin().get(&Bytes::from_static(b"old7")).await.unwrap();
                assert_eq!(old, None);
            });
        }
        assert!(testbed.check().ok);
    }
}

#[test]
fn an_acknowledged_batch_over_shards_survives_a_second_crash_after_the_coordinator_continued() {
    let mut testbed = Testbed::new(3, 3, 3, 64, 1 << 20);
    testbed.options.memory_bytes = 4 << 20;
    for value in 1..=6 {
        let keys = testbed.crash(async |stores, _| {
            let keys = keys_of_all_shards(&stores[0]);
            // Killed before the participants have logged the commit.
            set_all(&stores[0], &keys, value, true).await;
            keys
        });
        testbed.crash(async |stores, _| {
            // The coordinator's log grows until the segment with the commit is released.
            let coordinator = stores[0].clone();
            let mut of_coordinator = (0..).map(|number| Bytes::from(format!("fill:{number}")));
            for _ in 0..1500 {
                let key =
                    of_coordinator.find(|key| coordinator.shard_of(key) == ShardId(0)).unwrap();
                let mut transaction = coordinator.begin();
                transaction.put(key, Entry::new(Bytes::from(vec![7; 4000]))).unwrap();
                coordinator.commit(transaction).await.unwrap();
            }
        });
        testbed.crash(async |stores, _| {
            for key in &keys {
                let found = stores[0].begin().get(key).await.unwrap();
                assert_eq!(number(found), value, "{key:?}");
            }
            let mut transaction = stores[0].begin();
            transaction.put(keys[0].clone(), Entry::new(Bytes::from(value.to_string()))).unwrap();
            stores[0].commit(transaction).await.unwrap();
        });
    }
}

/// Removes everything.
async fn clear(store: &Store) {
    let exclusive =
        store.exclusive((0..store.layout().shards).map(ShardId).collect()).await.unwrap();
    let mut transaction = exclusive.begin();
    transaction.clear();
    store.commit(transaction).await.unwrap();
}

#[test]
fn a_transaction_with_reads_conflicts_with_a_clear() {
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let keys = keys_of_all_shards(&stores[0]);
            let absent = Bytes::from_static(b"absent");
            set_all(&stores[0], &keys[..1], 7, true).await;
            for read in [&keys[0], &absent] {
                let mut transaction = stores[0].begin();
                let old = number(transaction.get(read).await.unwrap());
                clear(&stores[usize::from(shards) - 1]).await;
                transaction
                    .put(read.clone(), Entry::new(Bytes::from((old + 1).to_string())))
                    .unwrap();
                let refused = stores[0].commit(transaction).await.unwrap_err();
                assert!(matches!(refused, StoreError::Conflict), "{refused}");
                assert_eq!(stores[0].begin().get(read).await.unwrap(), None);
            }
            // A transaction without reads is ordered after the clear.
            let mut transaction = stores[0].begin();
            transaction.put(absent.clone(), Entry::new(Bytes::from_static(b"1"))).unwrap();
            clear(&stores[0]).await;
            stores[0].commit(transaction).await.unwrap();
            assert_eq!(number(stores[0].begin().get(&absent).await.unwrap()), 1);
        });
    }
}

#[test]
fn a_reader_of_an_absent_key_after_a_clear_can_wait_until_the_clear_is_durable() {
    for shards in [1, 3] {
        let testbed = VirtualTestbed::new(shards, 40);
        let (key, ended_at) = testbed.session(async |stores, _| {
            let keys = keys_of_all_shards(&stores[0]);
            set_all(&stores[0], &keys, 7, true).await;
            clear(&stores[0]).await;
            // Visible, but not on flash.
            let key = keys[keys.len() - 1].clone();
            let mut transaction = stores[0].begin();
            assert_eq!(transaction.get(&key).await.unwrap(), None);
            stores[0].durable(transaction.token()).await.unwrap();
            key
        });
        testbed.device.power_cut(ended_at, 1).unwrap();
        testbed.session(async |stores, _| {
            assert_eq!(stores[0].begin().get(&key).await.unwrap(), None, "{shards} shards");
        });
    }
}

/// Transactions over three shards that do not wait for earlier ones: each writes its own keys in
/// its shards.
const OVERLAPPING: [&[usize]; 6] = [&[0, 1], &[1, 2], &[0, 2], &[0, 1, 2], &[1, 2], &[0, 1]];

#[test]
fn overlapping_transactions_over_three_shards_are_recovered_whole_and_in_order() {
    let mut found_some = [0; OVERLAPPING.len() + 1];
    for round in 0..60_u64 {
        let mut testbed = VirtualTestbed::new(3, 40);
        testbed.options.memory_bytes = 4 << 20;
        let key = |transaction: usize, shard: usize, store: &Store| {
            let names = (0..).map(|n| Bytes::from(format!("{transaction}:{n}")));
            let mut of_shard = names.filter(|key| store.shard_of(key).index() == shard);
            of_shard.next().unwrap()
        };
        let acknowledged = Rc::new(Cell::new(0));
        let (_, ended_at) = testbed.session(async |stores, runtime| {
            for (number, shards) in OVERLAPPING.iter().enumerate() {
                let store = stores[number % 3].clone();
                let ids = shards.iter().map(|shard| ShardId(*shard as u16)).collect();
                let exclusive = store.exclusive(ids).await.unwrap();
                let mut transaction = exclusive.begin();
                for shard in shards.iter() {
                    let value = Entry::new(Bytes::from_static(b"1"));
                    transaction.put(key(number, *shard, &store), value).unwrap();
                }
                let token = store.commit(transaction).await.unwrap();
                drop(exclusive);
                let acknowledged = Rc::clone(&acknowledged);
                runtime.spawn(Box::pin(async move {
                    store.durable(&token).await.unwrap();
                    acknowledged.set(acknowledged.get().max(number + 1));
                }));
            }
            runtime.sleep_until(runtime.now() + round * 60_000).await;
        });
        testbed.device.power_cut(ended_at, round).unwrap();
        for _ in 0..2 {
            testbed.session(async |stores, _| {
                let mut found = 0;
                for (number, shards) in OVERLAPPING.iter().enumerate() {
                    let mut there = 0;
                    for shard in shards.iter() {
                        let key = key(number, *shard, &stores[0]);
                        there += usize::from(stores[0].begin().get(&key).await.unwrap().is_some());
                    }
                    assert!(there == 0 || there == shards.len(), "round {round}: {number} is torn");
                    // Each transaction shares a shard with the next one.
                    assert!(
                        there == 0 || found == number,
                        "round {round}: {number} without an earlier one"
                    );
                    found += usize::from(there > 0);
                }
                assert!(found >= acknowledged.get(), "round {round}: {found} are left");
                found_some[found] += 1;
            });
        }
    }
    assert!(found_some[0] > 0 && found_some[OVERLAPPING.len()] > 0, "{found_some:?}");
}

#[test]
fn keys_of_several_shards_are_found_together_in_their_order() {
    let testbed = testbed(3);
    let key = |number: u64| Bytes::from(format!("key{number}"));
    for written in [true, false] {
        testbed.run(async |stores, _| {
            let store = &stores[0];
            for number in (0..200).filter(|number| written && number % 3 > 0) {
                set_all(store, &[key(number)], number, false).await;
            }
            let keys: Vec<Bytes> = (0..200).chain([7, 7]).map(key).collect();
            store.prefetch(keys.iter().map(|key| (key, Wanted::Entries))).await;
            let bytes = store.value_bytes(&keys).await.unwrap();
            let exclusive = store.exclusive((0..3).map(ShardId).collect::<Vec<_>>()).await.unwrap();
            let (entries, token) = exclusive.find_all(&keys, Wanted::Entries).await.unwrap();
            assert_eq!(entries.len(), keys.len());
            let mut expected = 0;
            for (number, entry) in (0..200).chain([7, 7]).zip(entries) {
                let value = (number % 3 > 0).then(|| Bytes::from(number.to_string()));
                expected += value.as_ref().map_or(0, Bytes::len);
                assert_eq!(entry.map(|entry| entry.value.to_bytes()), value, "key{number}");
            }
            assert_eq!(bytes, expected as u64);
            assert!(!token.is_empty());
            assert!(exclusive.find_all(&[], Wanted::Keys).await.unwrap().0.is_empty());
        });
    }
}

/// However many pieces of long work come, few are under way; short work does not wait for them.
#[test]
fn long_work_waits_for_a_place_and_short_work_does_not() {
    VirtualTestbed::new(1, 40).session(async |stores, runtime| {
        let (under_way, most, left) =
            (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)), Rc::new(Cell::new(40)));
        for _ in 0..40 {
            let (store, clock) = (stores[0].clone(), runtime.clone());
            let counts = (Rc::clone(&under_way), Rc::clone(&most), Rc::clone(&left));
            runtime.spawn(Box::pin(async move {
                let (under_way, most, left) = counts;
                let _work = store.begin_long(1000).await;
                under_way.set(under_way.get() + 1);
                most.set(most.get().max(under_way.get()));
                clock.sleep_until(clock.now() + 1_000_000).await;
                under_way.set(under_way.get() - 1);
                left.set(left.get() - 1);
            }));
        }
        runtime.sleep_until(runtime.now() + 500_000).await;
        assert!(under_way.get() > 1, "some overlap");
        let started = runtime.now();
        drop(stores[0].begin_long(16).await);
        assert!(runtime.now().since_ns(started) < 400_000 && left.get() > 30, "{}", left.get());
        while left.get() > 0 {
            runtime.sleep_until(runtime.now() + 1_000_000).await;
        }
        assert!((2..=8).contains(&most.get()), "{} at a time", most.get());
    });
}
