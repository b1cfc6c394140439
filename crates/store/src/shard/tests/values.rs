//! Separated values: written once, read, moved, deleted, and found again.

use super::*;
use crate::format::reference::Reference;
use crate::options::Durability;
use crate::shard::values::{Collection, LossReport, Mover, Unreadable};
use crate::value::Wanted;
use futures_util::future::join_all;
use softflash_base::random::Rng;
use softflash_base::{SliceId, Time};
use softflash_ftl::Hint;
use std::time::Duration;

const LARGE: usize = 20 << 10;

/// A small device; values of 8 KiB and more are separated.
fn bench(superblocks: u32) -> Bench {
    let mut bench = Bench::new(1, superblocks, 256);
    bench.options.value_threshold = Some(8 << 10);
    bench
}

fn value(number: usize, len: usize) -> Entry {
    let bytes: Vec<u8> = (0..len).map(|at| (at * 31 + number * 7) as u8).collect();
    Entry::new(Bytes::from(bytes))
}

async fn got(store: &Store, key: &str) -> Option<Entry> {
    store.local().caches.clear();
    store.begin().get(&bytes(key)).await.unwrap()
}

fn key(number: usize) -> String {
    format!("key{number}")
}

/// The value blocks that may be collected.
fn candidates(shard: &Shard) -> Vec<u64> {
    let ledger = shard.values.ledger().borrow();
    ledger.candidates().map(|candidate| candidate.block).collect()
}

/// Runs the collector until it has no work.
async fn collect(store: &Store) {
    let shard = store.local();
    while Collection::of(shard).collect_once().await.unwrap() {}
    // Empty blocks are deleted once the events up to then are durable.
    shard.log().written_soon(shard.history.seq()).await.unwrap();
    while Collection::of(shard).collect_once().await.unwrap() {}
}

#[test]
fn a_large_value_is_written_once_and_found_in_memory_on_flash_and_after_a_restart() {
    let bench = bench(16);
    bench.run(async |stores, _| {
        let store = &stores[0];
        put(store, "large", value(1, LARGE)).await;
        assert_eq!(got(store, "large").await, Some(value(1, LARGE)), "before it is written");
        put(store, "huge", value(2, 300 << 10)).await;
        put(store, "small", value(3, 100)).await;
        let shard = store.local();
        shard.log().written_soon(shard.history.seq()).await.unwrap();
        assert_eq!(got(store, "large").await, Some(value(1, LARGE)), "from its block");
        shard.flush_everything().await.unwrap();
        assert_eq!(got(store, "large").await, Some(value(1, LARGE)), "through the tree");
        assert_eq!(
            got(store, "huge").await.map(|e| e.value.to_bytes()),
            Some(value(2, 300 << 10).value.to_bytes())
        );
        assert_eq!(got(store, "small").await, Some(value(3, 100)));
        let stats = shard.stats();
        assert!(stats.value_bytes_written >= (320 << 10), "{}", stats.value_bytes_written);
        assert!(stats.flush_bytes_written < (64 << 10), "{}", stats.flush_bytes_written);
        assert!(stats.log_bytes_written < (128 << 10), "{}", stats.log_bytes_written);
    });
    bench.run(async |stores, _| {
        let store = &stores[0];
        assert_eq!(got(store, "large").await, Some(value(1, LARGE)));
        assert_eq!(
            got(store, "huge").await.map(|e| e.value.to_bytes()),
            Some(value(2, 300 << 10).value.to_bytes())
        );
        assert!(store.local().stats().value_bytes_live >= (320 << 10));
    });
}

#[test]
fn whether_a_large_value_exists_and_expires_is_known_without_a_read_of_it() {
    let bench = bench(16);
    bench.run(async |stores, _| {
        let shard = stores[0].local();
        let expires_at_ms = WALL_MS + 60_000;
        put(&stores[0], "large", Entry { expires_at_ms, ..value(1, LARGE) }).await;
        shard.flush_everything().await.unwrap();
    });
    bench.run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        let mut transaction = store.begin();
        let read_before = shard.stats().device_reads;
        let found = transaction.find(&bytes("large"), Wanted::Keys).await.unwrap().unwrap();
        assert_eq!((found.value.len(), found.expires_at_ms), (0, WALL_MS + 60_000));
        assert!(!transaction.contains(&bytes("absent")).await.unwrap());
        assert_eq!(shard.stats().device_reads, read_before);
        assert_eq!(got(store, "large").await.map(|entry| entry.value.len()), Some(LARGE));
        assert!(shard.stats().device_reads > read_before, "the value is not in memory");
    });
}

