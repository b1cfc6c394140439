//! Drives with an SLC cache: what it takes is programmed and read in the times of SLC mode, and
//! moves out of it while the host is idle, or in step with the host's writes.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use crate::support::{
    PAGE, PROGRAM_NS, READ_NS, SLC, UNIT, drawn_layout, run, tlc_device as device,
};
use softflash_base::random::Rng;
use softflash_drive::spec::{
    DeviceSpec, Folding, FrontierScope, MapKind, MappingUnit, PageMapped, PlacementPolicy, Share,
    SlcCache,
};
use softflash_drive::{AccessKind, Done, Drive, HostRequest};
use softflash_nand::Cell;

fn cached(bytes: u64, folding: Folding) -> PageMapped {
    let slc_cache = Some(SlcCache { bytes, folding, idle_ms: 50 });
    PageMapped { slc_cache, frontier: FrontierScope::Die, ..PageMapped::default() }
}

/// Writes of a whole row of flash pages, one behind the other from an offset on, at depth 64;
/// returns the bytes a second.
fn write_on(drive: &mut Drive, from: u64, bytes: u64) -> f64 {
    let of_request = u64::from(PAGE);
    let (mut submitted, mut done, begin) = (0, Vec::new(), drive.now());
    let writes = bytes / of_request;
    while (done.len() as u64) < writes {
        while submitted < writes && submitted - (done.len() as u64) < 64 {
            let offset = (from + submitted * of_request) % drive.capacity_bytes();
            let request = HostRequest::new(submitted, AccessKind::Write, offset, of_request);
            drive.submit(drive.now(), request).unwrap();
            submitted += 1;
        }
        assert!(drive.step(&mut done), "{} of {submitted} writes ended", done.len());
    }
    bytes as f64 * 1e9 / (drive.now().0 - begin.0) as f64
}

/// Plays all that the drive does without requests.
fn rest(drive: &mut Drive) -> Vec<Done> {
    let mut done = Vec::new();
    while drive.step(&mut done) {}
    done
}

fn read_latency(drive: &mut Drive, offset_bytes: u64) -> u64 {
    let read = HostRequest::new(0, AccessKind::Read, offset_bytes, UNIT);
    drive.submit(drive.now(), read).unwrap();
    let mut done = Vec::new();
    while done.is_empty() {
        assert!(drive.step(&mut done));
    }
    done[0].latency_ns()
}

#[test]
fn a_burst_runs_at_the_speed_of_the_cache_and_what_follows_at_that_of_the_flash() {
    let device = device(1 << 20);
    let cache_bytes = 48 << 20;
    let mut drive = Drive::new(&device, &cached(cache_bytes, Folding::Idle), 20.0).unwrap();
    let (planes, dies) = (u64::from(device.geometry.planes_per_die), u64::from(drive.dies()));
    let row = (u64::from(PAGE) * planes * dies) as f64;
    let loads_ns = planes * u64::from(PAGE) * 1_000_000_000 / device.bus.bytes_per_second;
    let most = |program_ns: u64| row * 1e9 / (program_ns as f64);
    let least = |program_ns: u64| row * 1e9 / ((program_ns + 2 * loads_ns) as f64);
    let burst = write_on(&mut drive, 0, 40 << 20);
    let counted = drive.counters();
    assert_eq!((counted.programmed_for_folding, counted.erases), (0, 0));
    // The rest of the cache.
    write_on(&mut drive, 40 << 20, 8 << 20);
    let after = write_on(&mut drive, 48 << 20, 60 << 20);
    println!("{burst:e} then {after:e} bytes a second");
    assert!(burst <= 1.1 * most(SLC.program_ns) && burst >= least(SLC.program_ns) * 0.9);
    assert!(after <= 1.1 * most(PROGRAM_NS) && after >= least(PROGRAM_NS) * 0.9);
    drive.check().unwrap();
}

#[test]
fn an_idle_drive_folds_its_cache_and_reads_before_and_after_take_the_times_of_the_cells() {
    let device = device(1 << 20);
    let mut drive = Drive::new(&device, &cached(24 << 20, Folding::Idle), 20.0).unwrap();
    write_on(&mut drive, 0, 24 << 20);
    drive.play_until_written();
    let part_ns = UNIT * 1_000_000_000 / device.bus.bytes_per_second;
    assert_eq!(read_latency(&mut drive, 0), SLC.read_ns + part_ns);
    let before = drive.now();
    rest(&mut drive);
    let counted = drive.counters();
    let cached = counted.programmed_in_slc_mode;
    assert_eq!(cached, (24 << 20) / UNIT);
    // The block that is written is not full, and stays in the cache.
    assert!(
        counted.programmed_for_folding <= cached && counted.programmed_for_folding > cached / 2
    );
    assert_eq!(counted.programmed_for_collection, 0);
    assert!(drive.now().0 >= before.0 + 50_000_000, "it waits for 50 ms");
    assert_eq!(read_latency(&mut drive, 0), READ_NS + part_ns);
    drive.check().unwrap();
    // There is room for the next burst.
    let erased = drive.counters().erases;
    write_on(&mut drive, 0, 12 << 20);
    drive.play_until_written();
    assert_eq!(drive.counters().programmed_in_slc_mode, cached + (12 << 20) / UNIT);
    assert_eq!(drive.counters().erases, erased);
}

