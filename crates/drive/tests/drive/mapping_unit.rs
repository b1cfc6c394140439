//! Drives whose map places less than a flash page: writes gather until they fill pages, reads take
//! what they need of a page, and collection packs what is valid.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use crate::support::run;
use softflash_base::random::Rng;
use softflash_drive::spec::{
    DeviceSpec, FrontierScope, MapKind, MappingUnit, PageMapped, PlacementPolicy, Share,
    VictimPolicy,
};
use softflash_drive::{AccessKind, Done, Drive, DriveCounters, HostRequest};
use softflash_nand::presets;

const UNIT: u64 = 4096;
const PAGE: u32 = 16_384;

/// Flash with pages of 16 KiB, behind a write buffer of so many bytes.
fn device(blocks: u32, buffer_bytes: u64) -> DeviceSpec {
    let mut array = presets::small();
    array.geometry.page_bytes = PAGE;
    array.geometry.pages_per_block = 128;
    array.geometry.blocks_per_plane = blocks;
    let mut device = DeviceSpec::bare("packed", &array);
    device.controller.write_buffer_bytes = buffer_bytes;
    device
}

fn write(tag: u64, unit: u64) -> HostRequest {
    HostRequest::new(tag, AccessKind::Write, unit * UNIT, UNIT)
}

/// Random writes of a unit in a closed loop; returns what was counted.
fn overwrite(drive: &mut Drive, writes: u64, depth: u64, rng: &mut Rng) -> DriveCounters {
    let units = drive.capacity_bytes() / UNIT;
    drive.clear_counters();
    let (mut submitted, mut done) = (0, Vec::new());
    while (done.len() as u64) < writes {
        while submitted < writes && submitted - (done.len() as u64) < depth {
            drive.submit(drive.now(), write(submitted, rng.below(units))).unwrap();
            submitted += 1;
        }
        assert!(drive.step(&mut done), "{} of {submitted} writes ended", done.len());
    }
    drive.counters()
}

/// Lets the drive program what waits in its buffer.
fn settle(drive: &mut Drive) -> Vec<Done> {
    let mut done = Vec::new();
    while drive.step(&mut done) {}
    done
}

#[test]
fn random_writes_fill_flash_pages_and_amplification_is_that_of_the_units() {
    let (plane, die) = (FrontierScope::Plane, FrontierScope::Die);
    for (frontier, op_percent) in [(plane, 7.0), (plane, 14.0), (plane, 28.0), (die, 14.0)] {
        {
            let layout = PageMapped { frontier, ..PageMapped::default() };
            let mut drive = Drive::new(&device(100, 1 << 20), &layout, op_percent).unwrap();
            // The same order of placement.
            let placement = PlacementPolicy::ROUND_ROBIN;
            let whole = PageMapped { mapping_unit: MappingUnit::Page, placement, ..layout };
            let mut device = device(100, 1 << 20);
            device.geometry.pages_per_block *= 4;
            device.geometry.page_bytes = UNIT as u32;
            let mut alike = Drive::new(&device, &whole, op_percent).unwrap();
            let waf = |drive: &mut Drive| {
                drive.make_steady(1);
                let mut rng = Rng::seeded(2);
                let units = drive.capacity_bytes() / UNIT;
                overwrite(drive, units, 64, &mut rng);
                let counted = overwrite(drive, units, 64, &mut rng);
                drive.check().unwrap();
                // Writes that replaced one in the buffer are programmed in neither.
                (counted.programmed() as f64 / counted.programmed_for_host as f64, counted)
            };
            let ((packed, counted), (alike, _)) = (waf(&mut drive), waf(&mut alike));
            println!("{frontier:?} {op_percent}: {packed:.3} {alike:.3} {counted:?}");
            assert!(
                (packed / alike - 1.0).abs() < 0.02,
                "{frontier:?}, {op_percent} %: {packed} and {alike}"
            );
        }
    }
}

