//! A sibling settles as the large drive does, and the large drive goes on where it has brought it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use softflash_base::random::Rng;
use softflash_drive::spec::{
    DeviceSpec, FrontierScope, MappingUnit, PageMapped, PlacementPolicy, VictimPolicy,
};
use softflash_drive::{Drive, Sibling};

const OP_PERCENT: f64 = 14.0;

/// Rewrites until the state is steady, and those whose write amplification is compared.
const SETTLING: u64 = 12;
const COMPARED: u64 = 2;

/// A device of 16 KiB pages, with blocks of so many pages in `dies` dies of one plane.
fn device(dies: u16, pages_per_block: u32) -> DeviceSpec {
    let mut array = softflash_nand::presets::small();
    let geometry = &mut array.geometry;
    (geometry.channels, geometry.chips_per_channel, geometry.dies_per_chip) = (dies, 1, 1);
    (geometry.planes_per_die, geometry.blocks_per_plane) = (1, 64);
    (geometry.pages_per_block, geometry.page_bytes) = (pages_per_block, 16 << 10);
    DeviceSpec::bare("sibling", &array)
}

/// The next page of nine writes of ten to a tenth of the drive, and its class.
fn hot_or_cold(rng: &mut Rng, pages: u64) -> (u64, u32) {
    let hot = pages / 10;
    match rng.chance(0.9) {
        true => (rng.below(hot), 1),
        false => (hot + rng.below(pages - hot), 0),
    }
}

/// A page whose probability falls with its number as x^-0.75.
fn skewed(rng: &mut Rng, pages: u64) -> (u64, u32) {
    let uniform = rng.below(1 << 32) as f64 / (1_u64 << 32) as f64;
    (((uniform.powi(4) * pages as f64) as u64).min(pages - 1), 0)
}

type Pattern = fn(&mut Rng, u64) -> (u64, u32);

/// Rewrites a drive so often; returns its write amplification.
fn rewrite(drive: &mut Drive, pattern: Pattern, rewrites: u64, rng: &mut Rng) -> f64 {
    drive.clear_counters();
    let page_bytes = u64::from(drive.page_bytes());
    let pages = drive.capacity_bytes() / page_bytes;
    for _ in 0..rewrites * pages {
        let (page, hint) = pattern(rng, pages);
        drive.overwrite_hinted_now(page * page_bytes, hint);
    }
    drive.counters().waf()
}

/// As [`rewrite`], of the sibling of a drive with so many pages.
fn rewrite_sibling(
    sibling: &mut Sibling,
    pages: u64,
    pattern: Pattern,
    writes: u64,
    rng: &mut Rng,
) -> f64 {
    let page_bytes = u64::from(sibling.drive().page_bytes());
    sibling.drive().clear_counters();
    for _ in 0..writes {
        let (page, hint) = pattern(rng, pages);
        if let Some(offset_bytes) = sibling.contract(page * page_bytes) {
            sibling.drive().overwrite_hinted_now(offset_bytes, hint);
        }
    }
    sibling.drive().counters().waf()
}

/// The write amplification of a drive that settles itself, and of one whose sibling does.
fn settled_both_ways(device: &DeviceSpec, layout: &PageMapped, pattern: Pattern) -> [f64; 2] {
    let new = || Drive::new(device, layout, OP_PERCENT).unwrap();
    let mut rng = Rng::seeded(5);
    let mut itself = new();
    itself.fill();
    rewrite(&mut itself, pattern, SETTLING, &mut rng);
    let long = rewrite(&mut itself, pattern, COMPARED, &mut rng);

    let mut drive = new();
    let page_bytes = u64::from(drive.page_bytes());
    let pages = drive.capacity_bytes() / page_bytes;
    let mut sibling = Sibling::of(device, layout, OP_PERCENT, page_bytes).unwrap().unwrap();
    assert!(sibling.replicas() >= 4);
    sibling.drive().fill();
    let rewritten = SETTLING * pages / u64::from(sibling.replicas());
    rewrite_sibling(&mut sibling, pages, pattern, rewritten, &mut rng);
    let place = |offset_bytes| offset_bytes;
    sibling.expand_into(&mut drive, &place, &mut |sibling| {
        let writes = rng.below(sibling.drive().frontier_pages());
        rewrite_sibling(sibling, pages, pattern, writes, &mut rng);
    });
    drive.check().unwrap();
    let quick = rewrite(&mut drive, pattern, COMPARED, &mut rng);
    drive.check().unwrap();
    [long, quick]
}

fn assert_equal_states(name: &str, device: &DeviceSpec, layout: &PageMapped, pattern: Pattern) {
    let [long, quick] = settled_both_ways(device, layout, pattern);
    assert!(long > 1.2, "{name}: {long}");
    assert!((quick / long - 1.0).abs() < 0.01, "{name}: {long} itself, {quick} by its sibling");
}

fn whole_pages() -> PageMapped {
    PageMapped { mapping_unit: MappingUnit::Page, ..PageMapped::default() }
}

#[test]
fn fewer_groups_come_to_the_same_state() {
    let device = device(4, 1024);
    assert_equal_states("static", &device, &whole_pages(), hot_or_cold);
    let cost_benefit = PageMapped { victim: VictimPolicy::COST_BENEFIT, ..whole_pages() };
    assert_equal_states("cost-benefit", &device, &cost_benefit, hot_or_cold);
    let by_hint = PageMapped { placement: PlacementPolicy::by_hint(2), ..whole_pages() };
    assert_equal_states("by hint", &device, &by_hint, hot_or_cold);
}

#[test]
fn blocks_with_fewer_pages_come_to_the_same_state() {
    let device = device(1, 4096);
    assert_equal_states("static", &device, &whole_pages(), skewed);
    let fifo = PageMapped { victim: VictimPolicy::FIFO, ..whole_pages() };
    assert_equal_states("fifo", &device, &fifo, hot_or_cold);
}

#[test]
fn packed_mapping_units_come_to_the_same_state() {
    let packed = PageMapped { frontier: FrontierScope::Die, ..PageMapped::default() };
    assert_equal_states("packed", &device(2, 512), &packed, hot_or_cold);
}

#[test]
fn what_does_not_scale_has_no_sibling() {
    let none = |device: &DeviceSpec, layout: &PageMapped, write_bytes| {
        Sibling::of(device, layout, OP_PERCENT, write_bytes).unwrap().is_none()
    };
    let (large, page) = (device(4, 1024), 16 << 10);
    assert!(!none(&large, &whole_pages(), page));
    assert!(none(&device(1, 256), &whole_pages(), page), "too small");
    assert!(none(&large, &PageMapped { parity_data_pages: 3, ..whole_pages() }, page));
    // A write over more positions than the sibling has would meet itself.
    assert!(none(&large, &whole_pages(), 5 * page));
}
