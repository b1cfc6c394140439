use super::*;
use crate::format::version::Version;
use crate::kv::memtable::OVERHEAD_BYTES;
use crate::shard::log::{Event, event};
use crate::shard::resources::limits::Limits;
use crate::shard::tests::{Bench, SECOND_NS, bytes, entry, found, put, rest, within};
use crate::shard::{Committer, Writes};
use crate::stats::StoreStats;
use crate::store::Store;
use futures_util::future::join;
use softflash_runtime::RuntimeHandle;
use std::future::Future;

mod space;

const MIB: usize = 1 << 20;
const MS_NS: u64 = 1_000_000;
/// The flush rate in these tests, in bytes per second: 100 KB in a millisecond.
const DRAIN_BYTES: u64 = 100_000_000;

/// A shard with little memory for its device: 576 KiB for all memtables, and a log of 4 MiB.
fn with_shard(test: impl AsyncFnOnce(&Store, &Shard, &RuntimeHandle)) {
    let mut bench = Bench::new(1, 16, 2048);
    bench.options.memory_bytes = MIB as u64;
    bench.run(async |stores, runtime| {
        let shard: &Shard = stores[0].local();
        shard.throttle.note_flush(2 * DRAIN_BYTES - FIRST_DRAIN_BYTES as u64, SECOND_NS);
        test(&stores[0], shard, runtime).await;
    });
}

/// The result of `work`, and its duration in nanoseconds.
async fn timed<T>(runtime: &RuntimeHandle, work: impl Future<Output = T>) -> (T, u64) {
    let began = runtime.now();
    let done = work.await;
    (done, runtime.now().since_ns(began))
}

/// Fills the memtable to exactly `wanted` bytes, without the log.
fn fill(shard: &Shard, wanted: usize) {
    let key = |number: usize| bytes(&format!("{number:06}"));
    for number in 0.. {
        let missing = wanted - shard.slices.memtable_bytes();
        if missing == 0 {
            break;
        }
        let cost = OVERHEAD_BYTES + key(number).len();
        let value = if missing < 20_000 { missing } else { 10_000 } - cost;
        let version =
            Version::seal(&key(number), shard.history.next_seq(), Some(entry(value))).unwrap();
        shard.slices[0].insert(&key(number), version, 1, None);
    }
    assert_eq!(shard.slices.memtable_bytes(), wanted);
}

/// Bytes of memtables at this backlog.
fn memory_at(shard: &Shard, share: f64) -> usize {
    let Limits { freeze_bytes, memtables_total_bytes, .. } = shard.budget.most;
    freeze_bytes + ((memtables_total_bytes - freeze_bytes) as f64 * share) as usize
}

/// Appends `encoded_bytes` to the log, and nothing to memtables.
fn append(shard: &Shard, encoded_bytes: usize) {
    let seq = shard.history.next_seq();
    let with = |len: usize| {
        let key = bytes("key");
        let entries = [(key.clone(), Version::seal(&key, seq, Some(entry(len))).unwrap())];
        let batch = Event::Batch { seq, clear: false, entries: &entries };
        let mut stream = Vec::new();
        event::encode(&batch, &mut stream);
        if stream.len() == encoded_bytes {
            shard.log.append(&batch, seq);
        }
        stream.len()
    };
    let beside = with(encoded_bytes / 2) - encoded_bytes / 2;
    assert!((encoded_bytes - beside - 20..=encoded_bytes).any(|len| with(len) == encoded_bytes));
}

#[test]
fn a_value_larger_than_the_budget_is_admitted_to_empty_memtables() {
    with_shard(async |store, shard, runtime| {
        let total = shard.budget.most.memtables_total_bytes;
        assert!(total < MIB, "{total}");
        let large = within(runtime, SECOND_NS, put(store, "large", entry(2 * MIB))).await;
        assert!(large.is_some(), "admitted to an empty memtable");
        assert!(shard.slices.memtable_bytes() > 2 * MIB);
        // Not with any other entry, however small.
        let small = within(runtime, SECOND_NS, put(store, "small", entry(1))).await;
        assert!(small.is_none(), "it would exceed the budget further");
        shard.flush_everything().await.unwrap();
        assert!(within(runtime, SECOND_NS, put(store, "small", entry(1))).await.is_some());
        let flush = async {
            rest(runtime, 3 * SECOND_NS).await;
            shard.flush_everything().await.unwrap();
        };
        let both = join(put(store, "large", entry(3 * MIB)), flush);
        let (_, took_ns) = timed(runtime, both).await;
        assert!((3 * SECOND_NS..4 * SECOND_NS).contains(&took_ns), "{took_ns}");
        assert_eq!(found(store, "large").await, Some(3 * MIB));
        let StoreStats { stall_us, stall_longest_us, .. } = shard.stats();
        assert!((3_000_000..4_000_000).contains(&stall_us), "{stall_us} us");
        assert_eq!(stall_longest_us, stall_us, "one write has waited");
        // A shorter wait changes only the sum.
        shard.flush_everything().await.unwrap();
        fill(shard, memory_at(shard, 0.75));
        shard.admit(Demand::of(50_000, true)).await.unwrap();
        let later = shard.stats();
        assert!(later.stall_us > stall_us && later.stall_us < 2 * stall_us);
        assert_eq!(later.stall_longest_us, stall_longest_us);
    });
}