/// Dies whose collection leaves other row ends would take more pages, and keep more valid ones.
#[test]
fn dies_share_the_pages_of_the_host_equally_and_amplify_as_one_die() {
    let waf = |dies: u16| {
        let mut device = device(128, 0);
        (device.geometry.channels, device.geometry.chips_per_channel) = (dies, 1);
        (device.geometry.planes_per_die, device.geometry.pages_per_block) = (4, 24);
        let layout = PageMapped { frontier: FrontierScope::Die, ..PageMapped::default() };
        let mut drive = Drive::new(&device, &layout, 14.0).unwrap();
        drive.fill();
        let mut rng = Rng::seeded(7);
        let units = drive.capacity_bytes() / UNIT;
        for rewrite in 0..12 {
            if rewrite == 6 {
                drive.clear_counters();
            }
            (0..units).for_each(|_| drive.overwrite_now(rng.below(units) * UNIT));
        }
        drive.counters().waf()
    };
    let one = waf(1);
    for dies in [2, 3, 8] {
        let several = waf(dies);
        assert!((several / one - 1.0).abs() < 0.01, "{dies} dies: {several}, one die: {one}");
    }
}

fn read(tag: u64, offset_bytes: u64, bytes: u64) -> HostRequest {
    HostRequest::new(tag, AccessKind::Read, offset_bytes, bytes)
}

#[test]
fn a_read_senses_a_flash_page_once_and_sends_what_it_needs() {
    let device = device(24, 1 << 20);
    let mut drive = Drive::new(&device, &PageMapped::default(), 28.0).unwrap();
    drive.fill();
    let mut latency = |offset_bytes, bytes| {
        drive.submit(drive.now(), read(0, offset_bytes, bytes)).unwrap();
        let done = settle(&mut drive);
        done[0].latency_ns()
    };
    let sense_ns = device.die.read_ns[0];
    let page_ns = u64::from(PAGE) * 1_000_000_000 / device.bus.bytes_per_second;
    assert_eq!(latency(0, UNIT), sense_ns + page_ns / 4);
    assert_eq!(latency(UNIT, 2 * UNIT), sense_ns + page_ns / 2);
    assert_eq!(latency(0, 4 * UNIT), sense_ns + page_ns);
    assert_eq!(drive.counters().read_for_host, 7);
}

#[test]
fn what_waits_too_long_is_programmed_in_part_of_a_flash_page() {
    let layout = PageMapped { gather_us: 500, ..PageMapped::default() };
    let mut drive = Drive::new(&device(24, 1 << 20), &layout, 28.0).unwrap();
    for unit in 0..5 {
        drive.submit(drive.now(), write(unit, 7 * unit)).unwrap();
    }
    let done = settle(&mut drive);
    assert!(done.iter().all(|done| done.latency_ns() < 500_000), "the buffer takes them");
    let counted = drive.counters();
    assert_eq!((counted.programmed_for_host, counted.programmed_for_padding), (5, 3));
    assert_eq!(counted.partial_page_programs, 1);
    assert!(drive.now().0 >= 500_000 + 200_000, "{} ns", drive.now().0);
    drive.check().unwrap();
}

#[test]
fn without_a_buffer_nothing_waits_and_every_write_takes_a_flash_page() {
    let device = device(24, 0);
    let mut drive = Drive::new(&device, &PageMapped::default(), 28.0).unwrap();
    let page_ns = u64::from(PAGE) * 1_000_000_000 / device.bus.bytes_per_second;
    for unit in 0..8 {
        drive.submit(drive.now(), write(unit, unit)).unwrap();
        assert_eq!(settle(&mut drive)[0].latency_ns(), page_ns + device.die.program_ns[0]);
    }
    let counted = drive.counters();
    assert_eq!((counted.partial_page_programs, counted.waf()), (8, 4.0));
}

#[test]
fn without_a_buffer_the_pages_of_a_request_fill_flash_pages_together() {
    for write_page_ns in [0, 1000] {
        let mut device = device(24, 0);
        device.controller.write_page_ns = write_page_ns;
        let mut drive = Drive::new(&device, &PageMapped::default(), 28.0).unwrap();
        for (tag, units) in [(0, 4), (1, 6), (2, 1), (3, 8)] {
            let write = HostRequest::new(tag, AccessKind::Write, tag * 8 * UNIT, units * UNIT);
            drive.submit(drive.now(), write).unwrap();
        }
        assert_eq!(settle(&mut drive).len(), 4);
        let counted = drive.counters();
        // The last two units of the second request, and the single one of the third.
        let padded = (counted.partial_page_programs, counted.programmed_for_padding);
        assert_eq!(padded, (2, 2 + 3), "{write_page_ns} ns a page: {counted:?}");
        drive.check().unwrap();
    }
}

