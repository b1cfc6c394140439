//! The hints of a store's commands, as its device sees them.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use bytes::Bytes;
use softflash_device::Device;
use softflash_ftl::{Hint, LifetimeClass, Origin, Priority};
use softflash_runtime::VirtualExecutor;
use softflash_store::{Entry, Store, open_all};
use softflash_testing::VirtualTestbed;
use softflash_testing::faulty::{Faults, FaultyDevice, OperationKind};
use softflash_testing::model::key;
use std::sync::{Arc, Mutex};

type Seen = Arc<Mutex<Vec<(OperationKind, Hint)>>>;

/// A new store whose commands are watched.
fn watched(test: impl AsyncFnOnce(&Store, &Seen)) {
    let mut testbed = VirtualTestbed::new(1, 256);
    testbed.options.value_threshold = Some(8 << 10);
    let faults = Faults::default();
    let seen = faults.watch_hints();
    let device: Arc<dyn Device> =
        Arc::new(FaultyDevice::new(Arc::clone(&testbed.device) as _, faults));
    let executor = VirtualExecutor::new(1_000_000);
    let runtime = executor.handle();
    executor.block_on(async {
        let stores = open_all(device, &testbed.layout, &testbed.options, &runtime).await.unwrap();
        test(&stores[0], &seen).await;
    });
}

async fn set(store: &Store, number: u64, bytes: usize) {
    let mut transaction = store.begin();
    let value = Bytes::from(vec![number as u8; bytes]);
    transaction.put(key(number), Entry::new(value)).unwrap();
    let token = store.commit(transaction).await.unwrap();
    store.durable(&token).await.unwrap();
}

/// The hints of commands of a kind since the last call, without those of headers.
fn taken(seen: &Seen, kind: OperationKind) -> Vec<Hint> {
    let all = std::mem::take(&mut *seen.lock().unwrap());
    let of_kind = all.into_iter().filter(|(found, _)| *found == kind).map(|(_, hint)| hint);
    of_kind.filter(|hint| hint.origin != Origin::Header).collect()
}

#[test]
fn a_write_is_of_the_log_and_a_large_value_of_the_client() {
    watched(async |store, seen| {
        set(store, 1, 100).await;
        taken(seen, OperationKind::Program);
        set(store, 2, 100).await;
        let hints = taken(seen, OperationKind::Program);
        assert!(!hints.is_empty() && hints.iter().all(|hint| *hint == Hint::LOG), "{hints:?}");
        set(store, 3, 30_000).await;
        let hints = taken(seen, OperationKind::Program);
        let value = Hint::FOREGROUND.lasting(LifetimeClass::MEDIUM);
        assert!(hints.contains(&value) && hints.contains(&Hint::LOG), "{hints:?}");
    });
}

#[test]
fn flushes_compaction_and_collection_have_their_origins_and_lifetimes() {
    watched(async |store, seen| {
        let mut seen_hints = Vec::new();
        for number in 0..6000_u64 {
            set(store, number % 500, if number % 3 == 0 { 10_000 } else { 4_000 }).await;
            if number % 500 == 0 {
                store.flush().await.unwrap();
                seen_hints.extend(taken(seen, OperationKind::Program));
            }
        }
        store.collect_values().await.unwrap();
        seen_hints.extend(taken(seen, OperationKind::Program));
        seen_hints.sort_by_key(|hint| (hint.origin, hint.lifetime));
        seen_hints.dedup();
        assert!(seen_hints.contains(&Hint::FLUSH), "{seen_hints:?}");
        let of = |origin: Origin| seen_hints.iter().filter(move |hint| hint.origin == origin);
        for origin in [Origin::Compaction, Origin::Collection] {
            assert!(of(origin).count() > 0, "{origin:?}: {seen_hints:?}");
            assert!(of(origin).all(|hint| hint.priority == Priority::Background));
            assert!(of(origin).all(|hint| hint.lifetime > LifetimeClass::SHORT));
        }
    });
}

#[test]
fn a_read_has_the_hint_of_the_handle() {
    watched(async |store, seen| {
        for number in 0..500 {
            set(store, number, 9_000).await;
        }
        store.flush().await.unwrap();
        for (number, hint) in [(7, Hint::FOREGROUND), (9, Hint::HOST_LATER)] {
            taken(seen, OperationKind::Read);
            let handle = store.hinted(hint);
            handle.begin().get(&key(number)).await.unwrap().unwrap();
            let hints = taken(seen, OperationKind::Read);
            assert!(hints.contains(&hint), "{hints:?} for {hint:?}");
        }
    });
}
