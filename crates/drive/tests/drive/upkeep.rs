//! What a drive does for the health of its data: the background scrub reads all of them in a
//! period, and blocks that have been read often are moved.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use crate::support::{PAGE, UNIT, drawn_layout, run, tlc_device as device};
use softflash_base::random::Rng;
use softflash_drive::spec::{
    Folding, FrontierScope, MapKind, MappingUnit, PageMapped, PlacementPolicy, Share, SlcCache,
};
use softflash_drive::{AccessKind, Drive, HostRequest};

/// Reads of 4 KiB at offsets in a closed loop.
fn read(drive: &mut Drive, reads: u64, depth: u64, mut offset: impl FnMut() -> u64) {
    let (mut submitted, mut done) = (0, Vec::new());
    while (done.len() as u64) < reads {
        while submitted < reads && submitted - (done.len() as u64) < depth {
            let request = HostRequest::new(submitted, AccessKind::Read, offset(), UNIT);
            drive.submit(drive.now(), request).unwrap();
            submitted += 1;
        }
        assert!(drive.step(&mut done), "{} of {submitted} reads ended", done.len());
    }
}

/// Offsets of random units of a drive.
fn anywhere(drive: &Drive, seed: u64) -> impl FnMut() -> u64 + use<> {
    let (mut rng, units) = (Rng::seeded(seed), drive.capacity_bytes() / UNIT);
    move || rng.below(units) * UNIT
}

/// Flash pages of full blocks, of a drive that was filled in order.
fn pages_at_rest(drive: &Drive) -> f64 {
    drive.capacity_bytes() as f64 / f64::from(PAGE)
}

#[test]
fn a_scrub_reads_every_page_with_data_once_in_its_period_and_whole() {
    let device = device(0);
    for frontier in [FrontierScope::Plane, FrontierScope::Die] {
        // Two seconds.
        let scrub_hours = 2.0 / 3600.0;
        let layout = PageMapped { scrub_hours, frontier, ..PageMapped::default() };
        let mut drive = Drive::new(&device, &layout, 20.0).unwrap();
        drive.fill();
        let mut offsets = anywhere(&drive, 7);
        while drive.now().0 < 4_000_000_000 {
            read(&mut drive, 100, 2, &mut offsets);
        }
        let counted = drive.counters();
        let ratio = counted.scrub_reads as f64 / (2.0 * pages_at_rest(&drive));
        println!("{} scrub reads, {ratio:.3} of the predicted", counted.scrub_reads);
        // Blocks that are being written are not read.
        assert!((0.95..=1.01).contains(&ratio), "{ratio} of the predicted reads");
        let crossing = |bytes: u64| bytes * 1_000_000_000 / device.bus.bytes_per_second;
        let crossed =
            counted.read_for_host * crossing(UNIT) + counted.scrub_reads * crossing(PAGE.into());
        let busy: u64 = (0..drive.channels()).map(|channel| drive.channel_busy_ns(channel)).sum();
        let under_way = 4 * crossing(PAGE.into());
        assert!(busy.abs_diff(crossed) <= under_way, "the buses were taken {busy} ns");
        drive.check().unwrap();
    }
}

#[test]
fn a_scrub_takes_no_steps_while_nothing_is_under_way() {
    let layout = PageMapped { scrub_hours: 0.001, ..PageMapped::default() };
    let mut drive = Drive::new(&device(0), &layout, 20.0).unwrap();
    drive.fill();
    assert_eq!(drive.next_at(), None);
    let offsets = anywhere(&drive, 7);
    read(&mut drive, 10, 1, offsets);
    let mut done = Vec::new();
    while drive.step(&mut done) {}
    assert_eq!((drive.next_at(), drive.in_flight()), (None, 0));
}

#[test]
fn a_scrub_that_is_too_fast_keeps_one_read_of_a_group_under_way() {
    // A millisecond for the whole flash: more than the dies can read.
    let layout = PageMapped { scrub_hours: 1e-3 / 3600.0, ..PageMapped::default() };
    let mut drive = Drive::new(&device(0), &layout, 20.0).unwrap();
    drive.fill();
    let offsets = anywhere(&drive, 7);
    read(&mut drive, 2000, 1, offsets);
    let counted = drive.counters();
    assert!(counted.scrub_reads > counted.read_for_host, "{counted:?}");
    drive.check().unwrap();
}

