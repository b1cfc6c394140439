use super::*;

fn pending(clears: &[(u64, u64)]) -> PendingClears {
    let clear = |(seq, first_segment): &(u64, u64)| Pending {
        seq: *seq,
        first_segment: *first_segment,
        patches: Vec::new(),
    };
    PendingClears { pending: RefCell::new(clears.iter().map(clear).collect()) }
}

#[test]
fn a_removal_is_decided_once_nothing_before_it_is_undecided_nor_itself() {
    let clears = pending(&[(5, 1), (8, 2)]);
    let take = |undecided_from| clears.take_decided(undecided_from).map(|clear| clear.seq);
    assert_eq!((take(4), take(5)), (None, None), "it is a part of what is undecided");
    assert_eq!((take(6), take(8)), (Some(5), None));
    assert_eq!((take(u64::MAX), take(u64::MAX)), (Some(8), None));
}

#[test]
fn what_may_come_back_keeps_its_segments_of_the_log() {
    let clears = pending(&[(5, 7), (8, 9)]);
    assert_eq!(clears.first_segment_needed(), 7);
    assert!(clears.take_decided(6).is_some());
    assert_eq!(clears.first_segment_needed(), 9);
    assert!(clears.take_decided(9).is_some());
    assert_eq!(clears.first_segment_needed(), u64::MAX);
}
