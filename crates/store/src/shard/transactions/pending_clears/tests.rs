use super::*;

fn pending(clears: &[(u64, u64)]) -> PendingClears {
    let clear = |(seq, first_segment): &(u64, u64)| PendingClear {
        seq: *seq,
        first_segment: *first_segment,
        patches: Vec::new(),
    };
    PendingClears { pending: RefCell::new(clears.iter().map(clear).collect()) }
}

#[test]
fn a_removal_is_decided_once_it_and_all_earlier_transactions_are() {
    let clears = pending(&[(5, 1), (8, 2)]);
    let take = |undecided_from| clears.take_decided(undecided_from).map(|clear| clear.seq);
    assert_eq!((take(4), take(5)), (None, None), "it is part of an undecided transaction");
    assert_eq!((take(6), take(8)), (Some(5), None));
    assert_eq!((take(u64::MAX), take(u64::MAX)), (Some(8), None));
}

#[test]
fn an_undecided_removal_keeps_the_segments_before_it() {
    let clears = pending(&[(5, 7), (8, 9)]);
    assert_eq!(clears.first_segment_needed(), 7);
    assert!(clears.take_decided(6).is_some());
    assert_eq!(clears.first_segment_needed(), 9);
    assert!(clears.take_decided(9).is_some());
    assert_eq!(clears.first_segment_needed(), u64::MAX);
}
