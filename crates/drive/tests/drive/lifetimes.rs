//! Write amplification with predicted lifetimes.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use softflash_base::random::Rng;
use softflash_drive::spec::{DeviceSpec, LifetimePolicy, PageMapped, PlacementPolicy};
use softflash_drive::{Drive, DriveError};
use softflash_nand::presets;

const ALL: [&str; 5] = ["none", "interval:4", "decay:4", "sfr:4", "sepbit"];
const SEED: u64 = 5;

/// A drive of two dies with one plane each.
fn drive(lifetime: &str) -> Drive {
    let mut array = presets::small();
    array.geometry.chips_per_channel = 1;
    array.geometry.planes_per_die = 1;
    array.geometry.blocks_per_plane = 256;
    let lifetime: LifetimePolicy = lifetime.parse().unwrap();
    let layout = PageMapped { lifetime, ..PageMapped::default() };
    Drive::new(&DeviceSpec::bare("small", &array), &layout, 15.0).unwrap()
}

/// The write amplification of six writes of the capacity after six more; `next` chooses the page
/// of each, of so many.
fn waf(lifetime: &str, mut next: impl FnMut(u64, &mut Rng) -> u64) -> f64 {
    let mut drive = drive(lifetime);
    drive.fill();
    let (mut rng, pages) = (Rng::seeded(SEED), drive.capacity_bytes() / 4096);
    for write in 0..12 * pages {
        if write == 6 * pages {
            drive.clear_counters();
        }
        drive.overwrite_now(next(pages, &mut rng) * 4096);
    }
    assert_eq!(drive.check(), Ok(()), "{lifetime}");
    drive.counters().waf()
}

#[test]
fn pages_that_live_as_long_share_blocks_without_hints() {
    println!("seed {SEED}");
    let [none, others @ ..] = ALL.map(|lifetime| {
        waf(lifetime, |pages, rng| match rng.chance(0.9) {
            true => rng.below(pages / 10),
            false => pages / 10 + rng.below(pages - pages / 10),
        })
    });
    for (name, apart) in ALL[1..].iter().zip(others) {
        assert!(apart < 0.9 * none, "{name}: {apart}, {none} without prediction");
    }
}

#[test]
fn data_without_differences_cost_no_more_than_the_blocks_that_the_classes_keep_open() {
    println!("seed {SEED}");
    let [none, others @ ..] = ALL.map(|lifetime| waf(lifetime, |pages, rng| rng.below(pages)));
    for uniform in others {
        assert!(uniform < 1.25 * none, "{uniform}, {none} without prediction");
    }
}

#[test]
fn equal_writes_give_equal_drives() {
    println!("seed {SEED}");
    let next = |pages: u64, rng: &mut Rng| rng.below(pages) * rng.below(pages) / pages;
    for lifetime in ALL {
        assert_eq!(waf(lifetime, next).to_bits(), waf(lifetime, next).to_bits(), "{lifetime}");
    }
}

#[test]
fn classes_are_of_the_host_or_predicted() {
    let layout = PageMapped {
        placement: PlacementPolicy::by_hint(2),
        lifetime: "sepbit".parse().unwrap(),
        ..PageMapped::default()
    };
    let error = Drive::new(&DeviceSpec::bare("small", &presets::small()), &layout, 25.0);
    let error = error.err().unwrap();
    assert!(matches!(error, DriveError::TwoClasses(_)), "{error}");
    assert!(error.to_string().contains("choose one of the two"), "{error}");
}