#[test]
fn a_transaction_counts_the_overhead_of_its_keys() {
    with_shard(async |_, shard, runtime| {
        fill(shard, 1000);
        let keys = shard.budget.most.memtables_total_bytes / OVERHEAD_BYTES;
        let admit = async |keys: usize, len: usize| {
            let puts = (0..keys).map(|n| (bytes(&n.to_string()), Some(entry(len))));
            let writes: Writes = puts.collect();
            within(runtime, SECOND_NS, Committer::of(shard).admit_writes(&writes)).await
        };
        assert_eq!(admit(keys / 2, 1).await, Some(Ok(())));
        assert_eq!(admit(keys + 1, 1).await, None, "many small ones");
        assert_eq!(admit(1, keys * OVERHEAD_BYTES).await, None, "a large one");
    });
}

#[test]
fn the_memory_limit_is_exact_to_the_byte() {
    with_shard(async |_, shard, runtime| {
        let total = shard.budget.most.memtables_total_bytes;
        fill(shard, 1000);
        assert!(shard.has_room(total - 1000) && !shard.has_room(total - 999));
        // Pending log events are a second copy in memory.
        append(shard, 5000);
        assert_eq!(shard.unwritten_bytes(), 6000);
        assert!(shard.has_room(total - 6000) && !shard.has_room(total - 5999));
        let admitted = within(runtime, SECOND_NS, shard.admit(Demand::of(total, true))).await;
        assert_eq!(admitted, None, "a writer waits, and is not refused");
    });
}

#[test]
fn a_log_with_too_long_a_backlog_admits_no_writes() {
    with_shard(async |_, shard, runtime| {
        let total = shard.budget.most.memtables_total_bytes;
        append(shard, total);
        assert_eq!((shard.slices.memtable_bytes(), shard.log.backlog_bytes()), (0, total));
        assert!(shard.has_room(1));
        append(shard, 1000);
        assert!(!shard.has_room(1));
        rest(runtime, SECOND_NS).await;
        assert!(shard.log.backlog_bytes() == 0 && shard.has_room(1));
        // Nor does a log of one and a half times its budget.
        let log_bytes = shard.budget.most.log_bytes;
        let (mut last, mut passed) = (0, 0);
        while last <= log_bytes * 3 / 2 {
            assert_eq!(shard.has_room(1), last <= log_bytes * 3 / 2, "{last} bytes");
            passed += u64::from(last > log_bytes * 5 / 4);
            append(shard, 100_000);
            rest(runtime, SECOND_NS / 10).await;
            last = shard.log.live_bytes();
        }
        assert!(!shard.has_room(1) && passed > 2);
    });
}

#[test]
fn the_backlog_is_the_maximum_of_memory_log_and_runs() {
    assert_eq!((GATHERED_RUNS, SLOW_RUNS, STOP_RUNS), (16, 22, 34));
    let close = |shard: &Shard, share: f64| (shard.backlog() - share).abs() < 1e-9;
    with_shard(async |_, shard, _| {
        assert!(close(shard, -1.0), "empty: {}", shard.backlog());
        for share in [0.0, 0.25, 0.5, 1.0] {
            fill(shard, memory_at(shard, share));
            assert!(close(shard, share), "memory: {} for {share}", shard.backlog());
        }
    });
    with_shard(async |store, shard, _| {
        for runs in 1..=28 {
            put(store, "key", entry(1)).await;
            shard.flush_everything().await.unwrap();
            assert_eq!(shard.level0_runs(), runs);
            assert!(
                close(shard, ((runs as f64 - SLOW_RUNS as f64) / 12.0).max(-1.0)),
                "runs: {}",
                shard.backlog()
            );
        }
    });
    with_shard(async |_, shard, runtime| {
        let log_bytes = shard.budget.most.log_bytes as f64;
        while shard.log.live_bytes() < shard.budget.most.log_bytes * 5 / 4 {
            append(shard, 500_000);
            rest(runtime, SECOND_NS).await;
        }
        let share = (shard.log.live_bytes() as f64 - log_bytes) / (log_bytes / 2.0);
        assert!(share > 0.4 && close(shard, share), "log: {} for {share}", shard.backlog());
    });
}

