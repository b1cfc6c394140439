//! Logs that have lost something, and how recovery gets past it where it may.

use super::by_hand::*;
use super::*;
use crate::format::log::event::Event;
use softflash_base::IoBuf;
use softflash_blocks::Redundancy;
use softflash_device::DeviceError;
use softflash_ftl::Hint;

fn refusal(recovered: Result<Recovered>) -> String {
    match recovered {
        Err(StoreError::DataLoss(what)) => what,
        Err(other) => other.to_string(),
        Ok(_) => "recovered".into(),
    }
}

/// The frames that are lost, each run from its first up to the one behind its last.
fn frames(loss: &LogLoss) -> Vec<(u64, u64)> {
    loss.frames.iter().map(|frames| (frames.start, frames.end)).collect()
}

#[test]
fn a_last_segment_that_was_whole_is_refused_or_told_as_a_loss() {
    by_hand(Redundancy::None, async |mut hand| {
        hand.segment(4, 0, &[opening(4), batch()]).await;
        let last = hand.segment(5, 4, &[opening(4), batch()]).await;
        hand.fail_reads(last, 0, 0, DeviceError::Uncorrectable);
        hand.fail_reads(last, 0, 1, DeviceError::Uncorrectable);
        let refused = refusal(hand.recover(OnLogLoss::Refuse).await);
        assert!(refused.contains("cannot be read"), "{refused}");
        let accepted = hand.recover(OnLogLoss::Accept).await.unwrap();
        // The two frames of segment 4 are there; nobody knows what came behind them.
        assert_eq!((frames(&accepted.log_loss), accepted.log_loss.is_whole), (vec![(3, 4)], false));
    });
}

#[test]
fn patches_that_no_tree_lists_count_where_frames_are_lost() {
    // Whether the patch that the tree lists is there, and patches that no tree lists.
    let cases = [(false, 0), (false, 1), (true, 0), (true, 2)];
    for (is_there, unlisted) in cases {
        by_hand(Redundancy::None, async |mut hand| {
            let edit = edit(&[700], &[730], 4);
            let drafts =
                [opening(4), stream(&[Event::Edit(&edit)]), batch(), batch().lost(), batch()];
            hand.segment(4, 0, &drafts).await;
            if is_there {
                let (id, kind) = (BlockId(700), BlockKind::Patch { slice: 0 });
                let page = vec![IoBuf::zeroed(hand.blocks.page_bytes())];
                hand.blocks.put(id, kind, page, Hint::LOG).await.unwrap();
                hand.finds(700, kind);
            }
            for id in 0..unlisted {
                hand.finds(710 + id, BlockKind::Patch { slice: 0 });
            }
            // Neither one that was taken out of its tree, nor a segment, is missed by anyone.
            hand.finds(730, BlockKind::Patch { slice: 0 });
            hand.finds(740, BlockKind::Log { segment: 2, after: 0 });
            let refused = refusal(hand.recover(OnLogLoss::Refuse).await);
            assert!(refused.contains("frame 4 was durable"), "{refused}");
            let accepted = hand.recover(OnLogLoss::Accept).await;
            if !is_there && unlisted > 0 {
                let refused = refusal(accepted);
                assert!(refused.contains("has lost a change of a tree"), "{refused}");
                return;
            }
            let loss = accepted.unwrap().log_loss;
            assert_eq!((frames(&loss), loss.unlisted), (vec![(4, 5)], unlisted));
        });
    }
}

#[test]
fn without_losses_nobody_counts_what_no_tree_lists() {
    by_hand(Redundancy::None, async |mut hand| {
        let edit = edit(&[700], &[], 4);
        hand.segment(4, 0, &[opening(4), stream(&[Event::Edit(&edit)]), batch()]).await;
        hand.finds(710, BlockKind::Patch { slice: 0 });
        for on_log_loss in [OnLogLoss::Refuse, OnLogLoss::Accept] {
            let recovered = hand.recover(on_log_loss).await.unwrap();
            assert_eq!(recovered.log_loss, LogLoss::default());
            assert_eq!(sorted(&recovered.orphans), [710]);
        }
    });
}

#[test]
fn a_first_segment_that_is_missing_is_named() {
    by_hand(Redundancy::None, async |mut hand| {
        hand.segment(5, 4, &[opening(3), batch()]).await;
        let refused = refusal(hand.recover(OnLogLoss::Refuse).await);
        let named = "segment 3 of the log of shard 0: it is missing; the first one found is 5";
        assert!(refused.contains(named), "{refused}");
    });
}

#[test]
fn a_first_segment_of_which_nothing_can_be_read_is_refused() {
    by_hand(Redundancy::None, async |mut hand| {
        hand.finds(800, BlockKind::Log { segment: 4, after: 0 });
        hand.segment(5, 4, &[opening(4), batch()]).await;
        let refused = refusal(hand.recover(OnLogLoss::Refuse).await);
        assert!(refused.contains("its checkpoint is damaged"), "{refused}");
    });
}

