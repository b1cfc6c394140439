//! Drives with bands: no page is lost or stale, write amplification is that of the mean field, and
//! what needs another layout is refused.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use crate::support::{run, tlc_device};
use softflash_base::random::Rng;
use softflash_drive::spec::{
    BandChoice, Bands, Collect, DeviceSpec, Folding, FrontierScope, GcClass, MapKind, MappingUnit,
    PageMapped, PlacementPolicy, Schedule, Share, SlcCache, VictimPolicy, WearPolicy,
};
use softflash_drive::{AccessKind, Drive, DriveError, HostRequest};
use softflash_nand::{ArrayConfig, presets};

const PAGE_BYTES: u64 = 4096;

fn bands(widths: &[&str]) -> Bands {
    Bands::Widths(widths.iter().map(|text| Share::parse(text).unwrap()).collect())
}

/// Flash of so many dies with one plane each, on four channels.
fn array(dies: u8, blocks: u32, pages: u32) -> ArrayConfig {
    let mut array = presets::small();
    array.geometry.channels = 4;
    array.geometry.chips_per_channel = dies / 4;
    array.geometry.dies_per_chip = 1;
    array.geometry.planes_per_die = 1;
    array.geometry.blocks_per_plane = blocks;
    array.geometry.pages_per_block = pages;
    array
}

fn device(dies: u8, blocks: u32, pages: u32) -> DeviceSpec {
    DeviceSpec::bare("bands", &array(dies, blocks, pages))
}

fn layout(widths: &[&str], collect: Collect) -> PageMapped {
    let band_choice = (widths.len() > 1).then_some(BandChoice::Shape(64 << 10));
    PageMapped { bands: bands(widths), collect, band_choice, ..PageMapped::default() }
}

/// Write amplification of greedy collection in the steady state of uniform writes, where so many
/// pages lie in so many blocks (finite-block mean field): a block loses its valid pages at a rate
/// in proportion to their number, from all down to the level of collection.
fn mean_field(pages: f64, blocks: f64, in_block: u32) -> f64 {
    let all = f64::from(in_block);
    let wanted = pages / (blocks * all);
    let (mut time, mut above) = (0.0, 1.0);
    for level in (1..=in_block).rev() {
        // The mean valid share of blocks that are collected at `level - 1` valid pages.
        time += 1.0 / f64::from(level);
        let mean = f64::from(in_block - level + 1) / (all * time);
        if mean <= wanted {
            let part = (above - wanted) / (above - mean);
            return all / (f64::from(in_block - level) + part);
        }
        above = mean;
    }
    1.0
}

/// Writes pages that `next` chooses, with hints, in no time: so many times the capacity; returns
/// the write amplification of those after `settled` times.
fn waf_of(
    drive: &mut Drive,
    (settled, times): (u64, u64),
    mut next: impl FnMut(u64) -> (u64, u32),
) -> f64 {
    let pages = drive.capacity_bytes() / PAGE_BYTES;
    drive.fill();
    for write in 0..times * pages {
        if write == settled * pages {
            drive.clear_counters();
        }
        let (page, hint) = next(write);
        drive.overwrite_hinted_now(page * PAGE_BYTES, hint);
    }
    assert_eq!(drive.check(), Ok(()));
    drive.counters().waf()
}

#[test]
fn uniform_writes_come_to_the_mean_field_at_every_width() {
    let seed = 11;
    println!("seed {seed}");
    let (dies, blocks, in_block) = (16, 256, 64);
    for (width, of_band, collect) in [
        ("1", 16, Collect::Band),
        ("1/4", 4, Collect::Band),
        ("1/16", 1, Collect::Band),
        ("1", 16, Collect::Block),
    ] {
        let layout = layout(&[width], collect);
        let mut drive = Drive::new(&device(dies, blocks, in_block), &layout, 8.0).unwrap();
        let (mut rng, pages) = (Rng::seeded(seed), drive.capacity_bytes() / PAGE_BYTES);
        let waf = waf_of(&mut drive, (4, 7), |_| (rng.below(pages), 0));
        // Of each lane one block is kept for collection; bands of the host and of collection are
        // half full on average, and those of collection cover the lanes.
        let lanes = f64::from(dies);
        let open = lanes + 0.5 * lanes + f64::from(of_band);
        let closed = lanes * f64::from(blocks) - open;
        let collected = if collect == Collect::Band { of_band } else { 1 };
        let closed = closed / f64::from(collected);
        let theory = mean_field(pages as f64, closed, in_block * collected);
        println!("{width} {collect:?}: {waf:.3}, mean field {theory:.3}");
        assert!((waf / theory - 1.0).abs() < 0.03, "{width} {collect:?}: {waf}, not {theory}");
    }
}