/// With the least spare every group is as full as collection allows.
#[test]
fn rows_are_full_at_the_least_spare_too() {
    for frontier in [FrontierScope::Plane, FrontierScope::Die] {
        for buffer_bytes in [1 << 20, 16 << 20] {
            let layout = PageMapped { frontier, ..PageMapped::default() };
            let mut drive = Drive::new(&device(24, buffer_bytes), &layout, 0.0).unwrap();
            drive.make_steady(1);
            let writes = drive.capacity_bytes() / UNIT;
            let counted = overwrite(&mut drive, writes, 64, &mut Rng::seeded(3));
            drive.check().unwrap();
            let (partial, pages) = (counted.partial_page_programs, counted.programmed() / 4);
            println!("{frontier:?}, {buffer_bytes}: {partial} of {pages} flash pages are partial");
            assert!(partial * 1000 < pages, "{frontier:?}: {partial} of {pages}: {counted:?}");
        }
    }
}

#[test]
fn every_layout_keeps_its_map_and_completes_all_and_equal_seeds_give_equal_runs() {
    for seed in 0..24 {
        println!("seed {seed}");
        let mut rng = Rng::seeded(seed).fork("layout");
        let placements = [
            PlacementPolicy::STATIC,
            PlacementPolicy::LEAST_QUEUE,
            PlacementPolicy::MOST_FREE,
            PlacementPolicy::by_hint(3),
        ];
        let cached = Share::new(1, 4).map_or(MapKind::Page, MapKind::Cached);
        let layout = PageMapped {
            mapping_unit: MappingUnit::Bytes(1024 << rng.below(4)),
            gather_us: rng.below(2000) as u32,
            frontier: if rng.chance(0.5) { FrontierScope::Plane } else { FrontierScope::Die },
            placement: placements[rng.below(4) as usize],
            map: if rng.chance(0.3) { cached } else { MapKind::Page },
            victim: if rng.chance(0.5) { VictimPolicy::GREEDY } else { VictimPolicy::FIFO },
            parity_data_pages: if rng.chance(0.3) { 7 } else { 0 },
            ..PageMapped::default()
        };
        let mut device = device(24, [0, 8192, 64 << 10, 1 << 20][rng.below(4) as usize]);
        device.geometry.pages_per_block = 16;
        device.geometry.planes_per_die = 1 << rng.below(2);
        let results = [(); 2].map(|()| {
            let mut drive = Drive::new(&device, &layout, 28.0).unwrap();
            drive.make_steady(seed);
            drive.check().unwrap_or_else(|error| panic!("steady, {layout:?}: {error}"));
            let mut done = run(&mut drive, 3000, 1 + (seed as usize % 40), seed);
            done.extend(settle(&mut drive));
            drive.check().unwrap_or_else(|error| panic!("{layout:?}: {error}"));
            (done, drive.counters())
        });
        assert_eq!(results[0], results[1], "{layout:?}");
        let (done, counted) = &results[0];
        assert_eq!(done.len(), 3000);
        assert!(counted.erases > 0, "{layout:?}: {counted:?}");
    }
}

#[test]
fn a_mapping_unit_is_a_power_of_two_and_copyback_moves_whole_pages() {
    let refused =
        |layout: &PageMapped| Drive::new(&device(24, 0), layout, 28.0).err().unwrap().to_string();
    let of = |unit| PageMapped { mapping_unit: MappingUnit::Bytes(unit), ..PageMapped::default() };
    assert!(refused(&of(3000)).contains("mapping_unit = 3000"), "{}", refused(&of(3000)));
    assert!(refused(&of(256)).contains("512 to 16384"));
    let mut large = device(24, 0);
    large.geometry.page_bytes = 65_536;
    let parts = Drive::new(&large, &of(1024), 28.0).err().unwrap().to_string();
    assert!(parts.contains("2048 to 65536"), "a page of 64 parts: {parts}");
    let copyback = PageMapped { copyback: true, ..PageMapped::default() };
    assert!(refused(&copyback).contains("mapping_unit = \"page\""));
    // A unit of a page or more is a page.
    let whole = Drive::new(&device(24, 0), &of(1 << 20), 28.0).unwrap();
    assert_eq!(whole.page_bytes(), PAGE);
}
