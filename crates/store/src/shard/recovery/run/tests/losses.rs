//! Recovery of logs with lost frames.

use super::by_hand::*;
use super::*;
use crate::format::log::event::Event;
use softflash_base::IoBuf;
use softflash_blocks::Redundancy;
use softflash_device::DeviceError;
use softflash_ftl::Hint;

fn refusal(recovered: Result<Recovered>) -> String {
    match recovered {
        Err(StoreError::DataLoss(reason)) => reason,
        Err(other) => other.to_string(),
        Ok(_) => "recovered".into(),
    }
}

/// The ranges of lost frames, each from its first frame up to the one after its last.
fn frames(loss: &LogLoss) -> Vec<(u64, u64)> {
    loss.frames.iter().map(|frames| (frames.start, frames.end)).collect()
}

#[test]
fn an_unreadable_last_segment_that_was_programmed_is_refused_or_reported_as_a_loss() {
    by_hand(Redundancy::None, async |mut hand| {
        hand.segment(4, 0, &[opening(4), batch()]).await;
        let last = hand.segment(5, 4, &[opening(4), batch()]).await;
        hand.fail_reads(last, 0, 0, DeviceError::Uncorrectable);
        hand.fail_reads(last, 0, 1, DeviceError::Uncorrectable);
        let refused = refusal(hand.recover(OnLogLoss::Refuse).await);
        assert!(refused.contains("cannot be read"), "{refused}");
        let accepted = hand.recover(OnLogLoss::Accept).await.unwrap();
        // The two frames of segment 4 are readable; the number of later frames is unknown.
        assert_eq!((frames(&accepted.log_loss), accepted.log_loss.is_whole), (vec![(3, 4)], false));
    });
}

#[test]
fn unlisted_patches_are_counted_where_frames_are_lost() {
    // Whether the listed patch exists, and the number of unlisted patches.
    let cases = [(false, 0), (false, 1), (true, 0), (true, 2)];
    for (exists, unlisted) in cases {
        by_hand(Redundancy::None, async |mut hand| {
            let edit = edit(&[700], &[730], 4);
            let drafts =
                [opening(4), stream(&[Event::Edit(&edit)]), batch(), batch().lost(), batch()];
            hand.segment(4, 0, &drafts).await;
            if exists {
                let (id, kind) = (BlockId(700), BlockKind::Patch { slice: 0 });
                let page = vec![IoBuf::zeroed(hand.blocks.page_bytes())];
                hand.blocks.put(id, kind, page, Hint::LOG).await.unwrap();
                hand.finds(700, kind);
            }
            for id in 0..unlisted {
                hand.finds(710 + id, BlockKind::Patch { slice: 0 });
            }
            // A patch that was removed from its tree, or a segment, does not count.
            hand.finds(730, BlockKind::Patch { slice: 0 });
            hand.finds(740, BlockKind::Log { segment: 2, after: 0 });
            let refused = refusal(hand.recover(OnLogLoss::Refuse).await);
            assert!(refused.contains("frame 4 was durable"), "{refused}");
            let accepted = hand.recover(OnLogLoss::Accept).await;
            if !exists && unlisted > 0 {
                let refused = refusal(accepted);
                assert!(refused.contains("has lost an edit of a tree"), "{refused}");
                return;
            }
            let loss = accepted.unwrap().log_loss;
            assert_eq!((frames(&loss), loss.unlisted), (vec![(4, 5)], unlisted));
        });
    }
}

#[test]
fn unlisted_patches_are_not_counted_without_losses() {
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
fn the_error_names_a_missing_first_segment() {
    by_hand(Redundancy::None, async |mut hand| {
        hand.segment(5, 4, &[opening(3), batch()]).await;
        let refused = refusal(hand.recover(OnLogLoss::Refuse).await);
        let named = "segment 3 of the log of shard 0: it is missing; the first segment found is 5";
        assert!(refused.contains(named), "{refused}");
    });
}

#[test]
fn an_unreadable_first_segment_is_refused() {
    by_hand(Redundancy::None, async |mut hand| {
        hand.finds(800, BlockKind::Log { segment: 4, after: 0 });
        hand.segment(5, 4, &[opening(4), batch()]).await;
        let refused = refusal(hand.recover(OnLogLoss::Refuse).await);
        assert!(refused.contains("its checkpoint is damaged"), "{refused}");
    });
}

#[test]
fn a_log_that_fills_its_last_segment_has_no_losses() {
    by_hand(Redundancy::None, async |mut hand| {
        let pages = hand.blocks.capacity_bytes() / hand.blocks.page_bytes();
        let batches = (1..pages).map(|_| batch());
        let drafts: Vec<Draft> = [opening(5)].into_iter().chain(batches).collect();
        hand.segment(5, 4, &drafts).await;
        let recovered = hand.recover(OnLogLoss::Refuse).await.unwrap();
        assert_eq!(recovered.resume.next_frame, pages as u64 + 1);
    });
}