#[test]
fn a_block_moves_once_in_so_many_reads_and_its_pages_are_the_cost() {
    const LIMIT: u32 = 500;
    let layout = PageMapped { read_reclaim_reads: LIMIT, ..PageMapped::default() };
    // At the greater depth a die would go from one cached read to the next for ever.
    for (depth, cache_read) in [(8, false), (512, true)] {
        let mut device = device(0);
        device.die.cache_read = cache_read;
        let mut drive = Drive::new(&device, &layout, 20.0).unwrap();
        drive.fill();
        let offsets = anywhere(&drive, 11);
        let reads = 400_000;
        read(&mut drive, reads, depth, offsets);
        let counted = drive.counters();
        // Each read senses a page of a block. A full block that is read has all its pages valid.
        let predicted = reads as f64 / f64::from(LIMIT);
        let ratio = counted.read_reclaims as f64 / predicted;
        let units_of_block = 96 * u64::from(PAGE) / UNIT;
        let moved = counted.programmed_for_collection as f64
            / (counted.read_reclaims * units_of_block) as f64;
        println!(
            "depth {depth}: {} blocks moved, {ratio:.3} of the predicted; {moved:.3}",
            counted.read_reclaims
        );
        assert!((ratio - 1.0).abs() < 0.08, "{ratio} of the predicted blocks at depth {depth}");
        assert!((moved - 1.0).abs() < 0.03, "{moved} of the pages of these blocks");
        assert!(counted.erases <= counted.read_reclaims);
        drive.check().unwrap();
    }
}

#[test]
fn drawn_drives_keep_their_maps_and_equal_seeds_give_equal_runs() {
    let (mut reclaims, mut scrubs) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::seeded(seed).fork("upkeep");
        let mut layout = PageMapped {
            scrub_hours: [0.0, 1e-5, 1e-3][rng.below(3) as usize],
            read_reclaim_reads: [0, 3, 40, 200][rng.below(4) as usize],
            ..drawn_layout(&mut rng)
        };
        match rng.below(6) {
            0 => layout.placement = PlacementPolicy::by_hint(2),
            1 => layout.map = MapKind::Cached(Share::new(1, 2).unwrap()),
            2 => layout.parity_data_pages = 3,
            3 => (layout.copyback, layout.mapping_unit) = (true, MappingUnit::Page),
            4 => {
                let folding = [Folding::Idle, Folding::InOrder][rng.below(2) as usize];
                layout.slc_cache = Some(SlcCache { bytes: 8 << 20, folding, idle_ms: 1 });
            }
            _ => {}
        }
        let device = device(rng.below(3) << 19);
        let op_percent = 7.0 + rng.below(30) as f64;
        let twice = [(); 2].map(|()| {
            let mut drive = Drive::new(&device, &layout, op_percent).unwrap();
            if seed % 2 == 0 {
                drive.fill();
            }
            let mut done = Vec::new();
            for part in 0..4 {
                done.extend(run(&mut drive, 1500, 16, seed + part));
                drive.check().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                while part % 2 == 0 && drive.step(&mut done) {}
                drive.check().unwrap_or_else(|error| panic!("seed {seed}, idle: {error}"));
            }
            (done, drive.counters(), drive.now())
        });
        assert!(twice[0] == twice[1], "seed {seed}: two runs differ");
        let counted = twice[0].1;
        reclaims += counted.read_reclaims;
        scrubs += counted.scrub_reads;
    }
    println!("{reclaims} blocks moved, {scrubs} scrub reads");
    assert!(reclaims > 1000 && scrubs > 1000);
}

#[test]
fn a_period_that_is_none_is_refused() {
    for scrub_hours in [-1.0, f64::NAN, f64::INFINITY, 1e7] {
        let layout = PageMapped { scrub_hours, ..PageMapped::default() };
        let error = Drive::new(&device(0), &layout, 20.0).err().unwrap().to_string();
        assert!(error.starts_with("scrub_hours"), "{error}");
    }
}