#[test]
fn with_folding_in_order_each_page_is_programmed_twice() {
    let device = device(1 << 20);
    let mut drive = Drive::new(&device, &cached(24 << 20, Folding::InOrder), 20.0).unwrap();
    let capacity = drive.capacity_bytes();
    write_on(&mut drive, 0, 64 << 20);
    drive.clear_counters();
    let rate = write_on(&mut drive, 64 << 20, capacity - (64 << 20));
    let counted = drive.counters();
    assert_eq!(counted.programmed_in_slc_mode, counted.programmed_for_host);
    let folded = counted.programmed_for_folding as f64 / counted.programmed_for_host as f64;
    assert!((folded - 1.0).abs() < 0.05, "{folded} of the pages are folded: {counted:?}");
    // A row of a die: programmed in SLC mode; then sensed there page by page, sent over the bus in
    // both directions, and programmed. Dies of a channel share the bus.
    let planes = u64::from(device.geometry.planes_per_die);
    let crossing_ns = planes * u64::from(PAGE) * 1_000_000_000 / device.bus.bytes_per_second;
    let row_ns = SLC.program_ns + planes * SLC.read_ns + PROGRAM_NS + 3 * crossing_ns;
    let row = (planes * u64::from(PAGE) * u64::from(drive.dies())) as f64;
    let predicted = row * 1e9 / row_ns as f64;
    println!("{rate:e} bytes a second, predicted {predicted:e}");
    assert!((rate / predicted - 1.0).abs() < 0.15, "{rate} bytes a second, not {predicted}");
    drive.check().unwrap();
}

#[test]
fn drawn_drives_with_a_cache_keep_their_maps_and_equal_seeds_give_equal_runs() {
    for seed in 0..40 {
        let mut rng = Rng::seeded(seed).fork("slc");
        let folding = [Folding::Idle, Folding::InOrder][rng.below(2) as usize];
        let drawn = drawn_layout(&mut rng);
        let slc_cache = cached(1 + rng.below(40 << 20), folding).slc_cache;
        let layout = PageMapped { slc_cache, ..drawn };
        let device = device(rng.below(3) << 19);
        let op_percent = 7.0 + rng.below(30) as f64;
        let twice = [(); 2].map(|()| {
            let mut drive = Drive::new(&device, &layout, op_percent).unwrap();
            match seed % 3 {
                0 => drive.make_steady(seed),
                1 => drive.fill(),
                _ => {}
            }
            let mut done = Vec::new();
            for part in 0..4 {
                done.extend(run(&mut drive, 1500, 16, seed + part));
                drive.check().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                if part % 2 == 0 {
                    rest(&mut drive);
                    drive.check().unwrap_or_else(|error| panic!("seed {seed}, idle: {error}"));
                }
            }
            (done, drive.counters(), drive.now())
        });
        assert!(twice[0] == twice[1], "seed {seed}: two runs differ");
        assert!(twice[0].1.programmed_in_slc_mode > 0, "seed {seed}: {:?}", twice[0].1);
    }
}

#[test]
fn a_cache_that_cannot_work_is_refused_with_a_remedy() {
    let refused = |device: &DeviceSpec, layout: PageMapped| {
        let refused = Drive::new(device, &layout, 20.0);
        refused.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let usual = || cached(1 << 20, Folding::Idle);
    let tlc = device(0);
    let mut slc = device(0);
    slc.die.cell = Cell::Slc;
    assert!(refused(&slc, usual()).contains("one bit anyway"));
    let mut untimed = device(0);
    untimed.die.slc_mode = None;
    assert!(refused(&untimed, usual()).contains("die.slc_mode"));
    let layouts = [
        (PageMapped { parity_data_pages: 3, ..usual() }, "parity_data_pages = 0"),
        (PageMapped { copyback: true, mapping_unit: MappingUnit::Page, ..usual() }, "copyback"),
        (PageMapped { map: MapKind::Cached(Share::new(1, 2).unwrap()), ..usual() }, "map ="),
        (PageMapped { placement: PlacementPolicy::by_hint(2), ..usual() }, "by-hint"),
        (cached(0, Folding::Idle), "bytes"),
        (cached(1 << 40, Folding::Idle), "blocks in every plane"),
    ];
    for (layout, told) in layouts {
        let error = refused(&tlc, layout);
        assert!(error.contains(told), "{error:?} does not tell of {told}");
    }
}
