//! The device reads of lookups and scans.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use bytes::Bytes;
use futures_util::future::join_all;
use softflash_base::SliceId;
use softflash_runtime::RuntimeHandle;
use softflash_store::layout::Compression;
use softflash_store::{Entry, Store, StoreOptions};
use softflash_testing::Testbed;

const KEYS: u64 = 24_000;
const VALUE_BYTES: usize = 1000;
const SUPERBLOCK_BYTES: u64 = 1 << 20;

fn key(number: u64) -> Bytes {
    Bytes::from(format!("key:{number:08}"))
}

/// Compressible text, different for each key.
fn value(number: u64) -> Bytes {
    let mut text = format!("value {number}: ").repeat(VALUE_BYTES / 10);
    text.truncate(VALUE_BYTES);
    Bytes::from(text)
}

/// A store with 24 000 keys in patches and a small cache.
fn filled(compression: Vec<Compression>) -> Testbed {
    flushed(compression).0
}

/// The filled testbed, and the bytes of its flushes.
fn flushed(compression: Vec<Compression>) -> (Testbed, u64) {
    let mut testbed = Testbed::new(1, 2, 4, 32, SUPERBLOCK_BYTES);
    testbed.layout.compression = compression;
    testbed.options = StoreOptions { memory_bytes: 1 << 20, ..testbed.options };
    let bytes = testbed.run(async |stores, _| {
        for number in 0..KEYS {
            let mut transaction = stores[0].begin();
            // In random order, so that runs overlap.
            let number = number * 7919 % KEYS;
            transaction.put(key(number), Entry::new(value(number))).unwrap();
            stores[0].commit(transaction).await.unwrap();
        }
        stores[0].flush().await.unwrap();
        stores[0].stats().await.unwrap().flush_bytes_written
    });
    (testbed, bytes)
}

/// Waits until no flush or compaction is under way.
async fn rest(store: &Store, runtime: &RuntimeHandle) {
    let mut last = None;
    loop {
        let stats = store.stats().await.unwrap();
        let seen = Some((stats.device_reads, stats.device_programs));
        if last == seen {
            return;
        }
        last = seen;
        runtime.sleep_until(runtime.now() + 300_000_000).await;
    }
}

async fn reads_of<T>(store: &Store, work: impl Future<Output = T>) -> (T, u64) {
    let before = store.stats().await.unwrap().device_reads;
    let result = work.await;
    (result, store.stats().await.unwrap().device_reads - before)
}

#[test]
fn a_cold_key_costs_one_read_and_an_absent_one_none() {
    filled(Vec::new()).run(async |stores, runtime| {
        let store = &stores[0];
        rest(store, runtime).await;
        let asked = 2000;
        let ((), reads) = reads_of(store, async {
            for number in (0..asked).map(|number| number * 9973 % KEYS) {
                let found = store.begin().get(&key(number)).await.unwrap().unwrap();
                assert!(found.value.to_bytes() == value(number), "key {number}");
            }
        })
        .await;
        let per_key = reads as f64 / asked as f64;
        // Some keys are in memtables or in the cache.
        assert!((0.5..=1.02).contains(&per_key), "{per_key} reads a present key");
        let ((), reads) = reads_of(store, async {
            for number in KEYS..KEYS + asked {
                assert_eq!(store.begin().get(&key(number)).await.unwrap(), None);
            }
        })
        .await;
        let per_key = reads as f64 / asked as f64;
        assert!(per_key <= 0.02, "{per_key} reads an absent key");
    });
}

#[test]
fn a_scan_reads_each_page_of_a_patch_once() {
    filled(Vec::new()).run(async |stores, runtime| {
        let store = &stores[0];
        rest(store, runtime).await;
        let before = store.stats().await.unwrap();
        let mut seen = 0;
        for slice in 0..2 {
            let mut after = None;
            loop {
                let page = store.scan(SliceId(slice), after, 100).await.unwrap();
                seen += page.items.len() as u64;
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        assert_eq!(seen, KEYS);
        let stats = store.stats().await.unwrap();
        let read = stats.flash_bytes_read - before.flash_bytes_read;
        let held = stats.patches * SUPERBLOCK_BYTES;
        assert!(read <= held, "{read} bytes read of {held} in {} patches", stats.patches);
    });
}

/// Concurrent scans must not evict each other's readahead, also where each holds a large value or
/// two: together more than the shard's memory for readahead.
#[test]
fn each_of_many_concurrent_scans_reads_each_page_once() {
    const LARGE_KEYS: u64 = 100;
    const LARGE_BYTES: usize = 100_000;
    const SCANS: u64 = 100;
    let mut testbed = Testbed::new(1, 1, 4, 32, SUPERBLOCK_BYTES);
    testbed.options = StoreOptions { memory_bytes: 1 << 20, ..testbed.options };
    testbed.run(async |stores, runtime| {
        let store = &stores[0];
        for number in 0..LARGE_KEYS {
            let mut transaction = store.begin();
            transaction
                .put(key(number), Entry::new(Bytes::from(vec![number as u8; LARGE_BYTES])))
                .unwrap();
            store.commit(transaction).await.unwrap();
        }
        store.flush().await.unwrap();
        rest(store, runtime).await;
        let before = store.stats().await.unwrap().flash_bytes_read;
        let scans = (0..SCANS).map(|scan| async move {
            let mut seen = 0;
            let mut after = None;
            loop {
                // Pages end at different keys in each scan.
                let limit = 1 + ((scan + seen) % 5) as usize;
                let page = store.scan(SliceId(0), after, limit).await.unwrap();
                seen += page.items.len() as u64;
                after = page.next;
                if after.is_none() {
                    break seen;
                }
            }
        });
        let seen: u64 = join_all(scans).await.into_iter().sum();
        assert_eq!(seen, SCANS * LARGE_KEYS);
        let read = store.stats().await.unwrap().flash_bytes_read - before;
        let share = read as f64 / (SCANS * LARGE_KEYS * LARGE_BYTES as u64) as f64;
        assert!((0.9..1.05).contains(&share), "read {share} times the returned bytes");
    });
}

#[test]
fn a_slice_uses_the_compression_of_its_layout_and_reads_are_equal() {
    let bytes_on_flash = |compression: Compression| {
        let (testbed, bytes) = flushed(vec![compression; 2]);
        assert!(testbed.check().ok);
        testbed.run(async |stores, _| {
            for number in 0..KEYS {
                let found = stores[0].begin().get(&key(number)).await.unwrap().unwrap();
                assert!(found.value.to_bytes() == value(number), "key {number}");
            }
        });
        bytes
    };
    let plain = bytes_on_flash(Compression::None);
    for compression in [Compression::Lz4, Compression::Zstd] {
        let packed = bytes_on_flash(compression);
        assert!(2 * packed < plain, "{compression:?}: {packed} bytes, uncompressed {plain}");
    }
}

#[test]
fn slices_are_compressed_independently() {
    let testbed = filled(vec![Compression::Zstd, Compression::None]);
    testbed.run(async |stores, _| {
        for number in (0..KEYS).step_by(17) {
            let found = stores[0].begin().get(&key(number)).await.unwrap().unwrap();
            assert!(found.value.to_bytes() == value(number), "key {number}");
        }
    });
    assert!(testbed.check().ok);
}
