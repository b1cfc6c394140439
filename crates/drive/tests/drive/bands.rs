//! Drives with bands: no page is lost or stale, write amplification is that of the mean field, and
//! what needs another layout is refused.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use crate::support::run;
use softflash_base::random::Rng;
use softflash_drive::spec::{
    BandChoice, Bands, Collect, DeviceSpec, FrontierScope, GcClass, MapKind, MappingUnit,
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
/// pages lie in so many blocks (finite-block mean field): a block loses its valid pages at a rate in
/// proportion to their number, from all down to the level of collection.
fn mean_field(pages: f64, blocks: f64, in_block: u32) -> f64 {
    let in_block_f = f64::from(in_block);
    let (mut level, mut time, mut before) = (in_block, 0.0, 1.0);
    loop {
        // The mean valid share of blocks that are collected with `level - 1` valid pages.
        time += 1.0 / f64::from(level);
        let collected = f64::from(level - 1);
        let mean = (in_block_f - collected) / (in_block_f * time);
        let wanted = pages / (blocks * in_block_f);
        if mean <= wanted || level == 1 {
            let part = if before > mean { (before - wanted) / (before - mean) } else { 1.0 };
            let collected = collected + 1.0 - part;
            return in_block_f / (in_block_f - collected);
        }
        (level, before) = (level - 1, mean);
    }
}

/// The write amplification of so many uniform rewrites of a drive that is settled.
fn uniform(drive: &mut Drive, rewrites: u64, hints: u32, seed: u64) -> f64 {
    let (mut rng, pages) = (Rng::seeded(seed), drive.capacity_bytes() / PAGE_BYTES);
    drive.fill();
    for write in 0..(5 + rewrites) * pages {
        if write == 5 * pages {
            drive.clear_counters();
        }
        let hint = if hints > 1 { rng.below(hints.into()) as u32 } else { 0 };
        drive.overwrite_hinted_now(rng.below(pages) * PAGE_BYTES, hint);
    }
    assert_eq!(drive.check(), Ok(()), "seed {seed}");
    drive.counters().waf()
}

#[test]
fn uniform_writes_come_to_the_mean_field_at_every_width() {
    let seed = 11;
    println!("seed {seed}");
    let (dies, blocks, in_block) = (16, 256, 64);
    for (width, lanes, collect) in [
        ("1", 16, Collect::Band),
        ("1/4", 4, Collect::Band),
        ("1/16", 1, Collect::Band),
        ("1", 1, Collect::Block),
    ] {
        let layout = layout(&[width], collect);
        let mut drive = Drive::new(&device(dies, blocks, in_block), &layout, 8.0).unwrap();
        let pages = (drive.capacity_bytes() / PAGE_BYTES) as f64;
        let waf = uniform(&mut drive, 3, 1, seed);
        let all = f64::from(u32::from(dies) * blocks);
        for reserve in [0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0] {
            let theory = mean_field(pages, all - reserve * 16.0, in_block * lanes);
            println!("{width} {collect:?}: {waf:.3}, reserve {reserve}: {theory:.3}");
        }
    }
}

#[test]
fn no_page_is_lost_and_all_requests_complete() {
    for seed in 0..60 {
        let mut rng = Rng::seeded(seed).fork("bands");
        let mut array = array(4 << rng.below(2), 24 + rng.below(40) as u32, 4 + 2 * rng.below(12) as u32);
        array.geometry.planes_per_die = 1 << rng.below(2);
        array.geometry.blocks_per_plane += 40;
        array.die.cache_program = rng.chance(0.5);
        array.die.cache_read = rng.chance(0.5);
        let mut device = DeviceSpec::bare("bands", &array);
        device.controller.write_buffer_bytes = rng.below(2) * 32 * PAGE_BYTES;
        device.controller.queue_depth = 8 * rng.below(3) as u32;
        let widths: &[&str] = [&["1"][..], &["1/2"], &["1/8"], &["1/4", "1"], &["1/2", "1/8"]]
            [rng.below(5) as usize];
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
