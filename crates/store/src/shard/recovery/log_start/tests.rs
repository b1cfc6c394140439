use super::*;
use crate::format::log::scan::Rest;
use crate::shard::log::event::Event;
use crate::shard::recovery::replay::tests::{layout, on_flash};
use crate::shard::recovery::run::tests::by_hand::{
    Hand, SHARD, batch, by_hand, edit, entries, opening, stream,
};
use softflash_blocks::{BlockId, Redundancy};
use softflash_device::DeviceError;
use std::collections::BTreeSet;

fn segment(number: u64, after: u64) -> Segment {
    Segment { number, after, block: BlockId(number), superseded_from: None }
}

#[test]
fn segments_are_bypassed_once_the_later_segment_is_confirmed() {
    let layout = layout();
    let mut replay = Replay::new(&layout, ShardId(0));
    let needed = [segment(5, 4), segment(9, 6), segment(14, 9)];
    assert_eq!(bypassed_segments(&needed, &replay), []);
    replay.confirmed_segments.extend([5, 9]);
    assert_eq!(bypassed_segments(&needed, &replay), [5..5, 7..9]);
}

#[test]
fn the_description_of_a_torn_end_names_its_position() {
    let at = Position { segment: 7, page: 12 };
    let text = describe_torn(&End::Torn { at, next_sequence: Some(40) }).unwrap();
    assert!(text.contains("frame 40 (segment 7, page 12) is cut off"), "{text}");
    assert_eq!(describe_torn(&End::Clean { next_sequence: Some(40), rest: Rest::Blank }), None);
    assert_eq!(describe_torn(&End::Corrupt { at, lost: 1..2 }), None);
}

#[test]
fn a_log_that_ends_at_damage_is_read_again_and_a_log_that_was_never_started_is_not() {
    on_flash(async |_, reader, _| {
        let (layout, at) = (layout(), Position { segment: 7, page: 12 });
        let is_read_again = async |end: End| {
            let replayed = (Replay::new(&layout, ShardId(0)), end);
            may_continue(&replayed, &[], reader).await.unwrap()
        };
        assert!(is_read_again(End::Torn { at, next_sequence: None }).await);
        assert!(is_read_again(End::Corrupt { at, lost: 1..2 }).await);
        assert!(!is_read_again(End::Clean { next_sequence: None, rest: Rest::Blank }).await);
    });
}

#[test]
fn recovery_searches_again_for_a_start_that_was_misread() {
    by_hand(Redundancy::None, async |mut hand| {
        let drafts = [opening(3), batch(), stream(&[Event::Edit(&edit(&[], &[], 5))])];
        let block = hand.segment(5, 4, &drafts).await;
        hand.alter_reads(block, 0, 2);
        let reader = hand.reader();
        let mut chain = Chain::of(&hand.found, &reader).await.unwrap();
        // The misread pages are cached. Segment 3 was deleted because of the edit that they hide.
        hand.faults.clear();
        let layout = layout();
        let replayed = StartSearch::new(&layout, SHARD, &reader, &mut chain, &hand.clock)
            .replay_log()
            .await
            .unwrap();
        assert_eq!(replayed.needed.iter().map(|segment| segment.number).collect::<Vec<_>>(), [5]);
        assert_eq!(replayed.replay.next_sequence(), 4);
    });
}

#[test]
fn an_undecided_transaction_before_the_start_does_not_cut_the_log_after_a_misread() {
    by_hand(Redundancy::None, async |mut hand| {
        let undecided =
            stream(&[Event::Prepare { transaction: 7, seq: 5, clear: false, entries: &entries() }]);
        hand.segment(4, 0, &[opening(4), undecided]).await;
        // The recovery that cut it off recorded a new start and deleted segment 4, which is not
        // erased yet.
        let new_start = stream(&[Event::Edit(&edit(&[], &[], 5))]);
        let block = hand.segment(5, 4, &[opening(4), new_start, batch()]).await;
        hand.alter_reads(block, 0, 1);
        let reader = hand.reader();
        let mut chain = Chain::of(&hand.found, &reader).await.unwrap();
        hand.faults.clear();
        let layout = layout();
        let mut replayed = StartSearch::new(&layout, SHARD, &reader, &mut chain, &hand.clock)
            .replay_log()
            .await
            .unwrap();
        assert_eq!(replayed.needed.iter().map(|segment| segment.number).collect::<Vec<_>>(), [5]);
        assert!(!replayed.replay.cut_undecided(&BTreeSet::new()));
    });
}

/// The sequence at which the replay of a log ends, and the kind of end. `change` changes the flash
/// after the first read of the segments.
async fn replayed_after(hand: &Hand, change: impl FnOnce()) -> (u64, End) {
    let reader = hand.reader();
    let needed =
        Chain::of(&hand.found, &reader).await.unwrap().whole(&reader).await.unwrap().to_vec();
    change();
    let layout = layout();
    let replayed = replay_with_retry(&layout, SHARD, &reader, &needed, &hand.clock).await.unwrap();
    (replayed.0.next_sequence(), replayed.1)
}

#[test]
fn a_misread_log_is_replayed_to_its_end() {
    by_hand(Redundancy::None, async |mut hand| {
        let block = hand.segment(5, 4, &[opening(5), batch(), batch()]).await;
        hand.alter_reads(block, 0, 2);
        let (sequence, end) = replayed_after(&hand, || hand.faults.clear()).await;
        assert_eq!(sequence, 4);
        assert!(matches!(end, End::Clean { .. }), "{end:?}");
    });
}

#[test]
fn a_durable_frame_that_only_the_first_read_finds_counts() {
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
fn a_durable_frame_that_only_the_second_read_finds_counts() {
    by_hand(Redundancy::None, async |mut hand| {
        let drafts = [opening(5), batch(), batch().lost(), batch()];
        let block = hand.segment(5, 4, &drafts).await;
        hand.alter_reads(block, 0, 3);
        let (sequence, end) = replayed_after(&hand, || hand.faults.clear()).await;
        assert_eq!(sequence, 3);
        assert!(matches!(end, End::Corrupt { .. }), "{end:?}");
    });
}
