//! Tests of the reader with hand-written segments and read errors.

use super::*;
use crate::format::log::Position;
use crate::format::log::frame::{HEADER_BYTES, MAX_FRAME_BYTES};
use crate::shard::recovery::run::tests::by_hand::{
    Hand, batch, by_hand, by_hand_on, bytes, opening,
};
use softflash_device::DeviceError;
use softflash_testing::faulty::OperationKind;

async fn segments(hand: &Hand, reader: &LogReader) -> Vec<Segment> {
    let mut chain = Chain::of(&hand.found, reader).await.unwrap();
    chain.whole(reader).await.unwrap().to_vec()
}

#[test]
fn a_segment_with_only_an_opening_is_not_proved() {
    by_hand(Redundancy::None, async |mut hand| {
        let block = hand.segment(5, 4, &[opening(5)]).await;
        let segment = Segment { number: 5, after: 4, block, superseded_from: None };
        let stop = hand.reader().unproved_end(&segment).await.unwrap();
        assert_eq!(stop, Some(Position { segment: 5, page: 1 }));
    });
}

#[test]
fn a_segment_is_unproved_only_if_two_reads_agree() {
    by_hand(Redundancy::None, async |mut hand| {
        let block = hand.segment(5, 4, &[opening(5), batch()]).await;
        let segment = Segment { number: 5, after: 4, block, superseded_from: None };
        // Reads of the proof fail together with other pages, and on the first read of it alone.
        let (is_proof, mut is_over) = (hand.is_for(block, 0, 1), false);
        hand.faults.fail_if(move |command| {
            let is_read = OperationKind::of(&command.operation) == OperationKind::Read;
            let fails = !is_over && is_read && is_proof(&command.target);
            is_over |= fails && command.target.rows == 1;
            fails.then_some(DeviceError::Uncorrectable)
        });
        assert_eq!(hand.reader().unproved_end(&segment).await.unwrap(), None);
        assert!(hand.faults.commands_failed() > 1, "one single-page read failed");
    });
}

#[test]
fn a_segment_that_a_start_has_passed_over_may_have_lost_pages() {
    by_hand(Redundancy::None, async |mut hand| {
        hand.segment(5, 4, &[opening(5), batch()]).await;
        let passed_over = hand.segment(6, 5, &[opening(5), batch(), batch(), batch()]).await;
        let pages = [0, 1, 2, 3].map(|page| hand.is_for(passed_over, 0, page));
        hand.faults.fail_if(move |command| {
            let is_read = OperationKind::of(&command.operation) == OperationKind::Read;
            let is_lost = is_read && pages.iter().any(|is_there| is_there(&command.target));
            is_lost.then_some(DeviceError::Uncorrectable)
        });
        let refused = Chain::of(&hand.found, &hand.reader()).await.unwrap_err().to_string();
        assert!(refused.contains("page 0 was programmed completely"), "{refused}");
        // Its erase was interrupted, after the start had written an opening of its own.
        hand.segment(7, 5, &[opening(5)]).await;
        let found = segments(&hand, &hand.reader()).await;
        assert_eq!(found.iter().map(|segment| segment.number).collect::<Vec<_>>(), [5]);
    });
}

#[test]
fn an_unidentified_superblock_without_durable_frames_is_not_data_loss() {
    by_hand(Redundancy::None, async |mut hand| {
        hand.sequence = 40;
        let begun = hand.segment(7, 6, &[opening(7)]).await;
        let used = hand.segment(8, 7, &[opening(7), batch().durable_before(41), batch()]).await;
        let look = async |block| {
            let superblock = hand.blocks.superblocks(block)[0];
            let looked = hand.reader().refuse_lost_segment(&superblock, 6).await;
            looked.map_err(|error| error.to_string())
        };
        assert_eq!(look(begun).await, Ok(()), "only earlier frames were durable");
        let refused = look(used).await.unwrap_err();
        assert!(refused.contains("it holds durable frames"), "{refused}");
    });
}

#[test]
fn frames_on_a_dead_die_are_skipped_only_where_losses_are_accepted() {
    by_hand(Redundancy::None, async |mut hand| {
        let block = hand.segment(5, 4, &[opening(5), batch(), batch()]).await;
        let segments = segments(&hand, &hand.reader()).await;
        hand.fail_reads(block, 0, 2, DeviceError::DeadDie);
        let reader = hand.reader();
        let refused = reader.scan(&segments, |_| Ok(())).await;
        assert!(matches!(refused, Err(StoreError::DataLoss(_))), "{refused:?}");
        reader.accept_losses();
        let mut read = 0;
        let passed = reader.scan(&segments, |_| {
            read += 1;
            Ok(())
        });
        assert!(matches!(passed.await, Ok(End::Clean { .. })));
        assert_eq!(read, 2);
    });
}

#[test]
fn the_first_frame_is_found_after_a_repeated_frame_of_maximum_length() {
    by_hand_on(4 << 20, Redundancy::None, async |mut hand| {
        let longest = MAX_FRAME_BYTES - HEADER_BYTES;
        let drafts = [bytes(FrameRole::Copy, longest), bytes(FrameRole::Opening, longest)];
        let block = hand.segment(5, 4, &drafts).await;
        let segment = Segment { number: 5, after: 4, block, superseded_from: None };
        assert_eq!(hand.reader().first_sequence(&segment).await.unwrap(), Some(2));
    });
}
