use super::*;

/// A key of each shard.
pub(super) fn keys_of_all_shards(store: &Store) -> Vec<Bytes> {
    let shards = (0..store.layout().shards).map(ShardId);
    let key_of = |shard| {
        let mut keys = (0..).map(|number| bytes(&format!("key{number}")));
        keys.find(|key| store.shard_of(key) == shard).unwrap()
    };
    shards.map(key_of).collect()
}

/// Writes a value of `len` bytes to all keys at once; `clear` removes everything before.
async fn put_all(store: &Store, keys: &[Bytes], len: usize, clear: bool) -> CommitToken {
    let shards = keys.iter().map(|key| store.shard_of(key)).collect();
    let exclusive = store.exclusive(shards).await.unwrap();
    let mut transaction = exclusive.begin();
    if clear {
        transaction.clear();
    }
    keys.iter().for_each(|key| transaction.put(key.clone(), entry(len)).unwrap());
    store.commit(transaction).await.unwrap()
}

async fn lengths(store: &Store, keys: &[Bytes]) -> Vec<Option<usize>> {
    let mut lengths = Vec::new();
    for key in keys {
        let entry = store.begin().get(key).await.unwrap();
        lengths.push(entry.map(|entry| entry.value.to_bytes().len()));
    }
    lengths
}

#[test]
fn prepared_transactions_over_three_shards_are_atomic() {
    for rest_us in [0, 100, 300, 600, 1000, 1500, 2000, 3000, 5000, 8000, 13_000] {
        let bench = Bench::new(3, 24, 256);
        let keys = bench.run(async |stores, runtime| {
            let keys = keys_of_all_shards(&stores[0]);
            let token = put_all(&stores[0], &keys, 1, false).await;
            stores[0].durable(&token).await.unwrap();
            // Prepared on all shards and not acknowledged.
            for len in 2..5 {
                put_all(&stores[len % 3], &keys, len, false).await;
            }
            assert_eq!(lengths(&stores[1], &keys).await, [Some(4); 3]);
            rest(runtime, rest_us * 1000).await;
            keys
        });
        let first = bench.run(async |stores, _| lengths(&stores[2], &keys).await);
        assert!(first.windows(2).all(|pair| pair[0] == pair[1]), "{first:?} after {rest_us} us");
        assert!(first[0] >= Some(1));
        let again = bench.run(async |stores, _| lengths(&stores[0], &keys).await);
        assert_eq!(first, again, "the second recovery finds the same, after {rest_us} us");
    }
}

#[test]
fn the_coordinator_forgets_commits_that_all_participants_have_logged() {
    Bench::new(3, 24, 256).run(async |stores, runtime| {
        let keys = keys_of_all_shards(&stores[0]);
        let coordinator = &stores[0].local().transactions;
        let first = coordinator.next();
        for len in 1..4 {
            let token = put_all(&stores[1], &keys[1..], len, false).await;
            assert!(!token.is_empty());
            stores[1].durable(&token).await.unwrap();
        }
        assert_eq!(coordinator.next(), first + 3);
        assert!(!coordinator.retained_commits().is_empty(), "a participant may still need it");
        rest(runtime, SECOND_NS).await;
        assert!(coordinator.retained_commits().is_empty(), "{:?}", coordinator.retained_commits());
        for store in stores {
            assert_eq!(store.local().log.undecided_from(None), u64::MAX);
        }
    });
}

#[test]
fn a_shard_that_cannot_prepare_fails_the_logs_of_all_shards() {
    Bench::new(3, 24, 256).run(async |stores, runtime| {
        let keys = keys_of_all_shards(&stores[0]);
        let exclusive = stores[0].exclusive_for((0..3).map(ShardId).collect(), 100).await.unwrap();
        let mut transaction = exclusive.begin();
        keys.iter().for_each(|key| transaction.put(key.clone(), entry(1)).unwrap());
        let token = stores[0].commit(transaction).await.unwrap();
        stores[1].local().log.fail("a test says so");
        let durable = within(runtime, 10 * SECOND_NS, stores[0].durable(&token)).await;
        assert!(matches!(durable, Some(Err(StoreError::LogFailed(_)))), "{durable:?}");
        rest(runtime, SECOND_NS).await;
        for store in stores {
            let failed = store.local().log.check();
            assert!(matches!(failed, Err(StoreError::LogFailed(_))), "{failed:?}");
            assert!(store.local().has_failed());
        }
        let reason = stores[2].local().log.check().unwrap_err().to_string();
        assert!(reason.contains("shard 1"), "{reason}");
    });
}

#[test]
fn a_removal_in_a_transaction_keeps_the_patches_until_the_commit() {
    Bench::new(2, 24, 256).run(async |stores, runtime| {
        let keys = keys_of_all_shards(&stores[0]);
        put_all(&stores[0], &keys, 1, false).await;
        rest(runtime, SECOND_NS).await;
        for store in stores {
            store.local().flush_everything().await.unwrap();
        }
        let patches =
            || stores.iter().map(|store| store.local().slices[0].tree().patches().count());
        assert_eq!(patches().collect::<Vec<_>>(), [1, 1]);
        let blocks = || stores.iter().map(|store| store.local().blocks.ids().len()).sum::<usize>();
        let before = blocks();
        put_all(&stores[0], &keys, 2, true).await;
        for store in stores {
            let shard = store.local();
            assert_ne!(
                shard.history.clears().first_segment_needed(),
                u64::MAX,
                "a crash may undo it"
            );
        }
        assert_eq!(blocks(), before, "the patches are still needed");
        rest(runtime, SECOND_NS).await;
        for store in stores {
            assert_eq!(store.local().history.clears().first_segment_needed(), u64::MAX);
        }
        assert_eq!(blocks(), before - 2);
        assert_eq!(lengths(&stores[1], &keys).await, [Some(2); 2]);
    });
}

#[test]
fn a_participant_logs_a_recovered_commit_before_the_coordinator_forgets_it() {
    let bench = Bench::new(3, 24, 256);
    let keys = bench.run(async |stores, _| {
        let keys = keys_of_all_shards(&stores[0]);
        let token = put_all(&stores[0], &keys, 1, false).await;
        // The power fails before the participants have the commit in their own logs.
        stores[0].durable(&token).await.unwrap();
        keys
    });
    bench.run(async |stores, runtime| {
        rest(runtime, SECOND_NS).await;
        let coordinator = stores[0].local();
        assert!(
            coordinator.transactions.retained_commits().is_empty(),
            "all shards have logged it"
        );
        coordinator.flush_everything().await.unwrap();
        let first = coordinator.log.oldest_segment();
        coordinator.rotate_log().await.unwrap();
        assert!(coordinator.log.oldest_segment() > first, "the log does not have the commit");
    });
    bench.run(async |stores, _| assert_eq!(lengths(&stores[1], &keys).await, [Some(1); 3]));
}
