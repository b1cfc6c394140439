//! Free space of a block layer, counted against the FTL's own count.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use softflash_blocks::space::{BLOCKS_OF_LOG, BLOCKS_OF_START, KEPT_BY_BACKGROUND};
use softflash_blocks::{BlockError, BlockId, BlockKind, BlockLayer, Redundancy};
use softflash_ftl::Hint;
use softflash_runtime::RuntimeHandle;
use softflash_testing::on_blocks;

const PATCH: BlockKind = BlockKind::Patch { slice: 0 };
const LOG: BlockKind = BlockKind::Log { segment: 1, after: 0 };
const SECOND_NS: u64 = 1_000_000_000;

async fn put(blocks: &BlockLayer) -> BlockId {
    put_kind(blocks, PATCH).await
}

async fn put_kind(blocks: &BlockLayer, kind: BlockKind) -> BlockId {
    let id = blocks.new_id();
    blocks.put(id, kind, blocks.pieces_of(&[1; 100]), Hint::FLUSH).await.unwrap();
    id
}

/// The FTL's count of free superblocks, and of erased ones among them.
fn free_superblocks(blocks: &BlockLayer) -> (u32, u32) {
    let units = blocks.flash().units();
    let spaces = || units.iter().map(|unit| blocks.flash().space(unit));
    (spaces().map(|space| space.free()).sum(), spaces().map(|space| space.erased).sum())
}

/// Puts and deletes blocks, and compares the count of free blocks after each operation, and again
/// after the erases.
async fn check_count(blocks: &BlockLayer, runtime: &RuntimeHandle, superblocks_each: u32) {
    let all = blocks.free_blocks();
    let mut ids = Vec::new();
    for number in 1..=5 {
        ids.push(put(blocks).await);
        assert_eq!(blocks.free_blocks(), all - number);
    }
    let (free, erased) = free_superblocks(blocks);
    for (id, number) in ids.into_iter().zip(1..) {
        blocks.delete(id);
        assert_eq!(blocks.free_blocks(), all - 5 + number, "right after the delete");
        assert_eq!(free_superblocks(blocks).0, free + number * superblocks_each);
        blocks.delete(id);
        assert_eq!(blocks.free_blocks(), all - 5 + number, "a second delete changes nothing");
    }
    runtime.sleep_until(runtime.now() + SECOND_NS).await;
    assert_eq!(blocks.free_blocks(), all, "erased or not, they are free");
    let after = free_superblocks(blocks);
    assert_eq!(after.0, free + 5 * superblocks_each);
    assert!(after.1 >= erased);
}

#[test]
fn blocks_are_free_right_after_they_are_deleted() {
    on_blocks(Redundancy::None, async |blocks, runtime| check_count(blocks, runtime, 1).await);
    on_blocks(Redundancy::Copies, async |blocks, runtime| check_count(blocks, runtime, 2).await);
}

#[test]
fn as_many_blocks_can_be_written_as_are_counted_as_free() {
    on_blocks(Redundancy::None, async |blocks, _| {
        let mut ids = Vec::new();
        while blocks.free_blocks() > 0 {
            ids.push(put_kind(blocks, LOG).await);
        }
        assert_eq!(ids.len() as u32, blocks.total_blocks());
        let refused = blocks.put(blocks.new_id(), LOG, blocks.pieces_of(&[1]), Hint::FLUSH).await;
        assert_eq!(refused, Err(BlockError::OutOfSpace));
        for id in ids.drain(..).take(3) {
            blocks.delete(id);
        }
        assert_eq!(blocks.free_blocks(), 3);
        for left in [2, 1, 0] {
            put_kind(blocks, LOG).await;
            assert_eq!(blocks.free_blocks(), left);
        }
    });
}

/// Tries to write a block of this kind.
async fn try_put(blocks: &BlockLayer, kind: BlockKind, hint: Hint) -> Result<(), BlockError> {
    blocks.put(blocks.new_id(), kind, blocks.pieces_of(&[1]), hint).await
}

#[test]
fn all_other_blocks_leave_room_for_the_log_and_background_work_also_for_flushes() {
    on_blocks(Redundancy::None, async |blocks, _| {
        let parity = (BlockKind::Parity, Hint::COMPACTION);
        let moved = (BlockKind::Value, Hint::COMPACTION);
        for (kind, hint) in [(PATCH, Hint::COMPACTION), parity, moved].into_iter().cycle() {
            if blocks.free_blocks() == KEPT_BY_BACKGROUND {
                break;
            }
            assert_eq!(try_put(blocks, kind, hint).await, Ok(()));
        }
        for (kind, hint) in [(PATCH, Hint::COMPACTION), parity, moved] {
            assert_eq!(try_put(blocks, kind, hint).await, Err(BlockError::OutOfSpace), "{kind:?}");
        }
        assert_eq!(blocks.room_of_compaction(), 0);
        while blocks.free_blocks() > BLOCKS_OF_LOG {
            assert_eq!(try_put(blocks, PATCH, Hint::FLUSH).await, Ok(()));
        }
        for kind in [PATCH, BlockKind::Parity, BlockKind::Value] {
            let refused = try_put(blocks, kind, Hint::FLUSH).await;
            assert_eq!(refused, Err(BlockError::OutOfSpace), "{kind:?}");
            assert_eq!(blocks.open(blocks.new_id(), kind, Hint::FOREGROUND).err(), refused.err());
        }
        for _ in 0..BLOCKS_OF_LOG {
            assert_eq!(try_put(blocks, LOG, Hint::LOG).await, Ok(()));
        }
        assert_eq!(try_put(blocks, LOG, Hint::LOG).await, Err(BlockError::OutOfSpace));
    });
}

#[test]
fn a_start_without_room_for_its_log_releases_no_more_blocks_than_it_needs() {
    on_blocks(Redundancy::None, async |blocks, _| {
        let mut unlisted = Vec::new();
        while blocks.free_blocks() > 0 {
            unlisted.push(put_kind(blocks, LOG).await);
        }
        let torn = blocks.superblocks(unlisted.remove(0));
        for _ in 0..2 {
            blocks.make_room_for_log(torn.iter(), &unlisted);
            assert_eq!(
                blocks.free_blocks(),
                BLOCKS_OF_START,
                "the torn superblock and three unlisted patches"
            );
            let (gone, kept) = unlisted.split_at(BLOCKS_OF_START as usize - 1);
            assert!(gone.iter().all(|id| !blocks.contains(*id)));
            assert!(kept.iter().all(|id| blocks.contains(*id)));
        }
    });
}
