//! The reads of a start: few after a close, independent of the amount written before.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use bytes::Bytes;
use softflash_store::{Entry, Store, StoreOptions};
use softflash_testing::Testbed;

const UNITS: u16 = 4;
const SUPERBLOCKS: u32 = 48;
const KEYS: u64 = 400;
const VALUE_BYTES: usize = 8 << 10;
/// The reads of each shard's log, besides headers and metadata of patches: the last segment's
/// opening, the end frame, and the page behind it.
const LOG_READS: u64 = 40;

fn key(number: u64) -> Bytes {
    Bytes::from(format!("key:{number:06}"))
}

async fn write(store: &Store, keys: impl Iterator<Item = u64>) {
    for number in keys {
        let mut transaction = store.begin();
        let value = vec![number as u8; VALUE_BYTES];
        transaction.put(key(number), Entry::new(Bytes::from(value))).unwrap();
        let token = store.commit(transaction).await.unwrap();
        store.durable(&token).await.unwrap();
    }
}

/// Many released segments of the log are not erased, so that the mount finds them.
#[test]
fn after_a_close_a_start_reads_only_the_end_of_the_log() {
    let mut testbed = Testbed::new(1, 2, UNITS, SUPERBLOCKS, 1 << 20);
    testbed.options = StoreOptions { memory_bytes: 2 << 20, ..testbed.options };
    testbed.run(async |stores, _| {
        for _ in 0..8 {
            write(&stores[0], 0..KEYS).await;
        }
        let written = stores[0].stats().await.unwrap().log_bytes_written;
        assert!(written > 20 << 20, "{written} bytes of log");
    });
    testbed.run(async |stores, _| {
        let stats = stores[0].stats().await.unwrap();
        // One read for both headers of a superblock, one more where the opening header is blank,
        // and two for metadata.
        let headers = 2 * u64::from(UNITS) * u64::from(SUPERBLOCKS);
        let most = headers + 2 * stats.patches + LOG_READS;
        let reads = stats.device_reads;
        assert!(reads <= most, "{reads} reads, {} patches: more than {most}", stats.patches);
        assert_eq!(stats.memtable_bytes, 0, "no events were replayed");
        for number in 0..KEYS {
            let found = stores[0].begin().get(&key(number)).await.unwrap().unwrap();
            assert_eq!(found.value.to_bytes(), vec![number as u8; VALUE_BYTES]);
        }
    });
}

/// A close with a few writes does not write a patch each time.
#[test]
fn a_short_log_is_kept_at_a_close() {
    let testbed = Testbed::new(1, 1, UNITS, SUPERBLOCKS, 1 << 20);
    for number in 0..6 {
        testbed.run(async |stores, _| {
            // The previous session's writes are in an earlier segment.
            let patches = stores[0].stats().await.unwrap().patches;
            assert_eq!(patches, number / 2, "at start {number}");
            write(&stores[0], number..number + 1).await;
        });
    }
    testbed.run(async |stores, _| {
        for number in 0..6 {
            assert!(stores[0].begin().get(&key(number)).await.unwrap().is_some(), "{number}");
        }
    });
}
