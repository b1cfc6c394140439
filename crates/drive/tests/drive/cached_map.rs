//! Drives whose map lies on flash: how often pages of the map are found in memory, and what is read
//! and programmed for it.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use softflash_base::random::Rng;
use softflash_drive::spec::{DeviceSpec, PageMapped};
use softflash_drive::{AccessKind, Done, Drive, HostRequest, MapCounters};
use softflash_nand::presets;

/// Entries of a translation page.
const ENTRIES: u64 = 4096 / 4;

/// A drive of 4 dies of 4096 pages with this map, filled.
fn filled(map: &str) -> Drive {
    let mut array = presets::small();
    array.geometry.planes_per_die = 1;
    array.geometry.blocks_per_plane = 256;
    array.geometry.pages_per_block = 64;
    let layout = PageMapped { map: map.parse().unwrap(), ..PageMapped::default() };
    let mut drive = Drive::new(&DeviceSpec::bare("small", &array), &layout, 25.0).unwrap();
    drive.fill();
    drive.clear_counters();
    drive
}

fn pages_of(drive: &Drive) -> u64 {
    drive.capacity_bytes() / u64::from(drive.page_bytes())
}

/// Accesses single pages, eight at a time; returns the completions.
fn access(drive: &mut Drive, pages: impl Iterator<Item = (AccessKind, u64)>) -> Vec<Done> {
    let (mut submitted, mut done) = (0, Vec::new());
    for (kind, page) in pages {
        while submitted - done.len() == 8 {
            assert!(drive.step(&mut done));
        }
        let request = HostRequest::new(submitted as u64, kind, page * 4096, 4096);
        drive.submit(drive.now(), request).unwrap();
        submitted += 1;
    }
    while drive.step(&mut done) {}
    assert_eq!((drive.check(), done.len()), (Ok(()), submitted));
    done
}

/// Random reads and writes.
fn mixed(rng: &mut Rng, pages: u64, count: usize) -> Vec<(AccessKind, u64)> {
    let mut kind = || if rng.chance(0.5) { AccessKind::Read } else { AccessKind::Write };
    let kinds: Vec<AccessKind> = (0..count).map(|_| kind()).collect();
    kinds.into_iter().map(|kind| (kind, rng.below(pages))).collect()
}

#[test]
fn random_reads_find_the_map_in_memory_as_often_as_it_is_cached() {
    let mut drive = filled("cached:1/4");
    let (pages, mut rng) = (pages_of(&drive), Rng::seeded(5));
    println!("seed 5");
    let count = 20_000;
    access(&mut drive, (0..count).map(|_| (AccessKind::Read, rng.below(pages))));
    let MapCounters { hits, misses, reads, .. } = drive.map_counters().unwrap();
    assert_eq!(hits + misses, count);
    // Several lookups may wait for one read.
    assert!(reads <= misses && misses - reads < misses / 2, "{reads} reads, {misses} misses");
    let translation_pages = pages.div_ceil(ENTRIES);
    let expected = translation_pages.div_ceil(4) as f64 / translation_pages as f64;
    let ratio = drive.map_counters().unwrap().hit_ratio();
    // Four standard deviations, and the lookups that wait together count as misses.
    let error = 4.0 * (expected * (1.0 - expected) / count as f64).sqrt();
    assert!((ratio - expected).abs() < error + 0.03, "{ratio}, {expected} expected");
}

#[test]
fn sequential_reads_miss_once_for_each_translation_page() {
    let mut drive = filled("cached:1/8");
    let pages = pages_of(&drive);
    access(&mut drive, (0..pages).map(|page| (AccessKind::Read, page)));
    let counters = drive.map_counters().unwrap();
    let translation_pages = pages.div_ceil(ENTRIES);
    assert_eq!(counters.reads, translation_pages);
    // Eight requests are under way when a translation page is read.
    assert!(counters.misses <= 8 * translation_pages, "{counters:?}");
    assert_eq!(counters.hits + counters.misses, pages);
    // Those that the fill has left changed in the cache.
    assert_eq!(counters.programs, translation_pages.div_ceil(8));
}

#[test]
fn a_map_of_which_all_is_cached_costs_nothing_and_changes_nothing() {
    let (mut cached, mut page) = (filled("cached:100%"), filled("page"));
    // As many writes as there is room for before collection begins.
    let accesses = mixed(&mut Rng::seeded(6), pages_of(&cached), 2000);
    println!("seed 6");
    assert_eq!(
        access(&mut cached, accesses.iter().copied()),
        access(&mut page, accesses.into_iter())
    );
    assert_eq!(cached.counters(), page.counters());
    let MapCounters { misses, reads, programs, hits } = cached.map_counters().unwrap();
    assert_eq!((misses, reads, programs, hits), (0, 0, 0, 2000));
    assert_eq!(page.map_counters(), None);
}

#[test]
fn write_amplification_has_the_programs_of_the_map_and_falls_with_the_cache() {
    let mut before = f64::INFINITY;
    for share in ["1/12", "1/4", "1/2", "1"] {
        let mut drive = filled(&format!("cached:{share}"));
        let (pages, mut rng) = (pages_of(&drive), Rng::seeded(7));
        println!("seed 7");
        access(&mut drive, (0..30_000).map(|_| (AccessKind::Write, rng.below(pages))));
        drive.clear_counters();
        access(&mut drive, (0..20_000).map(|_| (AccessKind::Write, rng.below(pages))));
        let (counters, map) = (drive.counters(), drive.map_counters().unwrap());
        assert_eq!(counters.programmed_for_map, map.programs);
        let of_data = counters.programmed_for_host + counters.programmed_for_collection;
        let waf = (of_data + map.programs) as f64 / 20_000.0;
        assert!((counters.waf() - waf).abs() < 1e-9, "{share}");
        assert!(waf < before, "{share}: {waf} after {before}");
        assert_eq!(map.programs == 0, share == "1", "{share}: {map:?}");
        before = waf;
    }
}

#[test]
fn a_miss_takes_the_time_of_one_more_read() {
    let mut drive = filled("cached:1/12");
    let mut read = |page| {
        let done = access(&mut drive, std::iter::once((AccessKind::Read, page)));
        done[0].latency_ns()
    };
    let miss = read(0);
    let hit = read(1);
    assert_eq!(miss, 2 * hit);
}
