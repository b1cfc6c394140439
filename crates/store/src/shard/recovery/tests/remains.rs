//! What recovery makes of blocks that nothing refers to, of transactions, and of units that have come back old.

use super::by_hand::*;
use super::*;
use crate::format::log::event::{Checkpoint, Edit, Event};
use crate::format::log::frame::FrameRole;
use softflash_blocks::{Redundancy, UnitMark};
use softflash_device::DeviceError;

fn patch(slice: u16) -> BlockKind {
    BlockKind::Patch { slice }
}

#[test]
fn what_is_surely_dead_goes_at_once_and_what_the_last_frame_may_bring_back_does_not() {
    by_hand(Redundancy::None, async |mut hand| {
        // A block before the segment's, for a twin of it.
        let twin = hand.blocks.new_id();
        let checkpoint = Checkpoint {
            shards: 1,
            slices: 2,
            log_start: 4,
            unlisted_from: 1_000,
            ..Checkpoint::default()
        };
        let opening = frame(FrameRole::Opening, &[Event::Checkpoint(&checkpoint)]);
        let with = |removed: &[u64]| Edit { unlisted_from: 1_000, ..edit(&[], removed, 4) };
        let (known, told) = (with(&[1_030]), with(&[1_031]));
        let drafts = [opening, stream(&[Event::Edit(&known)]), stream(&[Event::Edit(&told)])];
        hand.segment(4, 0, &drafts).await;
        for id in [999, 1_000, 1_011, 1_030, 1_031] {
            hand.finds(id, patch(0));
        }
        hand.finds(twin.0, BlockKind::Log { segment: 4, after: 0 });
        hand.finds(1_050, BlockKind::Log { segment: 2, after: 0 });
        hand.finds(1_060, BlockKind::Log { segment: 9, after: 4 });
        hand.finds(1_070, BlockKind::User);
        let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
        assert_eq!(recovered.resume.last_segment, 9);
        // Of a start that came to nothing there is a segment behind the end, 1060.
        assert_eq!(sorted(&recovered.dead), [999, 1_030, 1_050, 1_060]);
        assert_eq!(sorted(&recovered.orphans), [twin.0, 1_000, 1_011, 1_031]);
        let repaired = hand.recover(OnLogLoss::Accept).await.unwrap();
        assert_eq!(sorted(&repaired.dead), [999, 1_030, 1_050]);
        assert_eq!(sorted(&repaired.orphans), [twin.0, 1_000, 1_011, 1_031, 1_060]);
    });
}

#[test]
fn segments_that_the_last_frame_gives_up_are_kept_until_something_stands_behind_it() {
    for is_last in [true, false] {
        by_hand(Redundancy::None, async |mut hand| {
            let first = hand.segment(3, 2, &[opening(3), batch()]).await;
            let mut drafts = vec![opening(3), stream(&[Event::Edit(&edit(&[], &[], 4))])];
            drafts.extend((!is_last).then(batch));
            let second = hand.segment(4, 3, &drafts).await;
            hand.finds(500, BlockKind::Log { segment: 2, after: 0 });
            let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
            assert_eq!(recovered.resume.segments, [(4, second)]);
            let (dead, orphans) = (sorted(&recovered.dead), sorted(&recovered.orphans));
            if is_last {
                assert_eq!((dead, orphans), (vec![500], vec![first.0]));
            } else {
                assert_eq!((dead, orphans), (vec![first.0, 500], vec![]));
            }
        });
    }
}

#[test]
fn transactions_are_numbered_far_behind_the_last_that_the_log_tells_of() {
    by_hand(Redundancy::None, async |mut hand| {
        hand.segment(1, 0, &[opening(1), stream(&[Event::Commit(7)]), batch()]).await;
        let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
        assert_eq!(recovered.next_transaction, 8 + 1_048_576);
        assert_eq!(recovered.commits, BTreeSet::from([7]), "this is the coordinator");
        assert!(!recovered.cut);
    });
}

#[test]
fn a_transaction_without_a_commit_is_cut_off_whatever_is_done_about_losses() {
    for on_log_loss in [OnLogLoss::Refuse, OnLogLoss::Accept] {
        for is_undecided in [true, false] {
            by_hand(Redundancy::None, async |mut hand| {
                let entries = entries();
                let entries = &entries[..];
                let prepare = Event::Prepare { transaction: 7, seq: 5, clear: false, entries };
                let mut drafts = vec![opening(1), stream(&[prepare])];
                drafts.extend((!is_undecided).then(|| stream(&[Event::Commit(7)])));
                hand.segment(1, 0, &drafts).await;
                let recovered = hand.recover(on_log_loss).await.unwrap();
                assert_eq!(recovered.cut, is_undecided, "{on_log_loss:?}");
                let told = is_undecided && on_log_loss == OnLogLoss::Accept;
                assert_eq!(recovered.log_loss.transactions, u64::from(told));
            });
        }
    }
}

#[test]
fn a_segment_that_is_there_once_is_uneven_where_it_lacks_a_copy() {
    by_hand(Redundancy::None, async |mut hand| {
        let block = hand.segment(4, 0, &[opening(4), batch()]).await;
        let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
        assert_eq!(recovered.uneven_segments(&hand.blocks), []);
        hand.blocks.note_degraded(block);
        assert_eq!(recovered.uneven_segments(&hand.blocks), [(4, block)]);
    });
}

#[test]
fn a_unit_is_old_only_where_something_in_use_lacks_a_copy() {
    by_hand(Redundancy::None, async |mut hand| {
        let marks = [UnitMark { unit: 1, generation: 1 << 40 }];
        let drafts = [opening(4), stream(&[Event::Units(&marks)]), batch()];
        let block = hand.segment(4, 0, &drafts).await;
        let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
        assert_eq!(recovered.stale_units, []);
        hand.blocks.note_degraded(block);
        let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
        let units: Vec<u16> = recovered.stale_units.iter().map(|old| old.unit).collect();
        assert_eq!(units, [1]);
    });
}

#[test]
fn copies_that_differ_are_told_but_for_the_last_frame() {
    by_hand(Redundancy::Copies, async |mut hand| {
        let block = hand.segment(4, 0, &[opening(4), batch(), batch()]).await;
        assert_eq!(hand.blocks.superblocks(block).len(), 2);
        // The last frame first: what is known of the copies stays known.
        for page in [2, 1] {
            for (copy, can_be_read) in [(0, true), (1, true), (0, false), (1, false)] {
                hand.faults.clear();
                if can_be_read {
                    hand.alter_reads(block, copy, page);
                } else {
                    hand.fail_reads(block, copy, page, DeviceError::Uncorrectable);
                }
                let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
                assert_eq!(recovered.resume.next_frame, 4, "copy {copy}, page {page}");
                let uneven = Vec::from_iter(recovered.uneven.iter().map(|at| at.page));
                assert_eq!(uneven, Vec::from_iter((page == 1).then_some(1)), "copy {copy}");
                let segments = recovered.uneven_segments(&hand.blocks);
                assert_eq!(segments.len(), usize::from(page == 1), "copy {copy}");
            }
        }
    });
}