/// Write amplification where every second page is the next of the first half, and the others are
/// random pages of the second half.
fn mixed_waf(widths: &[&str], collect: Collect, seed: u64) -> f64 {
    let layout = layout(widths, collect);
    let mut drive = Drive::new(&device(16, 512, 32), &layout, 100.0 / 15.0).unwrap();
    let (mut rng, half) = (Rng::seeded(seed), drive.capacity_bytes() / PAGE_BYTES / 2);
    waf_of(&mut drive, (5, 9), |write| match write % 2 {
        0 => (write / 2 % half, 0),
        _ => (half + rng.below(half), 0),
    })
}

#[test]
fn sequential_and_random_writes_in_bands_of_their_own_cost_less_than_in_one() {
    let seed = 12;
    println!("seed {seed}");
    let one = mixed_waf(&["1"], Collect::Band, seed);
    let split = mixed_waf(&["1", "1/8"], Collect::Band, seed);
    println!("one {one:.3}, split {split:.3}");
    assert!(split < 3.3 && split < 0.65 * one, "{split}, {one} in one band");
}

#[test]
fn narrow_bands_of_many_classes_leave_more_spare_than_wide_ones() {
    let seed = 13;
    println!("seed {seed}");
    let [wide, narrow] = ["1", "1/8"].map(|width| {
        let placement = PlacementPolicy::by_hint(8);
        let gc_class = GcClass::Mixed;
        let layout = PageMapped { placement, gc_class, ..layout(&[width], Collect::Band) };
        let mut drive = Drive::new(&device(16, 512, 32), &layout, 100.0 / 15.0).unwrap();
        let (mut rng, pages) = (Rng::seeded(seed), drive.capacity_bytes() / PAGE_BYTES);
        waf_of(&mut drive, (4, 7), |_| (rng.below(pages), rng.below(8) as u32))
    });
    println!("wide {wide:.3}, narrow {narrow:.3}");
    assert!(wide > 1.1 * narrow, "{wide} with wide bands, {narrow} with narrow ones");
}

#[test]
fn wide_requests_use_all_lanes_and_random_ones_those_of_a_narrow_band() {
    let seed = 14;
    println!("seed {seed}");
    // As many bytes under way in both cases.
    let finished_at = |bytes: u64, depth: u64| {
        let layout = layout(&["1", "1/8"], Collect::Band);
        let mut drive = Drive::new(&device(16, 64, 128), &layout, 20.0).unwrap();
        let (mut rng, mut done) = (Rng::seeded(seed), Vec::new());
        let (places, writes) = (drive.capacity_bytes() / bytes, (4 << 20) / bytes);
        for write in 0..writes {
            let offset_bytes = rng.below(places) * bytes;
            let request = HostRequest::new(write, AccessKind::Write, offset_bytes, bytes);
            drive.submit(drive.now(), request).unwrap();
            while write + 1 - done.len() as u64 == depth {
                assert!(drive.step(&mut done));
            }
        }
        while drive.step(&mut done) {}
        assert_eq!(done.len() as u64, writes);
        drive.now().0
    };
    let (wide, narrow) = (finished_at(64 << 10, 1), finished_at(PAGE_BYTES, 16));
    println!("{narrow} ns with small requests, {wide} ns with large ones");
    assert!(narrow > 2 * wide, "{narrow} ns with small requests, {wide} ns with large ones");
}

