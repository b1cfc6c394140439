use super::*;
use crate::shard::Writes;

/// What becomes of a transaction that has read `key`, when something happens before its commit.
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
fn a_view_conflicts_with_what_changed_the_keys_that_it_has_read() {
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
            assert_eq!(after(store, key, clear).await, CONFLICT, "all was removed");
            put(store, "old", entry(1)).await;
            // Nobody knows any more when its keys were written.
            let flushed = after(store, key, async |store| {
                put(store, "other", entry(3)).await;
                store.local().flush_everything().await.unwrap();
            });
            assert_eq!(flushed.await, CONFLICT, "the memtable is gone");
            // What was written, cleared or flushed before is no change.
            assert_eq!(after(store, key, async |_| ()).await, Ok(()));
            let other = after(store, key, async |store| put(store, "other", entry(2)).await);
            assert_eq!(other.await, Ok(()), "{key} in a patch");
        }
        for _ in 0..2 {
            // The second time there are no patches to give up: the clear is the last that was numbered.
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
fn a_flush_at_the_number_of_the_read_is_no_change() {
    Bench::new(1, 32, 256).run(async |stores, _| {
        let store = &stores[0];
        put(store, "key", entry(1)).await;
        let flushed = after(store, "key", async |store| {
            // All that is flushed was there when the key was read; the edit has a number of its own.
            store.local().flush_everything().await.unwrap();
        });
        assert_eq!(flushed.await, Ok(()));
    });
}

#[test]
fn a_view_that_holds_its_shard_passes_the_gate_and_meets_no_conflict() {
    Bench::new(1, 32, 256).run(async |stores, runtime| {
        let store = &stores[0];
        put(store, "key", entry(1)).await;
        let exclusive = store.exclusive(vec![ShardId(0)]).await.unwrap();
        let mut transaction = exclusive.begin();
        transaction.get(&bytes("key")).await.unwrap();
        put_in(&mut transaction, "key", 2);
        let outside = within(runtime, SECOND_NS, put(store, "key", entry(3))).await;
        assert_eq!(outside, None, "others wait at the gate");
        let held = within(runtime, SECOND_NS, store.commit(transaction)).await;
        assert!(held.is_some_and(|committed| committed.is_ok()));
        let watching = within(runtime, SECOND_NS, store.watch(bytes("key"))).await;
        assert!(watching.is_none(), "so do those who watch");
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
fn a_view_of_several_shards_must_hold_them() {
    Bench::new(2, 32, 256).run(async |stores, _| {
        let keys = over_shards::keys_of_all_shards(&stores[0]);
        for store in stores {
            for key in &keys {
                let mut transaction = store.begin();
                transaction.put(key.clone(), entry(1)).unwrap();
                assert!(store.commit(transaction).await.is_ok(), "one shard, near or far");
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
            // It wrote one shard and has read both: the other is not asked.
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
fn a_ticket_names_what_was_written_and_read() {
    Bench::new(1, 32, 256).run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        let mut transaction = store.begin();
        put_in(&mut transaction, "key", 1);
        let token = store.commit(transaction).await.unwrap();
        assert!(!token.is_empty());
        assert_eq!(token, CommitToken::of(ShardId(0), shard.history.seq.get()));
        store.durable(&token).await.unwrap();
        let mut reading = store.begin();
        reading.get(&bytes("key")).await.unwrap();
        assert_eq!(store.commit(reading).await.unwrap(), token, "what was read must be durable");
        assert!(store.commit(store.begin()).await.unwrap().is_empty());
    });
}

#[test]
fn writes_know_what_they_take_and_whether_they_grow() {
    let writes = |entries: Vec<(Bytes, Option<Entry>)>| entries.into_iter().collect::<Writes>();
    let both = writes(vec![(bytes("four"), Some(entry(10))), (bytes("three"), None)]);
    assert_eq!((both.bytes(), both.grow()), (4 + 10 + 5, true));
    let deletion = writes(vec![(bytes("three"), None)]);
    assert_eq!((deletion.bytes(), deletion.grow()), (5, false));
    assert_eq!((writes(Vec::new()).bytes(), writes(Vec::new()).grow()), (0, false));
}

#[test]
fn a_write_takes_its_key_out_of_the_cache_and_tells_who_watches() {
    Bench::new(1, 32, 256).run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        put(store, "key", entry(1)).await;
        shard.flush_everything().await.unwrap();
        assert!(
            shard.caches.read.borrow_mut().get(b"key").is_some(),
            "what is flushed is in the cache"
        );
        let token = store.watch(bytes("key")).await.unwrap();
        put(store, "other", entry(1)).await;
        assert!(!token.touched());
        put(store, "key", entry(2)).await;
        assert!(token.touched());
        assert!(shard.caches.read.borrow_mut().get(b"key").is_none());
    });
}

#[test]
fn memtables_that_are_full_together_are_frozen() {
    Bench::new(1, 16, 2048).run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        let frozen = || shard.slices[0].frozen.borrow().len();
        let full = shard.budget.freeze_bytes;
        put(store, "a", entry(full / 2)).await;
        assert_eq!(frozen(), 0, "half full");
        put(store, "b", entry(full / 2)).await;
        assert_eq!((frozen(), shard.active_bytes()), (1, 0));
        // One at a time: what is being flushed must not pile up.
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
fn what_is_cleared_goes_from_memory_at_once_and_from_flash_when_that_is_durable() {
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
        assert!(shard.history.clears.first_segment_needed() == u64::MAX, "nothing can undo it");
        for (key, len) in [("flushed", None), ("in memory", None), ("new", Some(3))] {
            assert_eq!(found(store, key).await, len, "{key}");
        }
        assert!(shard.blocks.contains(patch), "a crash may still need it");
        rest(runtime, SECOND_NS).await;
        assert!(!shard.blocks.contains(patch));
    });
}
