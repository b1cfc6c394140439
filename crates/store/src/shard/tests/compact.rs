use super::*;
use crate::kv::compaction::leveled::Options;
use crate::shard::maintenance::merging::Merger;
use futures_util::future::join;

/// The only shard of a store, and its only slice.
fn only(stores: &[Store]) -> (&Store, &Shard, &Slice) {
    let shard: &Shard = stores[0].local();
    (&stores[0], shard, &shard.slices[0])
}

/// Flushes the memtables into a run and moves it to another level, as compactions would.
async fn flush_to(shard: &Shard, level: u8) {
    let slice = &shard.slices[0];
    let before = slice.tree();
    shard.flush_everything().await.unwrap();
    let is_new = |patch: &Rc<Patch>| before.patches().all(|(.., known)| known.id() != patch.id());
    let fresh: Vec<_> = slice.tree().patches().map(|(.., p)| Rc::clone(p)).filter(is_new).collect();
    assert!(!fresh.is_empty());
    if level > 0 {
        shard.edit(slice, &fresh, fresh.iter().map(|p| (level, 0, Rc::clone(p))).collect());
    }
}

/// Fills level 0 with runs that have this key, and merges them down.
async fn compact(store: &Store, shard: &Shard, slice: &Slice, key: &str) {
    for _ in 0..shard.budget.level0_runs {
        put(store, key, entry(20)).await;
        flush_to(shard, 0).await;
    }
    assert!(shard.compact_once(slice).await.unwrap());
    assert_eq!(slice.tree().level0_runs(), 0);
}

fn levels(slice: &Slice) -> Vec<usize> {
    slice.tree().levels.iter().map(|level| level.patches().count()).collect()
}

#[test]
fn bytes_are_counted_by_what_causes_them() {
    Bench::new(1, 32, 256).run(async |stores, _| {
        let (store, shard, slice) = only(stores);
        compact(store, shard, slice, "key").await;
        let stats = shard.stats();
        let counts =
            [stats.program_bytes_log, stats.program_bytes_flush, stats.program_bytes_header];
        assert!(counts.iter().all(|bytes| *bytes > 0), "{stats:?}");
        assert!(stats.program_bytes_compaction > 0, "{stats:?}");
        assert_eq!((stats.program_bytes_host, stats.program_bytes_collection), (0, 0), "{stats:?}");
        let sum = counts.iter().sum::<u64>() + stats.program_bytes_compaction;
        assert_eq!(sum, stats.flash_bytes_written);
    });
}

#[test]
fn an_expired_version_that_is_dropped_does_not_bring_an_older_one_back() {
    // The older version is in the same merge, or in a lower level.
    for level in [1, 2] {
        let bench = Bench::new(1, 32, 256);
        let still_dead = async |stores: &[Store]| {
            let (store, ..) = only(stores);
            assert_eq!(found(store, "b").await, None, "older one in level {level}");
            assert_eq!(found(store, "c").await, Some(20));
        };
        bench.run(async |stores, runtime| {
            let (store, shard, slice) = only(stores);
            put(store, "b", entry(10)).await;
            flush_to(shard, level).await;
            assert_eq!(found(store, "b").await, Some(10));
            let expires_at_ms = WALL_MS + 60_000;
            put(store, "b", Entry { expires_at_ms, ..entry(11) }).await;
            assert_eq!(found(store, "b").await, Some(11));
            rest(runtime, 61 * SECOND_NS).await;
            let keys = ["a", "b", "c", "d"].map(|key| (key, key != "b"));
            for (key, _) in keys.iter().filter(|(_, written)| *written) {
                put(store, key, entry(20)).await;
            }
            compact(store, shard, slice, "c").await;
            still_dead(stores).await;
            if level == 2 {
                assert_eq!(levels(slice), [0, 1, 1], "the older version still exists");
            }
            let seq = shard.history.seq();
            shard.log.stable_soon(seq).await.unwrap();
        });
        bench.run(async |stores, _| still_dead(stores).await);
    }
}

#[test]
fn a_deletion_beyond_the_range_of_a_compaction_still_hides_lower_levels() {
    let bench = Bench::new(1, 32, 256);
    let still_deleted = async |stores: &[Store]| {
        let (store, ..) = only(stores);
        for key in ["b", "x"] {
            assert_eq!(found(store, key).await, None, "{key}");
        }
        assert_eq!(found(store, "k").await, Some(20));
    };
    bench.run(async |stores, _| {
        let (store, shard, slice) = only(stores);
        for key in ["b", "x"] {
            put(store, key, entry(10)).await;
            // Neither range includes "k".
            flush_to(shard, 2).await;
        }
        for key in ["b", "x"] {
            delete(store, key).await;
        }
        put(store, "k", entry(10)).await;
        flush_to(shard, 1).await;
        assert_eq!((found(store, "b").await, found(store, "x").await), (None, None));
        compact(store, shard, slice, "k").await;
        assert_eq!(levels(slice), [0, 1, 2]);
        still_deleted(stores).await;
        let seq = shard.history.seq();
        shard.log.stable_soon(seq).await.unwrap();
    });
    bench.run(async |stores, _| still_deleted(stores).await);
}

