//! The rule for heads: what they say, and when a change is proven.

use super::*;
use crate::format::record::Run;
use crate::image::ImageId;

/// A domain whose frames are appended by hand.
struct Testbed {
    changes: Changes,
    sequence: u64,
    durable_below: u64,
    is_alone: bool,
}

fn data(runs: usize) -> Option<Contents> {
    let run = |lba: usize| Run {
        image: ImageId(1),
        lba: 2 * u32::try_from(lba).unwrap(),
        count: 1,
        moved: false,
    };
    Some(Contents::Data((0..runs).map(run).collect()))
}

impl Testbed {
    fn new() -> Testbed {
        let changes = Changes::recovered(1, 1);
        changes.settle();
        Testbed { changes, sequence: 1, durable_below: 1, is_alone: false }
    }

    /// Appends a frame; returns the numbers of the changes that it records, and what it proves.
    fn append(&mut self, unit: u16, entries: usize) -> (Vec<u64>, u64) {
        let (sequence, durable_below) = (self.sequence, self.durable_below);
        let teller = Teller { sequence, unit, durable_below, is_alone: self.is_alone };
        let told = self.changes.tell(teller, entries, entries > 0);
        self.changes.told(teller, &told, data(entries).filter(|_| entries > 0));
        self.sequence += 1;
        (told.records.iter().map(|record| record.change).collect(), told.proven_below)
    }

    /// Flushes; returns whether some change is not proven.
    fn flush(&mut self) -> bool {
        self.durable_below = self.sequence;
        self.changes.durable(self.durable_below, self.is_alone)
    }
}

#[test]
fn a_change_is_recorded_on_another_unit_and_proven_there_when_it_is_durable() {
    let mut testbed = Testbed::new();
    assert_eq!(testbed.append(0, 3), (vec![], 1));
    assert_eq!(testbed.append(0, 3), (vec![], 1), "its own unit says nothing of it");
    assert_eq!(testbed.append(1, 0), (vec![1, 2], 1), "it is recorded, and is not durable yet");
    assert!(testbed.flush());
    assert_eq!(testbed.changes.first_unproven(3), Some(0));
    assert_eq!(testbed.append(1, 0), (vec![], 3));
    assert!(!testbed.flush());
    assert_eq!(testbed.changes.first_unproven(3), None);
}

#[test]
fn a_statement_on_the_unit_of_the_change_does_not_prove_it() {
    let mut testbed = Testbed::new();
    testbed.append(0, 3);
    testbed.append(1, 0);
    testbed.flush();
    assert_eq!(testbed.append(0, 0), (vec![], 2));
    assert!(testbed.flush(), "the loss of unit 0 would take the statement, too");
    testbed.append(1, 0);
    assert!(!testbed.flush());
}

#[test]
fn a_change_whose_own_frame_has_failed_is_recorded_on_two_units() {
    let mut testbed = Testbed::new();
    testbed.append(0, 3);
    assert_eq!(testbed.append(1, 0).0, [1]);
    testbed.changes.failed(1);
    assert!(testbed.flush());
    assert_eq!(testbed.append(1, 0), (vec![], 1), "unit 1 has a record, and may be lost");
    assert_eq!(testbed.changes.first_unproven(2), Some(1));
    assert_eq!(testbed.append(0, 0), (vec![1], 2), "its own unit takes the other record");
    assert!(!testbed.flush());
}

#[test]
fn one_unit_alone_records_and_proves_its_own_changes() {
    let mut testbed = Testbed { is_alone: true, ..Testbed::new() };
    testbed.append(0, 3);
    testbed.flush();
    assert_eq!(testbed.append(0, 0), (vec![1], 2));
    assert!(!testbed.flush());
}

#[test]
fn what_a_failed_frame_says_is_said_again() {
    let mut testbed = Testbed::new();
    testbed.append(0, 3);
    testbed.flush();
    assert_eq!(testbed.append(1, 0), (vec![1], 2));
    testbed.changes.failed(2);
    assert!(testbed.flush());
    assert_eq!(testbed.append(2, 0), (vec![1], 2));
    assert!(!testbed.flush());
}

#[test]
fn heads_record_as_much_as_they_have_room_for() {
    let mut testbed = Testbed::new();
    (0..9).for_each(|_| drop(testbed.append(0, 64)));
    // A record of 64 separate mapping units has 24 + 64 * 8 bytes.
    assert_eq!(testbed.append(1, 64).0, [1, 2, 3, 4]);
    assert_eq!(testbed.append(1, 120).0, [5, 6]);
    assert_eq!(testbed.append(1, 0).0, [7, 8, 9]);
    testbed.flush();
    assert_eq!(testbed.append(1, 0), (vec![], 10), "10 and 11 on unit 1 have no record");
    assert_eq!(testbed.append(0, 0), (vec![10, 11], 12));
}

#[test]
fn a_root_needs_no_proof_of_the_changes_that_it_holds() {
    let mut testbed = Testbed::new();
    testbed.append(0, 3);
    testbed.append(0, 3);
    testbed.changes.covered_below(2);
    assert_eq!(testbed.append(1, 0).0, [2]);
    testbed.changes.covered_below(3);
    assert_eq!(testbed.changes.first_unproven(9), None);
    assert_eq!(testbed.append(1, 1).1, 3);
}

#[test]
fn a_recovery_says_no_more_than_it_found_until_a_root_holds_it() {
    let mut testbed = Testbed { changes: Changes::recovered(9, 5), ..Testbed::new() };
    assert_eq!(testbed.append(1, 0).1, 5);
    testbed.changes.covered_below(9);
    assert_eq!(testbed.append(1, 0).1, 9);
}
