//! The clock that the log records: a wall clock that was ahead for a while, commands that do not
//! move the clock, and the way back.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use bytes::Bytes;
use futures_util::future::{Either, select};
use softflash_device::Device;
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_store::check::{Progress, check};
use softflash_store::clock::{delete_expired, recorded_clock, set_clock_back};
use softflash_store::{ClockSource, Entry, Store};
use softflash_testing::VirtualTestbed;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// The time at which the stores begin.
const BEGIN_MS: u64 = 1_000_000;
/// What the wall clock shows while it is wrong.
const AHEAD_MS: u64 = 500_000_000;
/// Separated from its key.
const LARGE: usize = 20_000;

fn key(name: &str) -> Bytes {
    Bytes::from(name.to_owned())
}

async fn put(store: &Store, name: &str, bytes: usize, expires_at_ms: u64) {
    let key = key(name);
    let job = move |store: Store| -> futures_util::future::LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            let mut transaction = store.begin();
            let entry = Entry { expires_at_ms, ..Entry::new(Bytes::from(vec![b'v'; bytes])) };
            transaction.put(key, entry).unwrap();
            let token = store.commit(transaction).await.unwrap();
            store.durable(&token).await.unwrap();
        })
    };
    store.run_on(store.shard_of(name.as_bytes()), job).await.unwrap();
}

async fn exists(store: &Store, name: &str) -> bool {
    store.begin().get(&key(name)).await.unwrap().is_some()
}

/// On an executor of its own, as a program of its own.
fn offline<R>(
    testbed: &VirtualTestbed,
    wall_ms: u64,
    work: impl AsyncFnOnce(&Arc<dyn Device>, &RuntimeHandle) -> R,
) -> R {
    let executor = VirtualExecutor::new(wall_ms);
    let runtime = executor.handle();
    let device: Arc<dyn Device> = Arc::clone(&testbed.device) as Arc<dyn Device>;
    executor.block_on(work(&device, &runtime))
}

fn recorded(testbed: &VirtualTestbed) -> u64 {
    offline(testbed, BEGIN_MS, async |device, runtime| {
        recorded_clock(device, &testbed.layout, runtime).await.unwrap()
    })
}

/// Keys that live until the clock is ahead and longer, in a store that was served with a wall clock
/// ahead once.
fn served_ahead(shards: u16) -> VirtualTestbed {
    let testbed = VirtualTestbed::new(shards, 60);
    testbed.session_at(BEGIN_MS, async |stores, _, executor| {
        let store = &stores[0];
        for number in 0..20 {
            put(store, &format!("short{number}"), 10, BEGIN_MS + 60_000).await;
            put(store, &format!("long{number}"), 10, 2 * AHEAD_MS).await;
        }
        put(store, "short and large", LARGE, BEGIN_MS + 60_000).await;
        put(store, "long and large", LARGE, 2 * AHEAD_MS).await;
        put(store, "endless", 10, 0).await;
        executor.set_wall_ms(AHEAD_MS);
        assert!(!exists(store, "short0").await && exists(store, "long0").await);
        close(stores).await;
    });
    testbed
}

async fn close(stores: &[Store]) {
    for store in stores {
        store.close().await.unwrap();
    }
}

#[test]
fn a_store_that_is_opened_with_the_recorded_clock_keeps_its_time() {
    let mut testbed = VirtualTestbed::new(2, 40);
    assert_eq!(recorded(&testbed), 0, "nothing is recorded yet");
    testbed.session_at(BEGIN_MS, async |stores, _, _| {
        put(&stores[0], "key", 10, BEGIN_MS + 60_000).await;
        close(stores).await;
    });
    let before = recorded(&testbed);
    assert!((BEGIN_MS..BEGIN_MS + 1000).contains(&before), "{before}");
    testbed.options.clock = ClockSource::Recorded;
    testbed.session_at(AHEAD_MS, async |stores, runtime, _| {
        assert!(exists(&stores[0], "key").await, "the wall clock does not count");
        put(&stores[0], "other", 10, BEGIN_MS + 60_000).await;
        runtime.sleep_until(runtime.now() + Duration::from_secs(120)).await;
        assert!(exists(&stores[0], "other").await, "the clock stands still");
        close(stores).await;
    });
    assert_eq!(recorded(&testbed), before);
    testbed.options.clock = ClockSource::Wall;
    testbed.session_at(BEGIN_MS + 59_000, async |stores, runtime, _| {
        assert!(exists(&stores[0], "key").await && exists(&stores[0], "other").await);
        runtime.sleep_until(runtime.now() + Duration::from_secs(2)).await;
        assert!(!exists(&stores[0], "key").await && !exists(&stores[0], "other").await);
    });
}

