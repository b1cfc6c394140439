//! Admission on full or nearly full flash.

use super::*;
use softflash_blocks::BlockKind;
use softflash_ftl::Hint;

const FULL: Result<(), StoreError> = Err(StoreError::OutOfSpace);

/// Allocates or deletes blocks until `free` blocks are free.
async fn leave_free(shard: &Shard, free: u32) {
    let blocks = &shard.blocks;
    while blocks.free_blocks() > free {
        let id = blocks.new_id();
        let kind = BlockKind::Patch { slice: 0 };
        blocks.put(id, kind, blocks.pieces_of(&[1]), Hint::FLUSH).await.unwrap();
    }
    let log = shard.log.segments();
    for id in blocks.ids().into_iter().filter(|id| !log.contains(id)) {
        if blocks.free_blocks() < free {
            blocks.delete(id);
        }
    }
    assert_eq!(blocks.free_blocks(), free);
}

#[test]
fn limits_of_free_space_are_reached_in_order() {
    with_shard(async |_, shard, _| {
        let (reserve_blocks, last_blocks) = (shard.reserve_blocks(), shard.last_blocks());
        let states = [
            (reserve_blocks * 9 / 8 + 1, false, false, true),
            (reserve_blocks * 9 / 8, true, false, true),
            (reserve_blocks, true, false, true),
            (reserve_blocks - 1, true, true, true),
            (last_blocks, true, true, true),
            (last_blocks - 1, true, true, false),
        ];
        for (free, is_short, is_full, has_room) in states {
            leave_free(shard, free).await;
            let found = (shard.space_is_short(), shard.is_full(), shard.has_room(1));
            assert_eq!(found, (is_short, is_full, has_room), "{free} free");
        }
    });
}

#[test]
fn new_data_is_refused_when_no_task_can_free_space() {
    with_shard(async |_, shard, runtime| {
        leave_free(shard, shard.reserve_blocks() - 1).await;
        // Compaction checks once more, and has no work.
        let compaction = async {
            rest(runtime, SECOND_NS).await;
            shard.tasks.set_compaction_idle(true);
        };
        let ((admitted, ()), took_ns) =
            timed(runtime, join(shard.admit(Demand::of(1, true)), compaction)).await;
        assert_eq!(admitted, FULL);
        assert!((SECOND_NS..SECOND_NS + 50 * MS_NS).contains(&took_ns), "{took_ns}");
        assert_eq!(shard.stats().refused_writes, 1);
        let (admitted, took_ns) = timed(runtime, shard.admit(Demand::of(1, false))).await;
        assert_eq!((admitted, took_ns), (Ok(()), 0), "deletions are admitted");
        leave_free(shard, shard.reserve_blocks()).await;
        assert_eq!(shard.admit(Demand::of(1, true)).await, Ok(()));
        assert_eq!(shard.stats().refused_writes, 1);
    });
}

#[test]
fn new_data_waits_while_a_compaction_or_a_flush_may_free_space() {
    for flushing in [false, true] {
        with_shard(async |_, shard, runtime| {
            leave_free(shard, shard.reserve_blocks() - 1).await;
            if flushing {
                fill(shard, 1000);
                shard.freeze_largest();
            }
            let compaction = async {
                rest(runtime, MS_NS).await;
                shard.tasks.set_compaction_idle(flushing);
            };
            let ((admitted, ()), took_ns) =
                timed(runtime, join(shard.admit(Demand::of(1, true)), compaction)).await;
            assert_eq!(admitted, FULL, "refused after the timeout");
            assert!((30 * SECOND_NS..31 * SECOND_NS).contains(&took_ns), "{took_ns}");
            assert_eq!(shard.stats().stall_longest_us, took_ns / 1000);
            let room = async {
                shard.tasks.set_compaction_idle(flushing);
                rest(runtime, 5 * SECOND_NS).await;
                leave_free(shard, shard.reserve_blocks()).await;
            };
            let ((admitted, ()), took_ns) =
                timed(runtime, join(shard.admit(Demand::of(1, true)), room)).await;
            assert_eq!(admitted, Ok(()));
            assert!((5 * SECOND_NS..6 * SECOND_NS).contains(&took_ns), "{took_ns}");
        });
    }
}

#[test]
fn deletions_wait_for_the_last_blocks_and_new_data_does_not() {
    with_shard(async |_, shard, runtime| {
        leave_free(shard, shard.last_blocks() - 1).await;
        let (admitted, took_ns) = timed(runtime, shard.wait_for_room(Demand::of(1, true))).await;
        assert_eq!((admitted, took_ns), (FULL, 0));
        let (admitted, took_ns) = timed(runtime, shard.wait_for_room(Demand::of(1, false))).await;
        assert_eq!(admitted, FULL);
        assert!((10 * SECOND_NS..11 * SECOND_NS).contains(&took_ns), "{took_ns}");
        // For lack of memory no write is refused.
        leave_free(shard, shard.last_blocks()).await;
        fill(shard, 1000);
        let total = shard.limits().memtables_total_bytes;
        for grows in [true, false] {
            let waiting =
                within(runtime, 60 * SECOND_NS, shard.wait_for_room(Demand::of(total, grows)))
                    .await;
            assert_eq!(waiting, None);
        }
    });
}

#[test]
fn a_removal_of_all_keys_is_admitted_where_deletions_are_not() {
    with_shard(async |_, shard, runtime| {
        leave_free(shard, shard.last_blocks() - 1).await;
        let clear = Demand { clears: true, ..Demand::of(0, false) };
        assert_eq!(within(runtime, MS_NS, shard.admit(clear)).await, Some(Ok(())));
        assert_eq!(within(runtime, MS_NS, shard.admit(Demand::of(1, false))).await, None);
    });
}