#[test]
fn writers_get_a_share_of_the_flush_rate() {
    let throttle = Throttle::default();
    let now = Time(5_000);
    let cost = |share: f64| {
        let before = throttle.paid_until.get().max(now);
        throttle.admits_at(now, 64 << 20, share).since_ns(before)
    };
    assert_eq!(cost(0.5), SECOND_NS, "as fast as the first guess");
    assert_eq!(throttle.paid_until.get(), now + SECOND_NS);
    assert_eq!((cost(0.2), cost(0.8)), (SECOND_NS / 4, 4 * SECOND_NS));
    assert_eq!(cost(0.999), 20 * SECOND_NS, "at the least");
    throttle.note_flush(16 << 20, SECOND_NS / 2);
    let after = cost(0.5);
    assert_eq!(after, SECOND_NS * 4 / 3, "48 MiB a second");
    // Idle time gives no credit.
    let later = Time(1000 * SECOND_NS);
    assert_eq!(throttle.admits_at(later, 48 << 20, 0.5), later + SECOND_NS);
    // Sixteen small flushes correct the rate about as much as one full one.
    let flushed = Flushed { bytes: 1000, written: 100, full: 16_000 };
    throttle.drain_bytes.set(1000.0);
    throttle.note_part(flushed, SECOND_NS / 2);
    assert_eq!(throttle.drain_bytes.get(), 1000.0 + 1000.0 / 32.0);
    (1..16).for_each(|_| throttle.note_part(flushed, SECOND_NS / 2));
    assert!((1350.0..1450.0).contains(&throttle.drain_bytes.get()));
    // The first guess is of bytes on flash.
    let fresh = Throttle::default();
    fresh.note_part(Flushed { bytes: 1000, written: 100, full: usize::MAX }, SECOND_NS);
    assert!((fresh.drain_bytes.get() / FIRST_DRAIN_BYTES - 10.0).abs() < 0.01);
    throttle.drain_bytes.set(0.0);
    assert_eq!(throttle.admits_at(later, 1, 0.5), later + 2 * SECOND_NS, "a byte a second");
}

#[test]
fn writers_are_throttled_once_there_is_a_backlog() {
    for (share, bytes, expected_ns) in [
        (-0.5, 1000, 0),
        (0.0, 1000, 0),
        (0.5, 99_900, 0),
        // Exactly the maximum lead.
        (0.5, 100_000, 0),
        (0.5, 100_100, 1_001_000),
        (0.75, 50_000, 3 * 500_000),
    ] {
        with_shard(async |_, shard, runtime| {
            fill(shard, memory_at(shard, share));
            let (admitted, took_ns) = timed(runtime, shard.admit(Demand::of(bytes, true))).await;
            assert_eq!((admitted, took_ns), (Ok(()), expected_ns), "{bytes} bytes at {share}");
            assert_eq!(shard.stats().stall_us, expected_ns / 1000);
        });
    }
}

#[test]
fn a_writer_that_waits_for_room_is_not_throttled_as_well() {
    // A write with a long delay at the minimum rate, with an almost empty and with a full memtable.
    for share in [-0.9, 1.0] {
        with_shard(async |_, shard, runtime| {
            let flush = async || {
                rest(runtime, MS_NS).await;
                // The log must contain the flushed writes.
                append(shard, 1000);
                shard.flush_everything().await.unwrap();
            };
            fill(shard, memory_at(shard, share));
            let (_, alone_ns) = timed(runtime, flush()).await;
            fill(shard, memory_at(shard, share));
            let ((admitted, ()), took_ns) =
                timed(runtime, join(shard.admit(Demand::of(2 * MIB, true)), flush())).await;
            assert_eq!(admitted, Ok(()));
            // At the minimum rate 2 MiB take 419 ms.
            assert!(took_ns < alone_ns + 100 * MS_NS, "{took_ns} ns, {alone_ns} of them the flush");
        });
    }
}