#[test]
fn a_lead_is_reported_and_the_clock_goes_back_without_reviving_a_key() {
    for shards in [1, 3] {
        let testbed = served_ahead(shards);
        assert!((AHEAD_MS..AHEAD_MS + 1000).contains(&recorded(&testbed)));
        let now_ms = BEGIN_MS + 1000;
        testbed.session_at(now_ms, async |stores, _, _| {
            let lead_ms = stores[0].stats().await.unwrap().clock_lead_ms;
            let expected = AHEAD_MS - now_ms - 1000..AHEAD_MS;
            assert!(expected.contains(&lead_ms), "{lead_ms}");
            put(&stores[0], "dead on arrival", 10, now_ms + 60_000).await;
            assert!(!exists(&stores[0], "dead on arrival").await);
            close(stores).await;
        });
        let remark = |wall_ms| {
            let report = offline(&testbed, wall_ms, async |device, runtime| {
                check(Arc::clone(device), &testbed.layout, runtime, &Progress::default()).await
            });
            assert!(report.ok, "{report:?}");
            let of_clock = report.findings.into_iter().find(|found| found.place == "the clock");
            of_clock.map(|found| found.problem)
        };
        let said = remark(now_ms).unwrap();
        assert!(
            said.starts_with("the store's clock is 5 d 18 h ahead of this machine's"),
            "{said}"
        );

        let deleted = offline(&testbed, now_ms, async |device, runtime| {
            delete_expired(device, &testbed.layout, runtime).await.unwrap()
        });
        assert_eq!(deleted.keys, 22, "20 and the large one, and the one that was dead on arrival");
        offline(&testbed, now_ms, async |device, runtime| {
            set_clock_back(&deleted, device, &testbed.layout, now_ms, runtime).await.unwrap();
        });
        assert_eq!(recorded(&testbed), now_ms);
        assert_eq!(remark(now_ms), None);
        testbed.session_at(now_ms, async |stores, _, _| {
            let store = &stores[0];
            assert!(store.now_ms() < now_ms + 1000);
            for name in ["short0", "short19", "short and large", "dead on arrival"] {
                assert!(!exists(store, name).await, "{name} was seen expired");
            }
            for name in ["long0", "long19", "long and large", "endless"] {
                assert!(exists(store, name).await, "{name}");
            }
            put(store, "new", 10, now_ms + 60_000).await;
            assert!(exists(store, "new").await);
            close(stores).await;
        });
    }
}

#[test]
fn a_setting_back_that_is_cut_short_leaves_either_time_and_no_expired_key() {
    for shards in [1, 3] {
        let mut outcomes = [0, 0];
        // Until it has ended by itself: the steps are about a program of a page.
        for cut in 0.. {
            let testbed = served_ahead(shards);
            let deleted = offline(&testbed, BEGIN_MS, async |device, runtime| {
                delete_expired(device, &testbed.layout, runtime).await.unwrap()
            });
            let done = offline(&testbed, BEGIN_MS, async |device, runtime| {
                let cut_at = runtime.now() + Duration::from_micros(700) * cut * cut;
                let cut = runtime.sleep_until(cut_at);
                let work =
                    pin!(set_clock_back(&deleted, device, &testbed.layout, BEGIN_MS, runtime));
                matches!(select(work, cut).await, Either::Left((Ok(()), _)))
            });
            let now_ms = recorded(&testbed);
            assert!(now_ms == BEGIN_MS || now_ms >= AHEAD_MS && !done, "{now_ms} at {cut}");
            outcomes[usize::from(now_ms == BEGIN_MS)] += 1;
            testbed.session_at(BEGIN_MS, async |stores, _, _| {
                assert!(!exists(&stores[0], "short3").await && exists(&stores[0], "long3").await);
                assert!(!exists(&stores[0], "short and large").await);
                assert!(exists(&stores[0], "long and large").await);
            });
            if done {
                break;
            }
        }
        assert!(outcomes.iter().all(|count| *count > 0), "cuts before and after: {outcomes:?}");
    }
}