#[test]
fn a_value_over_several_patches_stays_complete_when_part_of_its_run_is_compacted() {
    const LARGE: usize = 5 << 20;
    let mut bench = Bench::new(1, 16, 2048);
    // The target size of level 1 is below the size of the value.
    bench.options.memory_bytes = 1 << 20;
    bench.run(async |stores, _| {
        let (store, shard, slice) = only(stores);
        let mut transaction = store.begin();
        for (key, len) in [("a", 10), ("c", LARGE), ("e", 10)] {
            transaction.put(bytes(key), entry(len)).unwrap();
        }
        store.commit(transaction).await.unwrap();
        shard.flush_everything().await.unwrap();
        flush_to_level_1(shard, slice);
        let parts = levels(slice)[1];
        assert!(parts >= 3, "the value spans {parts} patches");
        assert!(shard.compact_once(slice).await.unwrap());
        assert_eq!(found(store, "c").await, Some(LARGE));
        assert_eq!(levels(slice), [0, 0, parts], "all patches moved, and there are no others");
        // Newer patches before, after and within the value's keys.
        for key in ["b", "d", "c"] {
            compact(store, shard, slice, key).await;
            while shard.compact_once(slice).await.unwrap() {}
            let expected = if key == "c" { 20 } else { LARGE };
            assert_eq!(found(store, "c").await, Some(expected), "after {key}");
            for key in ["a", "e"] {
                assert_eq!(found(store, key).await, Some(10));
            }
        }
    });
}

fn flush_to_level_1(shard: &Shard, slice: &Slice) {
    let patches: Vec<_> = slice.tree().patches().map(|(.., patch)| Rc::clone(patch)).collect();
    shard.edit(slice, &patches, patches.iter().map(|p| (1, 0, Rc::clone(p))).collect());
}

/// Writes these keys with values of this length, in one run of `level`.
async fn run_of(
    store: &Store,
    shard: &Shard,
    level: u8,
    keys: impl Iterator<Item = u32>,
    len: usize,
) {
    for key in keys {
        put(store, &format!("{key:04}"), entry(len)).await;
    }
    flush_to(shard, level).await;
}

/// A merge of all runs of level 0 in parts of one patch each; returns the number of parts.
async fn merge_in_parts(shard: &Shard, slice: &Slice) -> usize {
    let options = Options { spare_blocks: 0, part_blocks: 1, ..shard.compaction_options() };
    // Spare blocks make the policy take all runs.
    let all = Options { spare_blocks: usize::MAX, ..options };
    let choice = slice.policy.borrow_mut().choose(&slice.tree(), &all, true).unwrap();
    let parts = levels(slice)[1];
    Merger::of(shard).merge(slice, choice, &options).await.unwrap();
    parts
}

const PART_KEYS: u32 = 60;

/// Three patches in level 1 with all keys; two runs in level 0 that overwrite, delete and expire.
async fn fill_for_parts(store: &Store, shard: &Shard) {
    run_of(store, shard, 1, 0..PART_KEYS, 10_000).await;
    run_of(store, shard, 0, (0..PART_KEYS).step_by(2), 100).await;
    for key in (0..PART_KEYS).step_by(3) {
        delete(store, &format!("{key:04}")).await;
    }
    let expires_at_ms = WALL_MS + 1000;
    put(store, "0007", Entry { expires_at_ms, ..entry(7) }).await;
    flush_to(shard, 0).await;
}

async fn is_as_filled(store: &Store) {
    for key in 0..PART_KEYS {
        let expected = match key {
            _ if key % 3 == 0 || key == 7 => None,
            _ if key % 2 == 0 => Some(100),
            _ => Some(10_000),
        };
        assert_eq!(found(store, &format!("{key:04}")).await, expected, "key {key}");
    }
}

