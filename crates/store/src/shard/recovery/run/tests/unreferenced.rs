//! Recovery of unreferenced blocks, transactions, stale units, and copies that differ.

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
fn blocks_that_only_the_last_frame_makes_dead_are_orphans() {
    by_hand(Redundancy::None, async |mut hand| {
        // A lower block id than the segment's, for a second segment with its number.
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
        let (earlier, last) = (with(&[1_030]), with(&[1_031]));
        let drafts = [opening, stream(&[Event::Edit(&earlier)]), stream(&[Event::Edit(&last)])];
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
        // Block 1060 is a segment of a failed start, after the end of the log.
        assert_eq!(sorted(&recovered.dead), [999, 1_030, 1_050, 1_060]);
        assert_eq!(sorted(&recovered.orphans), [twin.0, 1_000, 1_011, 1_031]);
        let repaired = hand.recover(OnLogLoss::Accept).await.unwrap();
        assert_eq!(sorted(&repaired.dead), [999, 1_030, 1_050]);
        assert_eq!(sorted(&repaired.orphans), [twin.0, 1_000, 1_011, 1_031, 1_060]);
    });
}

#[test]
fn segments_before_a_start_that_only_the_last_frame_names_are_kept() {
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
fn transaction_numbers_leave_a_gap_after_the_last_one_in_the_log() {
    by_hand(Redundancy::None, async |mut hand| {
        hand.segment(1, 0, &[opening(1), stream(&[Event::Commit(7)]), batch()]).await;
        let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
        assert_eq!(recovered.next_transaction, 8 + 1_048_576);
        assert_eq!(recovered.commits, BTreeSet::from([7]), "the shard is the coordinator");
        assert!(!recovered.cut);
    });
}

#[test]
fn a_transaction_without_a_commit_is_cut_off_under_both_loss_policies() {
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
                let is_reported = is_undecided && on_log_loss == OnLogLoss::Accept;
                assert_eq!(recovered.log_loss.transactions, u64::from(is_reported));
            });
        }
    }
}

#[test]
fn a_degraded_segment_with_one_copy_is_uneven() {
    by_hand(Redundancy::None, async |mut hand| {
        let block = hand.segment(4, 0, &[opening(4), batch()]).await;
        let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
        assert_eq!(recovered.uneven_segments(&hand.blocks), []);
        hand.blocks.note_degraded(block);
        assert_eq!(recovered.uneven_segments(&hand.blocks), [(4, block)]);
    });
}

#[test]
fn stale_units_are_reported_only_where_a_block_in_use_lacks_a_copy() {
    by_hand(Redundancy::None, async |mut hand| {
        let marks = [UnitMark { unit: 1, generation: 1 << 40 }];
        let drafts = [opening(4), stream(&[Event::Units(&marks)]), batch()];
        let block = hand.segment(4, 0, &drafts).await;
        let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
        assert_eq!(recovered.stale_units, []);
        hand.blocks.note_degraded(block);
        let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
        let units: Vec<u16> = recovered.stale_units.iter().map(|stale| stale.unit).collect();
        assert_eq!(units, [1]);
    });
}

#[test]
fn a_frame_in_one_copy_is_not_declared_durable_unless_a_later_frame_has_done_so() {
    by_hand(Redundancy::Copies, async |mut hand| {
        for (segment, durable_before, undeclared) in
            [(4, 1, Some(2)), (5, 2, Some(2)), (6, 3, None)]
        {
            (hand.sequence, hand.found) = (1, Vec::new());
            let (whole, later) =
                (batch().durable_before(1), batch().durable_before(durable_before));
            let drafts =
                [opening(segment).durable_before(1), whole, later, batch().durable_before(1)];
            let block = hand.segment(segment, 0, &drafts).await;
            hand.alter_reads(block, 0, 1);
            let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
            assert_eq!(recovered.resume.undeclared, undeclared, "{durable_before}");
        }
    });
}

#[test]
fn frames_whose_copies_differ_are_reported_except_the_last_one() {
    by_hand(Redundancy::Copies, async |mut hand| {
        let block = hand.segment(4, 0, &[opening(4), batch(), batch()]).await;
        assert_eq!(hand.blocks.superblocks(block).len(), 2);
        // The last frame first: a block stays degraded once it was found so.
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
                let uneven = Vec::from_iter(recovered.uneven.keys().map(|at| at.page));
                assert_eq!(uneven, Vec::from_iter((page == 1).then_some(1)), "copy {copy}");
                let segments = recovered.uneven_segments(&hand.blocks);
                assert_eq!(segments.len(), usize::from(page == 1), "copy {copy}");
            }
        }
    });
}
