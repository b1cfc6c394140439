use super::Fate::{Bury, Drop, Keep, Repeat};
use super::*;
use crate::format::version::Version;
use crate::kv::testing::{deletion, expiring, fragment, value};
use crate::value::Entry;
use futures_util::FutureExt;

const NOW_MS: u64 = 1000;

/// The fates of records in order, and the number of expired keys.
fn fates(snapshots: &[u64], bottom: bool, records: &[Record]) -> (Vec<Fate>, u64) {
    let mut retention = Retention::new(snapshots.to_vec(), bottom, NOW_MS);
    let fates = records.iter().map(|record| retention.judge(record)).collect();
    (fates, retention.keys_expired)
}

fn dead(key: &str, seq: u64) -> Record {
    expiring(key, seq, 10, NOW_MS)
}

#[test]
fn an_expired_version_keeps_hiding_an_older_one() {
    let records = [dead("a", 9), value("a", 5, 10), value("b", 5, 10)];
    // The older version may also be below the merge: a deletion must stay above it.
    assert_eq!(fates(&[], false, &records), (vec![Bury, Drop, Keep], 1));
    assert_eq!(fates(&[], true, &records), (vec![Drop, Drop, Keep], 1));
    let alive = [expiring("a", 9, 10, NOW_MS + 1), dead("a", 5), dead("b", 5)];
    assert_eq!(fates(&[], false, &alive), (vec![Keep, Drop, Bury], 1));
}

#[test]
fn a_deletion_is_kept_while_older_versions_may_be_below() {
    let records = [deletion("a", 9), value("a", 5, 10), deletion("b", 5), value("c", 5, 10)];
    assert_eq!(fates(&[], false, &records), (vec![Keep, Drop, Keep, Keep], 0));
    assert_eq!(fates(&[], true, &records), (vec![Drop, Drop, Drop, Keep], 0));
}

#[test]
fn the_fragments_of_a_value_share_its_fate_and_become_one_deletion() {
    let large = |at_ms| [0, 1, 2].map(|number| fragment("a", 9, number, at_ms)).to_vec();
    let older = || [fragment("a", 5, 0, 0), fragment("a", 5, 1, 0)];
    let records = [large(NOW_MS), older().into()].concat();
    assert_eq!(fates(&[], false, &records), (vec![Bury, Drop, Drop, Drop, Drop], 1));
    assert_eq!(fates(&[], true, &records), (vec![Drop; 5], 1));
    let records = [large(0), older().into()].concat();
    assert_eq!(fates(&[], false, &records), (vec![Keep, Keep, Keep, Drop, Drop], 0));
    // Another key with the same sequence number, as in a batch.
    let records = [fragment("a", 9, 8, NOW_MS), fragment("b", 9, 0, NOW_MS)];
    assert_eq!(fates(&[], false, &records), (vec![Bury, Bury], 2));
}

#[test]
fn versions_that_a_snapshot_needs_are_kept() {
    let versions = [value("a", 9, 10), value("a", 6, 10), value("a", 3, 10)];
    for (snapshot, kept) in [
        (9, [Keep, Drop, Drop]),
        (8, [Keep, Keep, Drop]),
        (6, [Keep, Keep, Drop]),
        (5, [Keep, Drop, Keep]),
        (3, [Keep, Drop, Keep]),
        (2, [Keep, Drop, Drop]),
    ] {
        assert_eq!(fates(&[snapshot], true, &versions).0, kept, "snapshot {snapshot}");
    }
    assert_eq!(fates(&[4, 7], true, &versions).0, [Keep, Keep, Keep]);
}

#[test]
fn a_deletion_that_hides_a_version_is_kept_as_long_as_a_snapshot_needs_the_version() {
    for hider in [deletion("a", 9), dead("a", 9)] {
        let records = [hider.clone(), value("a", 5, 10)];
        let gone = |snapshot| fates(&[snapshot], true, &records);
        assert_eq!(
            gone(8),
            (vec![Keep, Keep], 0),
            "the snapshot needs it, and it must be hidden from other readers"
        );
        let expired = u64::from(!hider.is_delete());
        assert_eq!(gone(9), (vec![Drop, Drop], expired), "the snapshot sees the deletion");
    }
}

