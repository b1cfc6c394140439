use super::*;
use crate::shard::recovery::replay::tests::layout;

pub(in crate::shard) mod by_hand;
mod losses;
mod unreferenced;

#[test]
fn segments_between_a_segment_and_the_one_that_it_follows_are_passed_over() {
    let segment = |segment, after| Found {
        id: BlockId(100 - segment),
        kind: BlockKind::Log { segment, after },
    };
    let found = [(9, 5), (3, 0), (7, 3), (5, 3), (4, 3), (8, 7)].map(|(of, to)| segment(of, to));
    let orphans: Vec<&Found> = found.iter().filter(|found| found.id != BlockId(97)).collect();
    let passed: Vec<u64> = passed_over(&orphans, &found).map(|block| 100 - block.0).collect();
    assert_eq!(passed, [4, 5, 7, 8], "7 follows 3, and 9 follows 5");
    assert_eq!(passed_over(&orphans[..0], &found).count(), 0);
}
