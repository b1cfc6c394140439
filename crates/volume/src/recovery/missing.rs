//! Changes that were durable and whose frames are not there any more. Records in other frames say
//! what they held: their data are lost, and must not be replaced by older ones.

use crate::format::record::Record;
use crate::format::root::Root;
use crate::frame_scan::FoundFrame;
use softflash_base::planted::{self, Bug};
use std::collections::BTreeMap;
use std::ops::Range;

/// The changes behind a root that no frame has.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Missing {
    /// Records of those that were durable, in their order.
    pub lost: Vec<Record>,
    /// The first one that was durable and of which no record is there, and how many there are.
    pub unknown: Option<(u64, u64)>,
    /// Whether the root that the next recovery starts from has to be a new one: it would see gaps,
    /// or changes that are not proven yet.
    pub needs_root: bool,
    /// The number of the next change: greater than all that are known of.
    pub next: u64,
    /// All changes below were proven.
    pub proven_below: u64,
}

/// Compares the numbers of the changes in the frames behind a root with those from the root's on.
/// Frames below `durable_below` were durable; the tags of superblocks say that changes below
/// `proven` were proven.
pub(super) fn missing(
    frames: &[FoundFrame],
    root: Option<&Root>,
    durable_below: u64,
    proven: u64,
) -> Missing {
    let first = root.map_or(1, |root| root.change.unwrap_or(1));
    // A frame that the mount which wrote the root did not find has the number of a later change.
    let is_behind =
        |frame: &&FoundFrame| root.is_none_or(|root| frame.head.sequence >= root.sequence);
    let behind = frames.iter().filter(is_behind);
    let mut found: Vec<u64> = behind.map(|frame| frame.head.change).collect();
    found.retain(|&change| change >= first);
    found.sort_unstable();
    let records = frames.iter().flat_map(|frame| &frame.head.records);
    let records: BTreeMap<u64, &Record> =
        records.map(|record| (record.change, record)).filter(|(at, _)| *at >= first).collect();
    let heads = frames.iter().map(|frame| &frame.head);
    let proven_below = heads.map(|head| head.proven_below).max().unwrap_or(0).max(proven);
    let last = found.last().copied().max(records.keys().last().copied());
    let next = last.map_or(first, |last| last + 1);
    let mut missing = Missing { next: next.max(proven_below), proven_below, ..Missing::default() };
    let mut at = first;
    for end in found.iter().copied().chain([missing.next]) {
        if at < end {
            missing.add(at..end, &records, durable_below);
        }
        at = end + 1;
    }
    // The root of a mount holds those that a later one would take for lost.
    missing.needs_root |= found.last().is_some_and(|&last| last >= proven_below);
    if planted::bug(Bug::LostChangesIgnored) {
        (missing.lost, missing.unknown) = (Vec::new(), None);
    }
    missing
}

impl Missing {
    fn add(&mut self, gap: Range<u64>, records: &BTreeMap<u64, &Record>, durable_below: u64) {
        self.needs_root = true;
        let proven = gap.start..gap.end.min(self.proven_below).max(gap.start);
        let was_durable =
            |record: &Record| record.change < self.proven_below || record.sequence < durable_below;
        let recorded = records.range(gap).map(|(_, record)| *record);
        self.lost.extend(recorded.filter(|record| was_durable(record)).cloned());
        let known = records.range(proven.clone()).count();
        let unknown = (proven.end - proven.start).saturating_sub(known as u64);
        if unknown > 0 {
            let first = proven.clone().find(|change| !records.contains_key(change));
            let (first, before) = self.unknown.unwrap_or((first.unwrap_or(proven.start), 0));
            self.unknown = Some((first, before + unknown));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::frame::Head;
    use crate::format::record::Contents;
    use crate::image::ImageId;

    /// A frame with a change, or without one, which says what is proven, and has these records.
    fn frame(change: u64, proven_below: u64, records: &[u64]) -> FoundFrame {
        let record = |&change: &u64| Record {
            change,
            sequence: 10 * change,
            unit: 0,
            contents: Contents::Discard { image: ImageId(1), lba: 0, count: 1 },
        };
        let records = records.iter().map(record).collect();
        let head = Head { sequence: 10 * change, change, proven_below, records, ..Head::default() };
        FoundFrame { head, block: 0, first: 0 }
    }

    /// A root whose first change behind it is the fourth.
    fn root() -> Root {
        Root { sequence: 40, change: Some(4), ..Root::default() }
    }

    fn missing(frames: &[FoundFrame], durable_below: u64, proven: u64) -> Missing {
        super::missing(frames, Some(&root()), durable_below, proven)
    }

    fn numbers(missing: &Missing) -> Vec<u64> {
        missing.lost.iter().map(|record| record.change).collect()
    }

    #[test]
    fn nothing_is_missing_where_all_numbers_are_there_and_proven() {
        let frames = [frame(6, 5, &[]), frame(5, 4, &[]), frame(4, 1, &[3]), frame(0, 7, &[])];
        let found = missing(&frames, 70, 0);
        assert_eq!(found, Missing { next: 7, proven_below: 7, ..Missing::default() });
        assert_eq!(missing(&[], 0, 0), Missing { next: 4, ..Missing::default() });
    }

    #[test]
    fn a_change_that_is_proven_or_was_durable_is_lost_and_its_record_says_what_it_held() {
        let frames = [frame(4, 1, &[]), frame(7, 6, &[5, 6])];
        let found = missing(&frames, 0, 0);
        assert_eq!((numbers(&found), found.unknown, found.next), (vec![5], None, 8));
        assert!(found.needs_root);
        assert_eq!(numbers(&missing(&frames, 61, 0)), [5, 6]);
    }

    #[test]
    fn a_lost_change_without_a_record_is_unknown() {
        let frames = [frame(4, 1, &[]), frame(9, 8, &[6])];
        let found = missing(&frames, 0, 0);
        assert_eq!((numbers(&found), found.unknown), (vec![6], Some((5, 2))));
        let all = missing(&[frame(0, 8, &[])], 0, 0);
        assert_eq!(missing(&[], 0, 8), all, "a tag says it, too");
        assert_eq!((all.unknown, all.next), (Some((4, 4)), 8));
    }

    #[test]
    fn changes_that_are_not_proven_may_never_have_been_durable() {
        let found = missing(&[frame(4, 1, &[]), frame(6, 5, &[])], 0, 0);
        assert_eq!((numbers(&found), found.unknown, found.next), (vec![], None, 7));
        assert!(found.needs_root, "the next recovery would take 5 for lost");
        assert!(missing(&[frame(4, 4, &[])], 0, 0).needs_root, "4 is not proven");
    }

    #[test]
    fn a_frame_that_the_mount_of_the_root_did_not_find_is_not_behind_it() {
        let mut unseen = frame(5, 1, &[]);
        unseen.head.sequence = 39;
        let found = missing(&[unseen, frame(4, 1, &[])], 0, 0);
        assert_eq!(found.next, 5, "its number is taken by another one");
    }
}
