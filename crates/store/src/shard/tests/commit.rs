use super::*;
use crate::shard::Writes;
use crate::spare::SpareMemory;

/// The outcome of a transaction that reads `key`, with `event` before its commit.
async fn after(
    store: &Store,
    key: &str,
    event: impl AsyncFnOnce(&Store),
) -> Result<(), StoreError> {
    let mut transaction = store.begin();
    transaction.get(&bytes(key)).await.unwrap();
    event(store).await;
    transaction.put(bytes("result"), entry(1)).unwrap();
    store.commit(transaction).await.map(|_| ())
}

async fn clear(store: &Store) {
    let mut transaction = store.begin();
    transaction.clear();
    store.commit(transaction).await.unwrap();
}

#[test]
fn a_transaction_conflicts_with_changes_of_the_keys_that_it_has_read() {
    const CONFLICT: Result<(), StoreError> = Err(StoreError::Conflict);
    Bench::new(1, 32, 256).run(async |stores, _| {
        let store = &stores[0];
        put(store, "other", entry(1)).await;
        for key in ["new", "old"] {
            put(store, "old", entry(1)).await;
            assert_eq!(after(store, key, async |_| ()).await, Ok(()));
            let other = after(store, key, async |store| put(store, "other", entry(2)).await);
            assert_eq!(other.await, Ok(()), "{key}: another key was written");
            let same = after(store, key, async |store| put(store, key, entry(2)).await);
            assert_eq!(same.await, CONFLICT, "{key} was written");
            let same = after(store, key, async |store| delete(store, key).await);
            assert_eq!(same.await, CONFLICT, "{key} was deleted");
            assert_eq!(after(store, key, clear).await, CONFLICT, "all keys were removed");
            put(store, "old", entry(1)).await;
            // A flush loses the sequence numbers of the keys in the memtable.
            let flushed = after(store, key, async |store| {
                put(store, "other", entry(3)).await;
                store.local().flush_everything().await.unwrap();
            });
            assert_eq!(flushed.await, CONFLICT, "the memtable was flushed");
            // Writes, removals and flushes before the read are no conflict.
            assert_eq!(after(store, key, async |_| ()).await, Ok(()));
            let other = after(store, key, async |store| put(store, "other", entry(2)).await);
            assert_eq!(other.await, Ok(()), "{key} in a patch");
        }
        for _ in 0..2 {
            // In the second iteration there are no patches to drop: the removal has the last
            // sequence number.
            clear(store).await;
            let other = after(store, "new", async |store| put(store, "other", entry(2)).await);
            assert_eq!(other.await, Ok(()), "cleared before it was read");
        }
        put(store, "old", entry(1)).await;
        let other = after(store, "old", async |store| put(store, "other", entry(2)).await);
        assert_eq!(other.await, Ok(()), "written just before it was read");
    });
}

#[test]
fn a_flush_at_the_sequence_number_of_the_read_is_no_conflict() {
    Bench::new(1, 32, 256).run(async |stores, _| {
        let store = &stores[0];
        put(store, "key", entry(1)).await;
        let flushed = after(store, "key", async |store| {
            // All flushed writes precede the read; the edit has a sequence number of its own.
            store.local().flush_everything().await.unwrap();
        });
        assert_eq!(flushed.await, Ok(()));
    });
}

#[test]
fn an_exclusive_transaction_passes_the_gate_and_has_no_conflict() {
    Bench::new(1, 32, 256).run(async |stores, runtime| {
        let store = &stores[0];
        put(store, "key", entry(1)).await;
        let exclusive = store.exclusive(vec![ShardId(0)]).await.unwrap();
        let mut transaction = exclusive.begin();
        transaction.get(&bytes("key")).await.unwrap();
        put_in(&mut transaction, "key", 2);
        let outside = within(runtime, SECOND_NS, put(store, "key", entry(3))).await;
        assert_eq!(outside, None, "other writers wait at the gate");
        let held = within(runtime, SECOND_NS, store.commit(transaction)).await;
        assert!(held.is_some_and(|committed| committed.is_ok()));
        let watching = within(runtime, SECOND_NS, store.watch(bytes("key"))).await;
        assert!(watching.is_none(), "watches wait at the gate too");
        drop(exclusive);
        let outside = within(runtime, SECOND_NS, put(store, "key", entry(3))).await;
        assert_eq!(outside, Some(()));
        assert_eq!(found(store, "key").await, Some(3));
    });
}