#[test]
fn the_expiry_of_a_key_is_judged_when_its_lookup_begins() {
    let bench = bench(16);
    bench.run(async |stores, runtime| {
        let (store, shard) = (&stores[0], stores[0].local());
        let expires_at_ms = WALL_MS + 1000;
        put(store, "large", Entry { expires_at_ms, ..value(1, LARGE) }).await;
        shard.flush_everything().await.unwrap();
        shard.caches.clear();
        runtime.sleep_until(Time(SECOND_NS - 1000)).await;
        let found = store.begin().get(&bytes("large")).await.unwrap();
        assert!(runtime.now() >= Time(SECOND_NS), "the read takes longer than the key lives");
        assert_eq!(found.map(|entry| entry.value.len()), Some(LARGE));
        assert_eq!(got(store, "large").await, None);
    });
}

#[test]
fn overwritten_values_are_dead_at_once_and_their_blocks_are_deleted() {
    let bench = bench(16);
    bench.run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        for round in 0..6 {
            for number in 0..20 {
                put(store, &key(number), value(number + round, LARGE)).await;
            }
            if round % 2 == 0 {
                shard.flush_everything().await.unwrap();
            }
        }
        shard.log().written_soon(shard.history.seq()).await.unwrap();
        let live = shard.stats().value_bytes_live;
        assert!((20 * LARGE as u64..21 * LARGE as u64).contains(&live), "{live}");
        let before = shard.stats().value_blocks;
        collect(store).await;
        let after = shard.stats().value_blocks;
        assert!(after < before, "{after} of {before} value blocks are left");
        for number in 0..20 {
            assert_eq!(got(store, &key(number)).await, Some(value(number + 5, LARGE)), "{number}");
        }
    });
}

#[test]
fn collected_values_are_found_before_and_after_a_restart() {
    let bench = bench(12);
    let check = async |store: &Store| {
        for number in 0..60 {
            let expected = (number % 3 != 0).then(|| value(number, LARGE));
            assert_eq!(got(store, &key(number)).await, expected, "{number}");
        }
    };
    bench.run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        for number in 0..60 {
            put(store, &key(number), value(number, LARGE)).await;
        }
        shard.flush_everything().await.unwrap();
        for number in (0..60).step_by(3) {
            delete(store, &key(number)).await;
        }
        let victims = candidates(shard);
        assert!(victims.len() >= 3, "{victims:?}");
        for victim in &victims {
            Mover::of(shard).empty_block(*victim).await.unwrap();
        }
        collect(store).await;
        assert!(victims.iter().all(|id| !shard.blocks.contains(softflash_blocks::BlockId(*id))));
        check(store).await;
        shard.log().written_soon(shard.history.seq()).await.unwrap();
    });
    bench.run(async |stores, _| {
        check(&stores[0]).await;
        stores[0].local().flush_everything().await.unwrap();
        check(&stores[0]).await;
    });
}

#[test]
fn values_are_moved_in_batches_with_one_event_each() {
    let mut bench = Bench::new(1, 12, 2048);
    bench.options.value_threshold = Some(8 << 10);
    bench.run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        for number in 0..120 {
            put(store, &key(number), value(number, LARGE)).await;
        }
        shard.flush_everything().await.unwrap();
        for number in (0..120).step_by(2) {
            put(store, &key(number), value(number + 1, LARGE)).await;
        }
        shard.log().written_soon(shard.history.seq()).await.unwrap();
        let (victim, live) = {
            let ledger = shard.values.ledger().borrow();
            let first = ledger.candidates().next().unwrap();
            (first.block, first.values)
        };
        assert!(live >= 40, "{live} live values");
        let seq = shard.history.seq();
        Mover::of(shard).empty_block(victim).await.unwrap();
        let events = shard.history.seq() - seq;
        // About a mebibyte is live.
        assert!((1..=2).contains(&events), "{events} events for {live} values");
        for number in 0..120 {
            let expected = value(if number % 2 == 0 { number + 1 } else { number }, LARGE);
            assert_eq!(got(store, &key(number)).await, Some(expected), "{number}");
        }
        assert!(shard.values.ledger().borrow().live_in(victim).is_empty());
    });
}

