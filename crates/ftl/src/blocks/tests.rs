use super::*;

/// A unit of 2 seats and 4 blocks each, of which all superblocks have the blocks of their own index.
fn composed() -> BlockTable {
    let mut table = BlockTable::new(2, 4);
    for index in 0..4 {
        for seat in 0..2 {
            table.assign(index, seat, index);
        }
    }
    table
}

#[test]
fn a_lead_stands_in_for_no_other() {
    let mut table = BlockTable::new(2, 4);
    table.mark_bad(0, 1);
    table.mark_bad(1, 1);
    assert_eq!(table.stand_in(1, 0), None, "the other leads are good, and lead their own");
    assert_eq!(table.stand_in(1, 1), Some(0), "any other block does");
}

#[test]
fn blocks_count_as_used_from_their_first_erase_on() {
    let mut table = composed();
    assert_eq!(table.unused_from(), 0);
    table.erased(1, 2);
    assert_eq!(table.unused_from(), 3);
    table.erased(0, 1);
    assert_eq!(table.unused_from(), 3, "lower blocks change nothing");
    table.recover_erase_count(0, 3, 7);
    assert_eq!(table.unused_from(), 4);
}

#[test]
fn what_no_header_tells_of_is_taken_for_the_most_worn_unless_it_was_never_used() {
    let mut table = composed();
    table.recover_erase_count(1, 1, 5);
    table.assume_unknown_wear(9, 3);
    let counts = |seat| [0, 1, 2, 3].map(|block| table.erase_count(seat, block));
    assert_eq!((counts(0), counts(1)), ([9, 9, 9, 0], [9, 5, 9, 0]));
    assert_eq!(table.wear(0), (9, true), "both are assumed");
    assert_eq!(table.wear(1), (9, true), "one of them is assumed");
    assert_eq!(table.wear(3), (0, false), "never used: known to be new");
    table.erased(0, 1);
    assert_eq!(table.wear(1), (10, false), "erased: known from then on");
}

#[test]
fn a_superblock_of_two_assumed_blocks_is_of_unknown_wear_until_both_are_known() {
    let mut table = composed();
    table.assume_unknown_wear(1, 4);
    assert_eq!(table.wear(2), (1, true));
    table.erased(0, 2);
    assert_eq!(table.wear(2), (2, true));
    table.erased(1, 2);
    assert_eq!(table.wear(2), (2, false));
}

#[test]
fn the_survey_is_of_the_good_blocks_and_of_what_headers_tell() {
    let mut table = composed();
    for (block, erases) in [(0, 1), (1, 2), (2, 6), (3, 90)] {
        for seat in 0..2 {
            table.recover_erase_count(seat, block, erases);
        }
    }
    table.assume_unknown_wear(0, 0);
    table.mark_bad(0, 3);
    table.mark_bad(1, 3);
    assert_eq!(table.survey(), (1, 3.0, 6, 2));
    table.erased(0, 0);
    assert_eq!(table.survey(), (1, 19.0 / 6.0, 6, 2), "below what is recorded it counts at once");
    for block in 0..4 {
        table.mark_bad(0, block);
        table.mark_bad(1, block);
    }
    assert_eq!(table.survey(), (0, 0.0, 0, 8));
}

#[test]
#[should_panic(expected = "lead 0 stands in for no other and is lost")]
fn a_lead_that_nothing_uses_is_noticed() {
    BlockTable::new(2, 4).check();
}

#[test]
#[should_panic(expected = "block 1 of seat 1 serves superblock 1, which has another")]
fn a_block_that_serves_a_superblock_which_has_another_is_noticed() {
    let mut table = composed();
    table.check();
    table.composition[3] = 2;
    table.check();
}