fn put_in(transaction: &mut crate::Transaction, key: &str, len: usize) {
    transaction.put(bytes(key), entry(len)).unwrap();
}

#[test]
fn a_transaction_that_writes_several_shards_must_be_exclusive() {
    Bench::new(2, 32, 256).run(async |stores, _| {
        let keys = over_shards::keys_of_all_shards(&stores[0]);
        for store in stores {
            for key in &keys {
                let mut transaction = store.begin();
                transaction.put(key.clone(), entry(1)).unwrap();
                assert!(store.commit(transaction).await.is_ok(), "one shard, local or remote");
                let found = store.begin().get(key).await.unwrap();
                assert_eq!(found, Some(entry(1)));
                let mut transaction = store.begin();
                transaction.delete(key.clone()).unwrap();
                store.commit(transaction).await.unwrap();
            }
            let mut transaction = store.begin();
            keys.iter().for_each(|key| transaction.put(key.clone(), entry(1)).unwrap());
            let refused = store.commit(transaction).await;
            assert!(matches!(refused, Err(StoreError::Unusable(_))), "{refused:?}");
            // It writes one shard and reads both: only reads of the written shard are checked.
            let mut transaction = store.begin();
            for key in &keys {
                transaction.get(key).await.unwrap();
            }
            let mut other = store.begin();
            other.put(keys[1].clone(), entry(2)).unwrap();
            store.commit(other).await.unwrap();
            transaction.put(keys[0].clone(), entry(2)).unwrap();
            assert!(store.commit(transaction).await.is_ok());
        }
    });
}

#[test]
fn a_token_has_the_sequence_numbers_of_writes_and_reads() {
    Bench::new(1, 32, 256).run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        let mut transaction = store.begin();
        put_in(&mut transaction, "key", 1);
        let token = store.commit(transaction).await.unwrap();
        assert!(!token.is_empty());
        assert_eq!(token, CommitToken::of(ShardId(0), shard.history.seq()));
        store.durable(&token).await.unwrap();
        let mut reading = store.begin();
        reading.get(&bytes("key")).await.unwrap();
        assert_eq!(
            store.commit(reading).await.unwrap(),
            token,
            "the writes that were read must be durable"
        );
        assert!(store.commit(store.begin()).await.unwrap().is_empty());
    });
}

#[test]
fn writes_report_their_bytes_and_whether_they_add_data() {
    let writes = |entries: Vec<(Bytes, Option<Entry>)>| entries.into_iter().collect::<Writes>();
    let both = writes(vec![(bytes("four"), Some(entry(10))), (bytes("three"), None)]);
    assert_eq!((both.bytes(), both.grow()), (4 + 10 + 5, true));
    let deletion = writes(vec![(bytes("three"), None)]);
    assert_eq!((deletion.bytes(), deletion.grow()), (5, false));
    assert_eq!((writes(Vec::new()).bytes(), writes(Vec::new()).grow()), (0, false));
}

#[test]
fn a_write_removes_its_key_from_the_cache_and_touches_its_watches() {
    Bench::new(1, 32, 256).run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        put(store, "key", entry(1)).await;
        shard.flush_everything().await.unwrap();
        assert!(shard.caches.get(b"key").is_some(), "flushed entries are in the cache");
        let token = store.watch(bytes("key")).await.unwrap();
        put(store, "other", entry(1)).await;
        assert!(!token.touched());
        put(store, "key", entry(2)).await;
        assert!(token.touched());
        assert!(shard.caches.get(b"key").is_none());
    });
}