#[test]
fn collection_keeps_pace_with_the_host() {
    let seed = 15;
    println!("seed {seed}");
    let mut drive = Drive::new(&device(16, 64, 128), &layout(&["1"], Collect::Band), 20.0).unwrap();
    drive.make_steady(seed);
    let (mut rng, mut done) = (Rng::seeded(seed), Vec::new());
    let pages = drive.capacity_bytes() / PAGE_BYTES;
    for write in 0..20_000 {
        let offset_bytes = rng.below(pages) * PAGE_BYTES;
        let request = HostRequest::new(write, AccessKind::Write, offset_bytes, PAGE_BYTES);
        drive.submit(drive.now(), request).unwrap();
        while write + 1 - done.len() as u64 == 16 {
            assert!(drive.step(&mut done));
        }
    }
    let mean = done.iter().map(|of| of.latency_ns()).sum::<u64>() / done.len() as u64;
    let most = done.iter().map(|of| of.latency_ns()).max().unwrap();
    println!("mean {mean} ns, most {most} ns");
    // Without a pace a write would wait while several bands of 128 rows are moved.
    assert!(most < 40 * mean, "a write of {most} ns, {mean} on average");
}

#[test]
fn equal_seeds_give_equal_drives() {
    println!("seeds 0 to 3");
    for seed in 0..4 {
        let run_of = |seed| {
            let collect = [Collect::Band, Collect::Block][seed as usize % 2];
            let layout = layout(&["1", "1/4"], collect);
            let mut drive = Drive::new(&device(8, 40, 16), &layout, 25.0).unwrap();
            drive.make_steady(seed);
            let done = run(&mut drive, 4000, 32, seed);
            (done, drive.counters(), drive.now())
        };
        assert_eq!(run_of(seed), run_of(seed), "seed {seed}");
    }
}

#[test]
fn what_bands_cannot_work_with_is_refused_with_the_remedy() {
    let widths = |widths: &[&str]| layout(widths, Collect::Band);
    let one = || widths(&["1/8"]);
    let map: MapKind = "cached:1/8".parse().unwrap();
    let cache = SlcCache { bytes: 1 << 20, folding: Folding::Idle, idle_ms: 100 };
    let choice = Some(BandChoice::Shape(4096));
    for (layout, names, remedy) in [
        (PageMapped { map, ..one() }, "map", "map = \"page\""),
        (PageMapped { parity_data_pages: 3, ..one() }, "parity", "parity_data_pages = 0"),
        (PageMapped { copyback: true, ..one() }, "copyback", "copyback = false"),
        (PageMapped { scrub_hours: 1.0, ..one() }, "scrub_hours", "scrub_hours = 0"),
        (
            PageMapped { placement: PlacementPolicy::LEAST_QUEUE, ..one() },
            "placement = \"least-queue\"",
            "by-hint:N",
        ),
        (
            PageMapped { mapping_unit: MappingUnit::Bytes(2048), ..one() },
            "mapping_unit",
            "mapping_unit = \"page\"",
        ),
        (PageMapped { band_choice: choice, ..one() }, "band_choice", "leave band_choice out"),
        (PageMapped { band_choice: None, ..widths(&["1", "1/4"]) }, "no choice", "shape:256KiB"),
        (widths(&["1", "2/2"]), "both widths are 16 of 16 lanes", "differ"),
        (widths(&["1", "1/2", "1/4"]), "3 widths", "one or two"),
        (
            PageMapped { collect: Collect::Block, ..PageMapped::default() },
            "collect",
            "bands = \"1/8\"",
        ),
        (
            PageMapped { band_choice: choice, ..PageMapped::default() },
            "band_choice",
            "leave band_choice out",
        ),
    ] {
        let error = Drive::new(&device(16, 64, 32), &layout, 20.0).err().unwrap();
        let text = error.to_string();
        assert!(matches!(error, DriveError::Bands { .. }), "{text}");
        assert!(text.contains(names) && text.contains(remedy), "{text}: {names}, {remedy}");
    }
    // Of flash that can have an SLC cache.
    let layout = PageMapped { slc_cache: Some(cache), ..one() };
    let error = Drive::new(&tlc_device(0), &layout, 20.0).err().unwrap().to_string();
    assert!(error.contains("leave slc_cache out"), "{error}");
}

