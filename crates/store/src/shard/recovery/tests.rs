use super::*;
use crate::format::log::scan::Rest;
use crate::shard::replay::tests::{layout, on_flash};

pub(in crate::shard) mod by_hand;
mod losses;
mod remains;

fn segment(number: u64, after: u64) -> Segment {
    Segment { number, after, block: BlockId(number), superseded_from: None }
}

#[test]
fn segments_that_a_later_one_goes_around_are_passed_over_once_that_one_surely_counts() {
    let layout = layout();
    let mut replay = Replay::new(&layout, ShardId(0));
    let needed = [segment(5, 4), segment(9, 6), segment(14, 9)];
    assert_eq!(passed_over(&needed, &replay), []);
    replay.surely_counting.extend([5, 9]);
    assert_eq!(passed_over(&needed, &replay), [5..5, 7..9]);
}

#[test]
fn a_torn_end_is_told_with_its_place() {
    let at = Position { segment: 7, page: 12 };
    let told = describe_torn(&End::Torn { at, next_sequence: Some(40) }).unwrap();
    assert!(told.contains("frame 40 (segment 7, page 12) is cut off"), "{told}");
    assert_eq!(describe_torn(&End::Clean { next_sequence: Some(40), rest: Rest::Blank }), None);
    assert_eq!(describe_torn(&End::Corrupt { at, lost: 1..2 }), None);
}

#[test]
fn a_log_that_stops_at_damage_is_read_once_more_and_one_that_was_never_begun_is_not() {
    on_flash(async |_, reader, _| {
        let (layout, at) = (layout(), Position { segment: 7, page: 12 });
        let doubtful = async |end: End| {
            let replayed = (Replay::new(&layout, ShardId(0)), end);
            is_doubtful(&replayed, &[], reader).await.unwrap()
        };
        assert!(doubtful(End::Torn { at, next_sequence: None }).await);
        assert!(doubtful(End::Corrupt { at, lost: 1..2 }).await);
        assert!(!doubtful(End::Clean { next_sequence: None, rest: Rest::Blank }).await);
    });
}
