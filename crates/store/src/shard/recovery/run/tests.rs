use super::*;
use crate::format::log::scan::Rest;
use crate::shard::recovery::replay::tests::{layout, on_flash};

pub(in crate::shard) mod by_hand;
mod losses;
mod unreferenced;

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