#[test]
fn the_start_of_a_log_that_was_misread_is_looked_for_once_more() {
    by_hand(Redundancy::None, async |mut hand| {
        let drafts = [opening(3), batch(), stream(&[Event::Edit(&edit(&[], &[], 5))])];
        let block = hand.segment(5, 4, &drafts).await;
        hand.alter_reads(block, 0, 2);
        let reader = hand.reader();
        let mut chain = Chain::of(&hand.found, &reader).await.unwrap();
        // What was misread is kept; segment 3 was given back for the sake of the frame that it hides.
        hand.faults.clear();
        let layout = layout();
        let replayed = replay_log(&layout, SHARD, &reader, &mut chain, &hand.clock).await.unwrap();
        assert_eq!(replayed.needed.iter().map(|segment| segment.number).collect::<Vec<_>>(), [5]);
        assert_eq!(replayed.replay.next_sequence(), 4);
    });
}

#[test]
fn what_was_cut_off_once_does_not_cut_again_though_the_start_was_misread() {
    by_hand(Redundancy::None, async |mut hand| {
        let undecided =
            stream(&[Event::Prepare { transaction: 7, seq: 5, clear: false, entries: &entries() }]);
        hand.segment(4, 0, &[opening(4), undecided]).await;
        // The recovery that has cut it off has said so by a new start, and given it back; it is not erased yet.
        let given_back = stream(&[Event::Edit(&edit(&[], &[], 5))]);
        let block = hand.segment(5, 4, &[opening(4), given_back, batch()]).await;
        hand.alter_reads(block, 0, 1);
        let reader = hand.reader();
        let mut chain = Chain::of(&hand.found, &reader).await.unwrap();
        hand.faults.clear();
        let layout = layout();
        let mut replayed =
            replay_log(&layout, SHARD, &reader, &mut chain, &hand.clock).await.unwrap();
        assert_eq!(replayed.needed.iter().map(|segment| segment.number).collect::<Vec<_>>(), [5]);
        assert!(!replayed.replay.settle(&BTreeSet::new()));
    });
}

/// The sequence at which the replay of a log stops, and how, where `change` comes over the flash behind the first look at it.
async fn replayed_after(hand: &Hand, change: impl FnOnce()) -> (u64, End) {
    let reader = hand.reader();
    let needed =
        Chain::of(&hand.found, &reader).await.unwrap().whole(&reader).await.unwrap().to_vec();
    change();
    let layout = layout();
    let replayed = replay_surely(&layout, SHARD, &reader, &needed, &hand.clock).await.unwrap();
    (replayed.0.next_sequence(), replayed.1)
}

#[test]
fn a_log_that_was_misread_is_replayed_as_far_as_it_goes() {
    by_hand(Redundancy::None, async |mut hand| {
        let block = hand.segment(5, 4, &[opening(5), batch(), batch()]).await;
        hand.alter_reads(block, 0, 2);
        let (sequence, end) = replayed_after(&hand, || hand.faults.clear()).await;
        assert_eq!(sequence, 4);
        assert!(matches!(end, End::Clean { .. }), "{end:?}");
    });
}

#[test]
fn what_was_seen_to_be_durable_counts_though_it_cannot_be_read_again() {
    by_hand(Redundancy::None, async |mut hand| {
        let drafts = [opening(5), batch(), batch().lost(), batch()];
        let block = hand.segment(5, 4, &drafts).await;
        let (sequence, end) = replayed_after(&hand, || {
            hand.fail_reads(block, 0, 3, DeviceError::Uncorrectable);
        })
        .await;
        assert_eq!(sequence, 3);
        assert!(matches!(end, End::Corrupt { .. }), "{end:?}");
    });
}

#[test]
fn what_is_seen_to_be_durable_only_when_it_is_read_again_counts_too() {
    by_hand(Redundancy::None, async |mut hand| {
        let drafts = [opening(5), batch(), batch().lost(), batch()];
        let block = hand.segment(5, 4, &drafts).await;
        hand.alter_reads(block, 0, 3);
        let (sequence, end) = replayed_after(&hand, || hand.faults.clear()).await;
        assert_eq!(sequence, 3);
        assert!(matches!(end, End::Corrupt { .. }), "{end:?}");
    });
}

#[test]
fn a_log_that_ends_where_its_last_segment_does_has_lost_nothing() {
    by_hand(Redundancy::None, async |mut hand| {
        let pages = hand.blocks.capacity_bytes() / hand.blocks.page_bytes();
        let batches = (1..pages).map(|_| batch());
        let drafts: Vec<Draft> = [opening(5)].into_iter().chain(batches).collect();
        hand.segment(5, 4, &drafts).await;
        let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
        assert_eq!(recovered.resume.next_frame, pages as u64 + 1);
    });
}
