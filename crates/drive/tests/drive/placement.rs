//! Where writes go by each placement, and what that is good for.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use softflash_base::random::Rng;
use softflash_drive::spec::{DeviceSpec, PageMapped, PlacementPolicy};
use softflash_drive::{AccessKind, Done, Drive, HostRequest};
use softflash_nand::presets;

/// A drive of 4 dies with one plane each.
fn drive(placement: &str) -> Drive {
    let mut array = presets::small();
    array.geometry.planes_per_die = 1;
    array.geometry.blocks_per_plane = 64;
    let placement: PlacementPolicy = placement.parse().unwrap();
    let layout = PageMapped { placement, ..PageMapped::default() };
    Drive::new(&DeviceSpec::bare("small", &array), &layout, 25.0).unwrap()
}

/// Submits requests for single pages at once, and plays them.
fn play(drive: &mut Drive, requests: &[(AccessKind, u64)]) -> Vec<Done> {
    let mut done = Vec::new();
    for (tag, &(kind, page)) in (0..).zip(requests) {
        drive.submit(drive.now(), HostRequest::new(tag, kind, page * 4096, 4096)).unwrap();
    }
    while drive.step(&mut done) {}
    assert_eq!((drive.check(), done.len()), (Ok(()), requests.len()));
    done
}

/// The time until all have completed.
fn took(done: &[Done]) -> u64 {
    done.iter().map(|done| done.at.0 - done.submitted_at.0).max().unwrap()
}

#[test]
fn writes_to_addresses_of_one_die_use_all_dies_unless_the_stripe_is_static() {
    // Every fourth page lies on one die.
    let writes: Vec<(AccessKind, u64)> =
        (0..16).map(|page| (AccessKind::Write, 4 * page)).collect();
    let stripe = took(&play(&mut drive("static"), &writes));
    for placement in ["round-robin", "least-queue", "least-worn"] {
        let spread = took(&play(&mut drive(placement), &writes));
        assert!(3 * spread < stripe, "{placement}: {spread} ns, {stripe} ns on one die");
    }
}

#[test]
fn the_shortest_queue_avoids_a_die_that_reads() {
    // Reads of one die, then writes.
    let mut requests: Vec<(AccessKind, u64)> =
        (0..64).map(|page| (AccessKind::Read, 4 * page)).collect();
    requests.extend((0..12).map(|page| (AccessKind::Write, 100 + page)));
    let last_write = |placement| {
        let mut drive = drive(placement);
        drive.fill();
        let done = play(&mut drive, &requests);
        let writes: Vec<Done> =
            done.into_iter().filter(|done| done.kind == AccessKind::Write).collect();
        took(&writes)
    };
    let (queue, turn) = (last_write("least-queue"), last_write("round-robin"));
    assert!(2 * queue < turn, "{queue} ns by the shortest queue, {turn} ns in turn");
}

#[test]
fn the_least_worn_dies_catch_up() {
    let spread = |placement: &str| {
        let mut drive = drive(placement);
        drive.fill();
        let (mut rng, pages) = (Rng::seeded(3), drive.capacity_bytes() / 4096);
        println!("seed 3");
        // One die has more of the writes if the stripe is static.
        for _ in 0..60_000 {
            let page = rng.below(pages);
            let page = if rng.chance(0.5) { page - page % 4 } else { page };
            drive.overwrite_now(page * 4096);
        }
        assert_eq!(drive.check(), Ok(()));
        drive.group_erase_spread()
    };
    let (level, stripe) = (spread("least-worn"), spread("static"));
    assert!(level <= 8 && stripe > 100, "{level} erases, {stripe} by the stripe");
}

#[test]
fn classes_of_data_that_are_kept_apart_cost_fewer_moves() {
    let waf = |placement: &str, hinted: bool| {
        let mut drive = drive(placement);
        drive.fill();
        let (mut rng, pages) = (Rng::seeded(4), drive.capacity_bytes() / 4096);
        println!("seed 4");
        let hot = pages / 10;
        for write in 0..8 * pages {
            if write == 4 * pages {
                drive.clear_counters();
            }
            let is_hot = rng.chance(0.9);
            let page = if is_hot { rng.below(hot) } else { hot + rng.below(pages - hot) };
            drive.overwrite_hinted_now(page * 4096, u32::from(is_hot && hinted));
        }
        assert_eq!(drive.check(), Ok(()));
        drive.counters().waf()
    };
    let (apart, mixed) = (waf("by-hint:2", true), waf("static", true));
    assert!(apart < 0.9 * mixed, "{apart} by classes, {mixed} without");
    // The classes cost spare blocks, so that without hints they are no gain.
    let unhinted = waf("by-hint:2", false);
    assert!(unhinted > apart, "{unhinted} without hints, {apart} with");
}