#[test]
fn the_largest_memtable_is_frozen_when_the_total_reaches_the_limit() {
    Bench::new(1, 16, 2048).run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        let frozen = || shard.slices[0].frozen.borrow().len();
        let full = shard.budget.most.freeze_bytes;
        put(store, "a", entry(full / 2)).await;
        assert_eq!(frozen(), 0, "half full");
        put(store, "b", entry(full / 2)).await;
        assert_eq!((frozen(), shard.slices.active_bytes()), (1, 0));
        // One at a time, so that frozen memtables do not pile up.
        put(store, "c", entry(full / 4)).await;
        shard.freeze_largest();
        assert_eq!(frozen(), 1);
        shard.flush_oldest(&shard.slices[0]).await.unwrap();
        shard.freeze_largest();
        assert_eq!(frozen(), 1);
        shard.flush_oldest(&shard.slices[0]).await.unwrap();
        shard.freeze_largest();
        assert_eq!(frozen(), 0, "there is nothing to freeze");
    });
}

#[test]
fn a_removal_clears_memory_at_once_and_flash_once_it_is_durable() {
    Bench::new(1, 32, 256).run(async |stores, runtime| {
        let (store, shard) = (&stores[0], stores[0].local());
        put(store, "flushed", entry(1)).await;
        shard.flush_everything().await.unwrap();
        let patch = shard.slices[0].tree().patches().map(|(.., patch)| patch.id()).next().unwrap();
        put(store, "in memory", entry(1)).await;
        let token = store.watch(bytes("flushed")).await.unwrap();
        let clears = shard.slices[0].clears.get();
        let mut transaction = store.begin();
        transaction.clear();
        put_in(&mut transaction, "new", 3);
        store.commit(transaction).await.unwrap();
        assert!(token.touched());
        assert_eq!(shard.slices[0].clears.get(), clears + 1);
        assert!(shard.history.clears().first_segment_needed() == u64::MAX, "no crash can undo it");
        for (key, len) in [("flushed", None), ("in memory", None), ("new", Some(3))] {
            assert_eq!(found(store, key).await, len, "{key}");
        }
        assert!(shard.blocks.contains(patch), "a recovery may still need it");
        rest(runtime, SECOND_NS).await;
        assert!(!shard.blocks.contains(patch));
    });
}

/// A key of a shard.
fn key_of(store: &Store, shard: u16) -> String {
    let mut keys = (0..).map(|number| format!("key:{number}"));
    keys.find(|key| store.shard_of(key.as_bytes()) == ShardId(shard)).unwrap()
}

#[test]
fn the_cache_has_the_memory_that_memtables_and_requests_leave() {
    let mut bench = Bench::new(2, 64, 1024);
    bench.options.memory_bytes = 64 << 20;
    bench.options.spare = SpareMemory::new(32 << 20);
    bench.run(async |stores, _| {
        let shards = [stores[0].local(), stores[1].local()];
        let rooms = || shards.map(|shard| shard.cache_room().room_bytes());
        let at_rest = rooms();
        assert!(at_rest[0] > 16 << 20, "{at_rest:?}");
        let spare = &stores[0].local().options.spare;
        spare.change(0, 10 << 20);
        assert_eq!(rooms(), at_rest.map(|room| room - (5 << 20)), "a half of it in each shard");
        spare.change(10 << 20, 0);
        let used = shards[0].slices.memtable_bytes() + shards[0].log.backlog_bytes();
        put(&stores[0], &key_of(&stores[0], 0), entry(300_000)).await;
        let grown = shards[0].slices.memtable_bytes() + shards[0].log.backlog_bytes() - used;
        assert_eq!(rooms()[0], at_rest[0] - grown as u64);
        assert_eq!(rooms()[1], at_rest[1], "the other shard does not need to leave any");
    });
}

#[test]
fn the_other_shards_leave_the_memory_of_a_value_larger_than_a_shards_part() {
    let mut bench = Bench::new(2, 64, 1024);
    bench.options.memory_bytes = 4 << 20;
    bench.run(async |stores, _| {
        let (shard, other) = (stores[0].local(), stores[1].local());
        let at_rest = other.cache_room().room_bytes();
        put(&stores[0], &key_of(&stores[0], 0), entry(2 << 20)).await;
        assert!(
            other.cache_room().room_bytes() < at_rest / 2,
            "{} of {at_rest}",
            other.cache_room().room_bytes()
        );
        shard.flush_everything().await.unwrap();
        assert_eq!(other.cache_room().room_bytes(), at_rest);
    });
}