#[test]
fn bands_are_stated_in_toml() {
    for (text, widths) in
        [("\"1\"", &["1"][..]), ("\"1/8\"", &["1/8"]), ("[\"1\", \"1/8\"]", &["1", "1/8"])]
    {
        let layout: PageMapped = toml::from_str(&format!("bands = {text}")).unwrap();
        assert_eq!(layout.bands, bands(widths), "{text}");
        assert!(toml::to_string(&layout).unwrap().contains(&format!("bands = {text}")), "{text}");
    }
    let none: PageMapped = toml::from_str("bands = \"none\"").unwrap();
    assert_eq!(none, PageMapped::default());
    for (text, says) in [("\"wide\"", "no share of 1"), ("[]", "no width"), ("3", "\"none\"")] {
        let error = toml::from_str::<PageMapped>(&format!("bands = {text}")).unwrap_err();
        assert!(error.to_string().contains(says), "{text}: {error}");
    }
    let choice = toml::from_str::<PageMapped>("band_choice = \"size:4\"").unwrap_err();
    assert!(choice.to_string().contains("shape:256KiB"), "{choice}");
}

#[test]
fn no_page_is_lost_and_all_requests_complete() {
    for seed in 0..60 {
        let mut rng = Rng::seeded(seed).fork("bands");
        let mut array =
            array(4 << rng.below(2), 24 + rng.below(40) as u32, 4 + 2 * rng.below(12) as u32);
        array.geometry.planes_per_die = 1 << rng.below(2);
        array.geometry.blocks_per_plane += 40;
        array.die.cache_program = rng.chance(0.5);
        array.die.cache_read = rng.chance(0.5);
        let mut device = DeviceSpec::bare("bands", &array);
        device.controller.write_buffer_bytes = rng.below(2) * 32 * PAGE_BYTES;
        device.controller.queue_depth = 8 * rng.below(3) as u32;
        let widths: &[&str] =
            [&["1"][..], &["1/2"], &["1/8"], &["1/4", "1"], &["1/2", "1/8"]][rng.below(5) as usize];
        let collect = [Collect::Band, Collect::Block][rng.below(2) as usize];
        let layout = PageMapped {
            frontier: [FrontierScope::Plane, FrontierScope::Die][rng.below(2) as usize],
            gc_class: [GcClass::Kept, GcClass::Mixed][rng.below(2) as usize],
            placement: [PlacementPolicy::STATIC, PlacementPolicy::by_hint(2)]
                [rng.below(2) as usize],
            schedule: [Schedule::FIFO, Schedule::READS_FIRST, Schedule::deadline(1)]
                [rng.below(3) as usize],
            victim: [VictimPolicy::GREEDY, VictimPolicy::FIFO, VictimPolicy::d_choices(3)]
                [rng.below(3) as usize],
            wear: [WearPolicy::FIFO, WearPolicy::level_by(4)][rng.below(2) as usize],
            ..layout(widths, collect)
        };
        println!("seed {seed}: {layout:?}");
        let mut drive = match Drive::new(&device, &layout, 40.0 * rng.unit_f64()) {
            Err(DriveError::TooFewBlocks { .. } | DriveError::Bands { .. }) => continue,
            made => made.unwrap(),
        };
        match rng.below(3) {
            0 => {}
            1 => drive.fill(),
            _ => drive.make_steady(seed),
        }
        assert_eq!(drive.check(), Ok(()), "seed {seed}");
        let done = run(&mut drive, 3000, 1 + rng.below(60) as usize, seed);
        assert_eq!((done.len(), drive.check()), (3000, Ok(())), "seed {seed}");
        while drive.step(&mut Vec::new()) {}
        assert_eq!((drive.in_flight(), drive.check()), (0, Ok(())), "seed {seed}");
    }
}