#[test]
fn many_runs_in_level_0_stop_writers_until_one_is_removed() {
    with_shard(async |store, shard, runtime| {
        let admitted =
            async || within(runtime, SECOND_NS, shard.admit(Demand::of(1, true))).await.is_some();
        while shard.level0_runs() < STOP_RUNS {
            assert!(admitted().await, "{} runs", shard.level0_runs());
            put(store, "key", entry(1)).await;
            shard.flush_everything().await.unwrap();
        }
        assert!(!admitted().await);
        reset_requests(shard).await;
        assert!(shard.level0_runs() < STOP_RUNS && admitted().await);
    });
}

async fn reset_requests(shard: &Shard) {
    assert!(shard.compact_once(&shard.slices[0]).await.unwrap());
}

#[test]
fn a_waiting_writer_starts_flush_and_compaction() {
    with_shard(async |_, shard, runtime| {
        let frozen = || shard.slices[0].frozen.borrow().len();
        fill(shard, 1000);
        shard.tasks.set_compaction_idle(true);
        assert_eq!(shard.admit(Demand::of(1, true)).await, Ok(()));
        assert_eq!((frozen(), shard.tasks.is_compaction_idle()), (0, true), "there is room");
        let total = shard.budget.most.memtables_total_bytes;
        assert_eq!(within(runtime, MS_NS, shard.admit(Demand::of(total, true))).await, None);
        assert_eq!((frozen(), shard.tasks.is_compaction_idle()), (1, false));
    });
}

#[test]
fn the_largest_memtable_is_frozen() {
    let mut bench = Bench::new(1, 32, 256);
    bench.layout.slices = 3;
    bench.run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        let key = |slice: &crate::kv::slice::Slice| {
            let mut keys = (0..).map(|number| number.to_string());
            keys.find(|key| shard.layout.slice_of(key.as_bytes()) == slice.id).unwrap()
        };
        for (slice, len) in shard.slices.iter().zip([10, 1000, 100]) {
            put(store, &key(slice), entry(len)).await;
        }
        shard.freeze_largest();
        let frozen = || shard.slices.iter().map(|s| s.frozen.borrow().len()).collect::<Vec<_>>();
        assert_eq!(frozen(), [0, 1, 0]);
        for (slice, runs) in shard.slices.iter().zip([1, 3, 2]) {
            for _ in 0..runs {
                put(store, &key(slice), entry(1)).await;
                shard.flush_everything().await.unwrap();
            }
        }
        assert_eq!(shard.level0_runs(), 4, "of the slice that has most");
    });
}

#[test]
fn a_shard_that_has_failed_or_closes_admits_no_writes() {
    with_shard(async |_, shard, _| {
        assert_eq!((shard.check_health(), shard.has_failed()), (Ok(()), false));
        let lost = StoreError::DataLoss("a test says so".into());
        shard.tasks.fail(lost.clone());
        assert!(shard.has_failed());
        assert_eq!(
            (shard.check_health(), shard.admit(Demand::of(1, true)).await),
            (Err(lost.clone()), Err(lost))
        );
        shard.tasks.forget_failure();
        shard.log.fail("a test says so");
        assert!(
            shard.has_failed() && matches!(shard.check_health(), Err(StoreError::LogFailed(_)))
        );
        assert_eq!(shard.stats().refused_writes, 0, "only lack of space counts as a refusal");
        shard.tasks.begin_closing();
        assert_eq!(shard.admit(Demand::of(1, false)).await, Err(StoreError::Closed));
    });
}

#[test]
fn a_write_to_a_long_log_wakes_the_flush_task() {
    with_shard(async |store, shard, runtime| {
        let is_woken =
            async || within(runtime, MS_NS, shard.tasks.flush_requested()).await.is_some();
        put(store, "key", entry(1)).await;
        assert!(!is_woken().await);
        while shard.log.live_bytes() <= shard.budget.most.log_bytes {
            append(shard, 500_000);
            rest(runtime, SECOND_NS).await;
        }
        assert!(!is_woken().await, "the log is still short");
        put(store, "key", entry(1)).await;
        assert!(is_woken().await);
    });
}

#[test]
fn a_segment_of_the_log_without_writes_wakes_the_flush_task() {
    with_shard(async |_, shard, runtime| {
        let is_woken = async || within(runtime, MS_NS, shard.log.rotated()).await.is_some();
        assert!(is_woken().await, "the first segment has begun");
        assert!(!is_woken().await);
        shard.log.rotate().await.unwrap();
        assert!(is_woken().await);
    });
}