#[test]
fn fragments_move_while_others_of_their_value_are_written() {
    let bench = bench(64);
    bench.run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        let huge = value(5, 3 << 20);
        put(store, "huge", huge.clone()).await;
        while candidates(shard).is_empty() {
            shard.values.progress().notified().await;
        }
        assert!(shard.values.waiting_bytes() > 0, "it is written already");
        let victims = candidates(shard);
        for victim in &victims {
            let live = shard.values.ledger().borrow().live_in(*victim).len();
            assert!(live > 0, "{victim} has a fragment");
            Mover::of(shard).empty_block(*victim).await.unwrap();
        }
        collect(store).await;
        assert!(victims.iter().all(|id| !shard.blocks.contains(softflash_blocks::BlockId(*id))));
        assert_eq!(
            got(store, "huge").await.map(|e| e.value.to_bytes()),
            Some(huge.value.to_bytes())
        );
    });
    bench.run(async |stores, _| {
        let found = got(&stores[0], "huge").await.map(|e| e.value.to_bytes());
        assert_eq!(found, Some(value(5, 3 << 20).value.to_bytes()), "after a restart");
    });
}

#[test]
fn a_block_with_a_value_that_cannot_be_read_is_kept_until_no_value_is_live() {
    let bench = bench(16);
    bench.run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        for number in 0..60 {
            put(store, &key(number), value(number, LARGE)).await;
        }
        shard.flush_everything().await.unwrap();
        let block = candidates(shard)[0];
        shard.values.ledger().borrow_mut().note_unreadable(block);
        assert!(!candidates(shard).contains(&block), "it is not collected again and again");
        let is_there = || shard.blocks.contains(softflash_blocks::BlockId(block));
        for number in 1..60 {
            delete(store, &key(number)).await;
        }
        collect(store).await;
        assert!(is_there(), "the first value is live");
        delete(store, &key(0)).await;
        collect(store).await;
        assert!(!is_there());
    });
}

#[test]
fn an_unreadable_value_is_lost_unless_a_deletion_on_flash_or_its_expiry_hides_it() {
    let bench = bench(16);
    let (live, deleted, short, expired) = (1, 3, 4, 5);
    bench.run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        for number in 0..8 {
            let expires_at_ms = if number == expired { WALL_MS + 2_000 } else { 0 };
            put(store, &key(number), Entry { expires_at_ms, ..value(number, LARGE) }).await;
        }
        shard.flush_everything().await.unwrap();
        delete(store, &key(deleted)).await;
        put(store, &key(short), value(short, 10)).await;
        shard.flush_everything().await.unwrap();
        shard.log.stable_soon(shard.history.seq()).await.unwrap();
    });
    bench.run(async |stores, runtime| {
        let (store, shard) = (&stores[0], stores[0].local());
        rest(runtime, 3 * SECOND_NS).await;
        let ledger = shard.values.ledger();
        let place =
            |number| shard.slices[0].references_on_flash(key(number).as_bytes())[0].reference;
        let listed = |number| ledger.borrow().is_live(&place(number));
        assert!([live, deleted, short, expired].map(listed).iter().all(|listed| *listed));
        let losses = LossReport::of(shard, Hint::COLLECTION);
        let unreadable = |number| {
            let of = place(number);
            let place = Reference::new(of.block(), of.offset(), of.len(), 0);
            Unreadable { place, error: StoreError::DataLoss("damaged".into()) }
        };
        let dead = [deleted, short, expired].map(unreadable);
        assert!(!losses.examine(dead.into()).await.unwrap());
        assert_eq!([live, deleted, short, expired].map(listed), [true, false, false, false]);
        assert_eq!(shard.stats().data_losses, 0);
        assert!(losses.examine(vec![unreadable(live)]).await.unwrap());
        assert!(listed(live), "its block is kept for a repair");
        assert_eq!(shard.stats().data_losses, 1);
        assert_eq!(got(store, &key(live)).await, Some(value(live, LARGE)));
    });
}

