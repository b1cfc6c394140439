//! Expired keys stay expired when the wall clock steps back.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use bytes::Bytes;
use softflash_base::SliceId;
use softflash_store::{Entry, Store};
use softflash_testing::VirtualTestbed;

async fn put(store: &Store, key: &'static str, expires_at_ms: u64) {
    let mut transaction = store.begin();
    let entry = Entry { expires_at_ms, ..Entry::new(Bytes::from_static(b"value")) };
    transaction.put(Bytes::from_static(key.as_bytes()), entry).unwrap();
    let token = store.commit(transaction).await.unwrap();
    store.durable(&token).await.unwrap();
}

async fn exists(store: &Store, key: &'static str) -> bool {
    store.begin().get(&Bytes::from_static(key.as_bytes())).await.unwrap().is_some()
}

#[test]
fn a_key_that_was_read_as_expired_stays_expired_when_the_wall_clock_steps_back() {
    VirtualTestbed::new(1, 40).session_at(1_000_000, async |stores, _, executor| {
        let store = &stores[0];
        put(store, "short", 1_010_000).await;
        put(store, "long", 9_000_000).await;
        assert!(exists(store, "short").await);
        executor.set_wall_ms(1_010_001);
        assert!(!exists(store, "short").await);
        executor.set_wall_ms(500_000);
        assert!(!exists(store, "short").await);
        assert!(exists(store, "long").await);
    });
}

#[test]
fn an_expired_key_stays_expired_through_crashes_and_restarts_in_the_past() {
    let testbed = VirtualTestbed::new(1, 40);
    testbed.session_at(1_000_000, async |stores, _, executor| {
        let store = &stores[0];
        put(store, "short", 1_010_000).await;
        executor.set_wall_ms(1_010_001);
        assert!(!exists(store, "short").await);
    });
    for wall_ms in [1_000_000, 0, 1_009_999] {
        testbed.session_at(wall_ms, async |stores, _, _| {
            assert!(!exists(&stores[0], "short").await, "alive at {wall_ms}");
        });
    }
}

#[test]
fn a_scan_that_hides_an_expired_key_advances_the_expiry_clock() {
    let testbed = VirtualTestbed::new(1, 40);
    testbed.session_at(1_000_000, async |stores, _, executor| {
        let store = &stores[0];
        put(store, "short", 1_010_000).await;
        put(store, "long", 9_000_000).await;
        executor.set_wall_ms(1_010_001);
        let page = store.scan(SliceId(0), None, 10).await.unwrap();
        let shown: Vec<_> = page.items.into_iter().map(|(key, _)| key).collect();
        assert_eq!(shown, [Bytes::from_static(b"long")]);
    });
    testbed.session_at(1_000_000, async |stores, _, _| {
        assert!(!exists(&stores[0], "short").await && exists(&stores[0], "long").await);
    });
}

#[test]
fn the_expiry_clock_continues_while_the_wall_clock_lags() {
    VirtualTestbed::new(1, 40).session_at(1_000_000, async |stores, runtime, executor| {
        let store = &stores[0];
        put(store, "key", 1_005_000).await;
        executor.set_wall_ms(10);
        runtime.sleep_until(runtime.now() + 4_000_000_000).await;
        assert!(exists(store, "key").await);
        runtime.sleep_until(runtime.now() + 2_000_000_000).await;
        assert!(!exists(store, "key").await);
    });
}
