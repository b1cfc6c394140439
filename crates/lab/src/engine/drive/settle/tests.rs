//! Tests of settling.

use super::*;
use softflash_workload::{Pattern, RequestSize};
use std::collections::BTreeMap;

const CAPACITY_BYTES: u64 = 1 << 30;

/// The offset with the most of the next requests, none of which may be a read.
fn most_popular(mut source: BlockSource, reads: bool) -> u64 {
    let mut requests: BTreeMap<u64, u32> = BTreeMap::new();
    for _ in 0..1000 {
        let access = source.next();
        assert!(reads || access.kind != AccessKind::Read);
        *requests.entry(access.offset_bytes).or_default() += 1;
    }
    requests.into_iter().max_by_key(|&(_, count)| count).unwrap().0
}

#[test]
fn a_state_is_settled_with_the_popular_places_of_its_run() {
    let pattern = Pattern::Zipf { exponent: 2.0, scattered: true };
    let mut workload = BlockWorkload::new("w", RequestSize::Fixed(4096), pattern);
    workload.read_fraction = 0.5;
    let run = Rng::seeded(7);
    let settled = writes_of(&workload, CAPACITY_BYTES, &run).unwrap();
    let played = workload.source(CAPACITY_BYTES, run.fork(ACCESSES)).unwrap();
    assert_eq!(most_popular(settled, false), most_popular(played, true));
    // The threads that only write have popular places of their own.
    (workload.read_fraction, workload.writers) = (1.0, 1);
    let settled = writes_of(&workload, CAPACITY_BYTES, &run).unwrap();
    let writers = workload.of_writers().unwrap();
    let played = writers.source(CAPACITY_BYTES, run.fork(WRITERS)).unwrap();
    assert_eq!(most_popular(settled, false), most_popular(played, false));
}
