//! Wear levelling of a drive whose data are mostly cold.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use softflash_base::random::Rng;
use softflash_drive::Drive;
use softflash_drive::spec::{DeviceSpec, FrontierScope, PageMapped, WearPolicy};
use softflash_nand::presets;

/// Overwrites of each hot page; one page in ten is hot.
const ROUNDS: u64 = 400;

/// A full drive after random overwrites of its hot pages, in no virtual time.
fn worn(layout: &PageMapped) -> Drive {
    let mut array = presets::small();
    array.geometry.blocks_per_plane = 64;
    let mut drive = Drive::new(&DeviceSpec::bare("small", &array), layout, 15.0).unwrap();
    drive.fill();
    let page_bytes = u64::from(drive.page_bytes());
    let hot = drive.capacity_bytes() / page_bytes / 10;
    let mut rng = Rng::seeded(1);
    for _ in 0..hot * ROUNDS {
        drive.overwrite_now(rng.below(hot) * page_bytes);
    }
    drive.check().unwrap();
    drive
}

fn with_wear(wear: WearPolicy) -> PageMapped {
    PageMapped { wear, ..PageMapped::default() }
}

#[test]
fn without_levelling_of_cold_data_the_spread_of_erases_grows() {
    for wear in [WearPolicy::FIFO, WearPolicy::DYNAMIC] {
        let spread = worn(&with_wear(wear)).erase_spread();
        assert!(spread > 100, "{wear}: {spread}");
    }
}

#[test]
fn static_levelling_keeps_the_spread_of_erases_near_its_threshold() {
    for frontier in [FrontierScope::Plane, FrontierScope::Die] {
        let plain = worn(&PageMapped { frontier, ..with_wear(WearPolicy::FIFO) });
        for threshold in [5, 20] {
            let wear = WearPolicy::level_by(threshold);
            let drive = worn(&PageMapped { frontier, ..with_wear(wear) });
            let spread = drive.erase_spread();
            let (waf, plain_waf) = (drive.counters().waf(), plain.counters().waf());
            assert!((threshold..threshold + 5).contains(&spread), "{wear}: {spread}");
            assert!(
                waf / plain_waf < 1.0 + 2.0 / f64::from(threshold),
                "{wear}: WAF {waf} instead of {plain_waf}"
            );
        }
    }
}

#[test]
fn cold_data_are_levelled_in_drives_with_parity_too() {
    let layout = PageMapped { parity_data_pages: 3, ..with_wear(WearPolicy::level_by(5)) };
    let spread = worn(&layout).erase_spread();
    assert!(spread < 10, "{spread}");
}
