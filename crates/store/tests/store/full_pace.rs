//! A store of large values keeps its pace when it is full: writers get the space that the collector
//! gains at an even rate, and a moved value costs little.

#![expect(clippy::unwrap_used, reason = "tests end at the first error")]

use bytes::Bytes;
use futures_util::future::join_all;
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_runtime::RuntimeHandle;
use softflash_store::stats::StoreStats;
use softflash_store::{Durability, Entry, Store};
use softflash_testing::VirtualTestbed;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Superblocks of 1 MiB on each of four channels.
const SUPERBLOCKS: u32 = 64;
const WRITERS: u64 = 8;
/// Parts of a measurement whose rates are compared.
const WINDOWS: usize = 20;

fn testbed() -> VirtualTestbed {
    let mut testbed = VirtualTestbed::new(1, SUPERBLOCKS);
    testbed.options.memory_bytes = 32 << 20;
    testbed.options.durability = Durability::Interval(Duration::from_secs(1));
    testbed.options.value_threshold = Some(8 << 10);
    testbed
}

/// What a measurement saw.
struct Measured {
    /// The time at which each write ended.
    ends: Vec<Time>,
    longest: Duration,
    /// How long the same number of writes took on the empty device.
    fill_ns: u64,
    before: StoreStats,
    after: StoreStats,
}

impl Measured {
    /// Bytes programmed by bytes written.
    fn write_amplification(&self) -> f64 {
        let flash = self.after.flash_bytes_written - self.before.flash_bytes_written;
        flash as f64 / (self.after.host_bytes_written - self.before.host_bytes_written) as f64
    }

    /// The rate of all programs, as a share of that on the empty device.
    fn share_of_bandwidth(&self) -> f64 {
        let took_ns = self.ends[self.ends.len() - 1].since_ns(self.ends[0]);
        self.write_amplification() * self.fill_ns as f64 / took_ns as f64
    }

    /// Of the windows of the measurement: the lowest rate, as a share of the mean.
    fn slowest_window(&self) -> f64 {
        let (first, last) = (self.ends[0], self.ends[self.ends.len() - 1]);
        let window_ns = last.since_ns(first) / WINDOWS as u64 + 1;
        let mut counts = [0_usize; WINDOWS];
        for end in &self.ends {
            counts[(end.since_ns(first) / window_ns) as usize] += 1;
        }
        let slowest = counts.iter().min().copied().unwrap_or(0);
        (slowest * WINDOWS) as f64 / self.ends.len() as f64
    }
}

async fn write(store: &Store, number: u64, len: usize) {
    let mut transaction = store.begin();
    let value = Bytes::from(vec![number as u8; len]);
    transaction.put(Bytes::from(format!("{number:08}")), Entry::new(value)).unwrap();
    store.commit(transaction).await.unwrap();
}

/// Fills the store with `keys` values, overwrites each once on average until cleaning is in its
/// steady state, and then measures as many overwrites again.
async fn overwrite(store: &Store, runtime: &RuntimeHandle, keys: u64, len: usize) -> Measured {
    let began = runtime.now();
    for number in 0..keys {
        write(store, number, len).await;
    }
    let fill_ns = runtime.now().since_ns(began);
    run(store, runtime, keys, len).await;
    Measured { fill_ns, ..run(store, runtime, keys, len).await }
}

async fn run(store: &Store, runtime: &RuntimeHandle, keys: u64, len: usize) -> Measured {
    let before = store.stats().await.unwrap();
    let (rng, left) = (RefCell::new(Rng::seeded(5)), Cell::new(keys));
    let (ends, longest) = (RefCell::new(Vec::new()), Cell::new(Duration::ZERO));
    let writer = async |_| {
        while let Some(rest) = left.get().checked_sub(1) {
            left.set(rest);
            let (began, number) = (runtime.now(), rng.borrow_mut().below(keys));
            write(store, number, len).await;
            ends.borrow_mut().push(runtime.now());
            longest.set(longest.get().max(runtime.now() - began));
        }
    };
    join_all((0..WRITERS).map(writer)).await;
    let after = store.stats().await.unwrap();
    Measured { ends: ends.take(), longest: longest.get(), fill_ns: 0, before, after }
}

/// Keys with values of `len` bytes that fill this share of the device.
fn keys_of(percent: u64, len: usize) -> u64 {
    u64::from(4 * SUPERBLOCKS) * (1 << 20) * percent / 100 / (len as u64 + 64)
}

#[test]
fn writers_get_the_space_of_a_full_store_at_an_even_rate() {
    // Moved one by one, or to blocks that are sealed early, values are written more often.
    for (percent, len, most) in [(70, 16 << 10, 2.4), (80, 16 << 10, 4.6), (80, 64 << 10, 5.0)] {
        let testbed = testbed();
        let (measured, _) = testbed.session(async |stores, runtime| {
            overwrite(&stores[0], runtime, keys_of(percent, len), len).await
        });
        let (slowest, waf) = (measured.slowest_window(), measured.write_amplification());
        let share = measured.share_of_bandwidth();
        let stalls = |of: fn(&StoreStats) -> u64| of(&measured.after) - of(&measured.before);
        println!(
            "{percent} %, {len} bytes: slowest {slowest:.2}, longest {:?}, written {waf:.2}, {share:.2} of the bandwidth; waits: {} us, for space {}, cleaning {}, values {}, memory {}, log {}, runs {}, merges {}",
            measured.longest,
            stalls(|stats| stats.stall_us),
            stalls(|stats| stats.stall_space_us),
            stalls(|stats| stats.stall_cleaning_us),
            stalls(|stats| stats.stall_values_us),
            stalls(|stats| stats.stall_memory_us),
            stalls(|stats| stats.stall_log_us),
            stalls(|stats| stats.stall_runs_us),
            stalls(|stats| stats.stall_merge_us),
        );
        assert!(slowest >= 0.5, "{slowest}");
        assert!(waf <= most, "{waf}");
    }
}

/// The fragments of a large value do not fill blocks to their last byte. What they need beyond
/// their bytes is reserved before the value is taken: the log waits for values that were taken, and
/// blocks that they replace are freed only after a write of the log.
#[test]
fn values_of_many_blocks_that_were_taken_find_their_space() {
    for (keys, mib) in [(3, 48), (2, 64), (5, 24)] {
        let testbed = testbed();
        testbed.session(async |stores, _| {
            let store = &stores[0];
            let rounds = 400 / (WRITERS * mib).min(400) + 2;
            join_all((0..WRITERS).map(async |writer| {
                for round in 0..rounds {
                    write(store, (writer + round) % keys, (mib << 20) as usize).await;
                }
            }))
            .await;
            let newest = store.begin().get(&Bytes::from("00000000")).await.unwrap();
            assert_eq!(newest.map(|entry| entry.value.len()), Some((mib << 20) as usize));
        });
    }
}