#[test]
fn a_merge_in_parts_gives_what_a_whole_one_gives() {
    let bench = Bench::new(1, 32, 256);
    bench.run(async |stores, runtime| {
        let (store, shard, slice) = only(stores);
        fill_for_parts(store, shard).await;
        rest(runtime, 2 * SECOND_NS).await;
        is_as_filled(store).await;
        let before = slice.live_keys.get();
        assert!(merge_in_parts(shard, slice).await >= 3);
        is_as_filled(store).await;
        assert_eq!(slice.tree().level0_runs(), 0);
        assert_eq!(slice.live_keys.get(), before - 1, "one key has expired");
        let records: u64 = slice.tree().patches().map(|(.., patch)| patch.records()).sum();
        assert_eq!(records, 39, "no deletion, no older version, no record twice");
        assert_eq!(shard.merge_pace.blocks_to_take(), 0);
    });
    bench.run(async |stores, _| is_as_filled(&stores[0]).await);
}

#[test]
fn a_version_that_expires_between_two_parts_of_a_merge_is_kept_or_dropped_whole() {
    let mut bench = Bench::new(1, 32, 256);
    bench.options.fragment_bytes = 16 << 10;
    bench.run(async |stores, runtime| {
        let (store, shard, slice) = only(stores);
        run_of(store, shard, 1, 0..PART_KEYS, 10_000).await;
        let first = slice.tree().levels[1].runs[0].patches[0].id();
        let (key, expires_at_ms) = ("0015", WALL_MS + 60_000);
        put(store, key, Entry { expires_at_ms, ..entry(150_000) }).await;
        flush_to(shard, 0).await;
        let expire = async {
            while slice.tree().patches().any(|(.., patch)| patch.id() == first) {
                runtime.sleep_until(runtime.now() + Duration::from_micros(10)).await;
            }
            let level = Rc::clone(&slice.tree().levels[1].runs[0]);
            let (left, right) = (&level.patches[0], &level.patches[1]);
            assert_eq!((left.last_key(), right.first_key()), (key.as_bytes(), key.as_bytes()));
            assert!(right.bytes() < left.bytes() / 4 * 3, "short, so the next part can fill it");
            shard.clock.raise(expires_at_ms);
        };
        join(merge_in_parts(shard, slice), expire).await;
        assert_eq!(slice.tree().level0_runs(), 0);
        assert_eq!(found(store, key).await, None);
        assert_eq!(found(store, "0016").await, Some(10_000));
    });
}

#[test]
fn a_merge_that_ends_after_its_first_part_loses_nothing_and_can_be_repeated() {
    let bench = Bench::new(1, 32, 256);
    let keys = bench.run(async |stores, runtime| {
        let (store, shard, slice) = only(stores);
        fill_for_parts(store, shard).await;
        rest(runtime, 2 * SECOND_NS).await;
        let keys = slice.live_keys.get();
        let before = slice.tree().level0_patches();
        let first = slice.tree().levels[1].runs[0].patches[0].id();
        let replaced = async {
            while slice.tree().patches().any(|(.., patch)| patch.id() == first) {
                runtime.sleep_until(runtime.now() + Duration::from_micros(10)).await;
            }
        };
        let merge = merge_in_parts(shard, slice);
        match select(pin!(merge), pin!(replaced)).await {
            Either::Left(_) => panic!("the merge has ended"),
            Either::Right(_) => {}
        }
        assert_eq!(slice.tree().level0_patches(), before, "level 0 stays until the end");
        is_as_filled(store).await;
        let seq = shard.history.seq();
        shard.log.stable_soon(seq).await.unwrap();
        keys
    });
    bench.run(async |stores, runtime| {
        let (store, shard, slice) = only(stores);
        rest(runtime, 2 * SECOND_NS).await;
        is_as_filled(store).await;
        merge_in_parts(shard, slice).await;
        is_as_filled(store).await;
        assert_eq!(slice.live_keys.get(), keys - 1, "the expired key counts once");
        let records: u64 = slice.tree().patches().map(|(.., patch)| patch.records()).sum();
        assert_eq!(records, 39);
    });
}

#[test]
fn a_clear_ends_a_merge_in_parts() {
    let bench = Bench::new(1, 32, 256);
    bench.run(async |stores, runtime| {
        let (store, shard, slice) = only(stores);
        fill_for_parts(store, shard).await;
        let first = slice.tree().levels[1].runs[0].patches[0].id();
        let clear = async {
            while slice.tree().patches().any(|(.., patch)| patch.id() == first) {
                runtime.sleep_until(runtime.now() + Duration::from_micros(10)).await;
            }
            let mut transaction = store.begin();
            transaction.clear();
            store.commit(transaction).await.unwrap();
            put(store, "0001", entry(5)).await;
        };
        join(merge_in_parts(shard, slice), clear).await;
        assert_eq!(slice.tree().patches().count(), 0);
        assert_eq!((found(store, "0001").await, found(store, "0002").await), (Some(5), None));
    });
}
