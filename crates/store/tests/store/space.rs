//! A full store refuses writes that need space, serves other requests, and recovers space from
//! deletions.

use bytes::Bytes;
use softflash_store::{Entry, Store, StoreError};
use softflash_testing::Testbed;
use softflash_testing::model::key;

async fn put(store: &Store, number: u64, value: Bytes) -> Result<(), StoreError> {
    let mut transaction = store.begin();
    transaction.put(key(number), Entry::new(value))?;
    store.commit(transaction).await.map(|_| ())
}

async fn delete(store: &Store, number: u64) -> Result<(), StoreError> {
    let mut transaction = store.begin();
    transaction.delete(key(number))?;
    store.commit(transaction).await.map(|_| ())
}

#[test]
fn a_full_store_refuses_writes_and_recovers_when_keys_are_deleted() {
    fill_and_empty(Testbed::new(1, 1, 4, 24, 1 << 20), 48 << 20);
}

#[test]
fn a_full_store_with_two_copies_refuses_writes_and_recovers() {
    let mut testbed = Testbed::new(1, 1, 4, 48, 1 << 20);
    testbed.layout.copies = 2;
    fill_and_empty(testbed, 32 << 20);
}

#[test]
fn a_full_store_with_parity_refuses_writes_and_recovers() {
    let mut testbed = Testbed::new(1, 1, 4, 48, 1 << 20);
    testbed.layout.parity = 3;
    // More than fits with two copies.
    fill_and_empty(testbed, 68 << 20);
}

#[expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]
#[expect(clippy::print_stdout, reason = "the capacity is printed")]
fn fill_and_empty(mut testbed: Testbed, least_bytes: u64) {
    testbed.options.memory_bytes = 8 << 20;
    let value = Bytes::from(vec![42; 8000]);
    testbed.run(async |stores, runtime| {
        let store = &stores[0];
        for round in 0..2 {
            let (mut written, mut refused) = (0, 0);
            // Writes are refused for a second: compaction can release no more space.
            while refused < 100 {
                match put(store, written, value.clone()).await {
                    Ok(()) => (written, refused) = (written + 1, 0),
                    Err(StoreError::OutOfSpace) => {
                        refused += 1;
                        runtime.sleep_until(runtime.now() + 10_000_000).await;
                    }
                    Err(error) => unreachable!("{error}"),
                }
                assert!(written < 100_000, "the device holds less");
            }
            let payload = written * 8000;
            println!("round {round}: {payload} bytes");
            assert!(payload > least_bytes, "round {round}: only {payload} bytes fit");
            for number in 0..written {
                let found = store.begin().get(&key(number)).await.unwrap();
                assert!(found.is_some_and(|entry| entry.value.to_bytes() == value));
            }
            for number in 0..written {
                delete(store, number).await.unwrap();
            }
            let mut waited = 0;
            while let Err(error) = put(store, 0, value.clone()).await {
                assert_eq!(error, StoreError::OutOfSpace);
                runtime.sleep_until(runtime.now() + 10_000_000).await;
                waited += 1;
                assert!(waited < 1000, "no room after 10 s: {:#?}", store.stats().await);
            }
            // An estimate: a filter has a false positive for about one key in ten thousand.
            assert!(store.key_count().await.unwrap().keys <= 11);
            delete(store, 0).await.unwrap();
        }
    });
    let report = testbed.check();
    assert!(report.ok, "{report:?}");
}

#[test]
fn overwriting_the_same_keys_never_fills_the_store() {
    let mut testbed = Testbed::new(1, 2, 4, 24, 1 << 20);
    testbed.options.memory_bytes = 8 << 20;
    testbed.run(async |stores, _| {
        for number in 0..40_000 {
            let value = Bytes::from(vec![number as u8; 8000]);
            put(&stores[0], number % 2000, value).await.unwrap();
        }
        let keys = stores[0].key_count().await.unwrap().keys;
        assert!((1990..=2010).contains(&keys), "{keys} keys");
    });
    assert!(testbed.check().ok);
}

#[test]
fn a_value_larger_than_a_superblock_is_kept() {
    let testbed = Testbed::new(1, 1, 2, 96, 256 << 10);
    let value = Bytes::from(vec![7; 900_000]);
    for _ in 0..2 {
        testbed.run(async |stores, _| {
            put(&stores[0], 1, value.clone()).await.expect("there is room");
        });
        testbed.run(async |stores, _| {
            let found = stores[0].begin().get(&key(1)).await.expect("it is whole");
            assert_eq!(found.map(|entry| entry.value.to_bytes()), Some(value.clone()));
        });
        assert!(testbed.check().ok);
    }
}