#[test]
fn blocks_of_expired_values_are_deleted_without_a_move() {
    let bench = bench(12);
    bench.run(async |stores, runtime| {
        let (store, shard) = (&stores[0], stores[0].local());
        for number in 0..40 {
            let expires_at_ms = WALL_MS + 2_000;
            put(store, &key(number), Entry { expires_at_ms, ..value(number, LARGE) }).await;
        }
        shard.log().written_soon(shard.history.seq()).await.unwrap();
        let before = shard.stats().value_blocks;
        rest(runtime, 3 * SECOND_NS).await;
        collect(store).await;
        let stats = shard.stats();
        assert!(stats.value_blocks + 2 < before, "{} of {before}", stats.value_blocks);
        assert_eq!(stats.value_bytes_collected, 0);
        assert_eq!(got(store, &key(3)).await, None);
        let page = store.scan(SliceId(0), None, 100).await.unwrap();
        assert!(page.items.is_empty());
    });
}

#[test]
fn with_interval_durability_a_value_is_durable_before_its_reference() {
    let mut bench = bench(12);
    bench.options.durability = Durability::Interval(Duration::from_secs(1));
    bench.run(async |stores, runtime| {
        let (store, shard) = (&stores[0], stores[0].local());
        for number in 0..30 {
            put(store, &key(number), value(number, LARGE)).await;
        }
        assert!(!shard.log().is_stable(shard.history.seq()));
        rest(runtime, 2 * SECOND_NS).await;
        assert!(shard.log().is_stable(shard.history.seq()));
    });
    bench.run(async |stores, _| {
        for number in 0..30 {
            assert_eq!(got(&stores[0], &key(number)).await, Some(value(number, LARGE)));
        }
    });
}

#[test]
fn removing_everything_frees_all_value_blocks() {
    let bench = bench(12);
    bench.run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        for number in 0..40 {
            put(store, &key(number), value(number, LARGE)).await;
        }
        shard.flush_everything().await.unwrap();
        put(store, "waiting", value(1, LARGE)).await;
        let mut transaction = store.begin();
        transaction.clear();
        store.commit(transaction).await.unwrap();
        shard.log().written_soon(shard.history.seq()).await.unwrap();
        collect(store).await;
        let stats = shard.stats();
        assert_eq!(stats.value_bytes_live, 0);
        assert!(stats.value_blocks <= 1, "the open block: {}", stats.value_blocks);
    });
}

#[test]
fn moves_at_the_same_time_leave_blocks_open_that_have_room_for_a_value() {
    const VALUES: usize = 2000;
    const LEN: usize = 9 << 10;
    let mut bench = bench(512);
    bench.options.durability = Durability::Interval(Duration::from_secs(1));
    bench.run(async |stores, _| {
        let (store, shard) = (&stores[0], stores[0].local());
        for first in (0..VALUES).step_by(40) {
            let numbers = first..first + 40;
            join_all(numbers.map(|number| async move {
                put(store, &key(number), value(number, LEN)).await;
            }))
            .await;
        }
        shard.log().written_soon(shard.history.seq()).await.unwrap();
        let mut rng = Rng::seeded(1);
        for number in (0..VALUES).filter(|_| rng.below(5) < 2) {
            delete(store, &key(number)).await;
        }
        let mover = Mover::of(shard);
        let full = candidates(shard);
        let (free, moved) = (shard.blocks.free_blocks(), shard.values.moved_bytes());
        for blocks in full.chunks(3) {
            let emptied = join_all(blocks.iter().map(|block| mover.empty_block(*block))).await;
            emptied.into_iter().collect::<Result<Vec<()>>>().unwrap();
        }
        let taken = u64::from(free - shard.blocks.free_blocks());
        let capacity = taken * shard.blocks.capacity_bytes() as u64;
        let moved = shard.values.moved_bytes() - moved;
        assert!(capacity < moved * 11 / 10, "{capacity} bytes of blocks for {moved}");
    });
}
