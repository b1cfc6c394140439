use super::*;

/// A unit of 2 stripe columns with 4 blocks each; all superblocks have the blocks of their index.
fn composed() -> BlockTable {
    let mut table = BlockTable::new(2, 4);
    for index in 0..4 {
        for column in 0..2 {
            table.assign(index, column, index);
        }
    }
    table
}

#[test]
fn a_lead_block_replaces_no_other_block() {
    let mut table = BlockTable::new(2, 4);
    table.mark_bad(0, 1);
    table.mark_bad(1, 1);
    assert_eq!(table.replacement(1, 0), None, "a lead block serves only its own superblock");
    assert_eq!(table.replacement(1, 1), Some(0), "any other spare is a replacement");
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
fn used_blocks_without_a_header_count_as_the_most_worn() {
    let mut table = composed();
    table.recover_erase_count(1, 1, 5);
    table.assume_unknown_wear(9, 3);
    let counts = |column| [0, 1, 2, 3].map(|block| table.erase_count(column, block));
    assert_eq!((counts(0), counts(1)), ([9, 9, 9, 0], [9, 5, 9, 0]));
    assert_eq!(table.wear(0), (9, true), "both counts are assumed");
    assert_eq!(table.wear(1), (9, true), "one count is assumed");
    assert_eq!(table.wear(3), (0, false), "never used: known to be 0");
    table.erased(0, 1);
    assert_eq!(table.wear(1), (10, false), "known after an erase");
}

#[test]
fn the_wear_of_a_superblock_is_unknown_until_all_its_counts_are_known() {
    let mut table = composed();
    table.assume_unknown_wear(1, 4);
    assert_eq!(table.wear(2), (1, true));
    table.erased(0, 2);
    assert_eq!(table.wear(2), (2, true));
    table.erased(1, 2);
    assert_eq!(table.wear(2), (2, false));
}

#[test]
fn the_survey_counts_good_blocks_and_recorded_erases() {
    let mut table = composed();
    for (block, erases) in [(0, 1), (1, 2), (2, 6), (3, 90)] {
        for column in 0..2 {
            table.recover_erase_count(column, block, erases);
        }
    }
    table.assume_unknown_wear(0, 0);
    table.mark_bad(0, 3);
    table.mark_bad(1, 3);
    assert_eq!(table.survey(), (1, 3.0, 6, 2));
    table.erased(0, 0);
    assert_eq!(
        table.survey(),
        (1, 19.0 / 6.0, 6, 2),
        "an erase up to the recorded count is included at once"
    );
    for block in 0..4 {
        table.mark_bad(0, block);
        table.mark_bad(1, block);
    }
    assert_eq!(table.survey(), (0, 0.0, 0, 8));
}

#[test]
#[should_panic(expected = "lead block 0 cannot be a spare and is lost")]
fn check_detects_a_spare_lead_block() {
    BlockTable::new(2, 4).check();
}

#[test]
#[should_panic(expected = "superblock 1 has another block than 1 in column 1")]
fn check_detects_a_superblock_with_another_block() {
    let mut table = composed();
    table.check();
    table.composition[3] = 2;
    table.check();
}