#[test]
fn a_record_that_was_judged_before_is_a_repeat() {
    let records = [value("a", 9, 10), value("a", 9, 10), value("a", 5, 10), value("b", 9, 10)];
    assert_eq!(fates(&[], false, &records).0, [Keep, Repeat, Drop, Keep]);
    let twice = [0, 0, 1, 1, 2, 2].map(|number| fragment("a", 9, number, 0));
    assert_eq!(fates(&[], false, &twice).0, [Keep, Repeat, Keep, Repeat, Keep, Repeat]);
    let expired = [0, 0, 1, 1].map(|number| fragment("a", 9, number, NOW_MS));
    assert_eq!(fates(&[], false, &expired), (vec![Bury, Repeat, Drop, Repeat], 1));
}

/// A memtable with these keys, all of one sequence number.
fn table(seq: u64, keys: impl Iterator<Item = u64>, deleted: bool) -> Source {
    let mut table = Memtable::default();
    for key in keys {
        let key = Bytes::from(format!("{key:04}"));
        let entry = (!deleted).then(|| Entry::new(Bytes::from_static(b"value")));
        table.insert(&key, Version::seal(&key, seq, entry).unwrap(), None);
    }
    Source::Memory(MemoryCursor::new(Rc::new(RefCell::new(table)), None))
}

/// All records of a merge, as pairs of key and sequence number. Memory sources are always ready.
fn merged(sources: Vec<Source>) -> Vec<(u64, u64)> {
    let mut merge = Merge::new(sources);
    let mut merged = Vec::new();
    while let Some(record) = merge.next().now_or_never().unwrap().unwrap() {
        let key = String::from_utf8_lossy(&record.key).parse().unwrap();
        merged.push((key, record.seq));
    }
    merged
}

#[test]
fn sources_are_merged_by_key_and_the_newest_version_comes_first() {
    let keys = 3 * MEMORY_STEP_KEYS as u64 + 1;
    let third = || (0..keys).filter(|key| key % 3 == 0);
    let found = merged(vec![table(9, third(), true), table(5, 0..keys, false)]);
    let expected: Vec<_> = (0..keys)
        .flat_map(|key| if key % 3 == 0 { vec![(key, 9), (key, 5)] } else { vec![(key, 5)] })
        .collect();
    assert_eq!(found, expected);
    // By sequence number, in any order of the sources.
    let found = merged(vec![table(5, 0..keys, false), table(9, third(), true)]);
    assert_eq!(found, expected);
    assert_eq!(merged(vec![table(1, 0..0, false)]), []);
    assert_eq!(merged(Vec::new()), []);
}

#[test]
fn of_two_sources_with_the_same_record_the_first_comes_first() {
    let [first, second] = [true, false].map(|deleted| table(5, 0..2, deleted));
    let mut merge = Merge::new(vec![first, second]);
    let mut take = || merge.next().now_or_never().unwrap().unwrap().map(|r| r.is_delete());
    let order: Vec<_> = std::iter::from_fn(&mut take).collect();
    assert_eq!(order, [true, false, true, false]);
}

#[test]
fn a_merge_stops_at_the_last_key_of_a_part_and_goes_on_with_the_next_source() {
    let mut merge = Merge::new(vec![table(9, 0..4, false)]);
    let up_to = |merge: &mut Merge, last: Option<&[u8]>| {
        let next = |merge: &mut Merge| merge.next_up_to(last).now_or_never().unwrap().unwrap();
        let key = |record: Record| String::from_utf8_lossy(&record.key).parse::<u64>().unwrap();
        std::iter::from_fn(|| next(merge).map(|record| (key(record.clone()), record.seq)))
            .collect::<Vec<_>>()
    };
    merge.add(table(5, 0..2, false));
    assert_eq!(up_to(&mut merge, Some(b"0001")), [(0, 9), (0, 5), (1, 9), (1, 5)]);
    merge.add(table(5, 2..4, false));
    assert_eq!(up_to(&mut merge, None), [(2, 9), (2, 5), (3, 9), (3, 5)]);
}
