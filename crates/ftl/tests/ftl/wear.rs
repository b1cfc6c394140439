//! Tests of wear levelling.

use crate::support::{Choices, Flash, Media, Rig, geometry, seeds};
use softflash_base::UnitId;
use softflash_ftl::FtlConfig;
use softflash_policy::WearPolicy;

#[test]
fn wear_stays_level_under_skewed_releases() {
    for seed in seeds(4) {
        println!("SOFTFLASH_SEED={seed}");
        let mut choices = Choices::new(seed);
        let flash = Flash::new(geometry(2, 1, 24, 3), 1, Media::Nand);
        let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
        let mut live = Vec::new();
        for number in 0..3000 {
            if live.len() >= 18 {
                // Nine in ten releases hit the newest data, the others any data.
                let victim = match choices.one_in(10) {
                    true => choices.below(live.len() as u32) as usize,
                    false => live.len() - 1,
                };
                let superblock = live.remove(victim);
                rig.ftl.release(rig.now, &superblock);
            }
            live.push(rig.fill(0, number));
            if choices.one_in(3) {
                rig.settle();
            }
        }
        // An erase counts once its header is written.
        rig.settle();
        let counts = flash.borrow().erase_counts(0);
        let (min, max) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        let unit = rig.ftl.telemetry(UnitId(0));
        assert_eq!((unit.erase_count_min, unit.erase_count_max), (*min, *max), "the real counts");
        // The coldest data is not moved; the other superblocks share 3000 erases.
        assert!(max - min <= 200, "seed {seed}: erase counts from {min} to {max}");
        // With all superblocks free, the erase counts become almost equal.
        let mut free_wear = Vec::new();
        for superblock in live.drain(..) {
            rig.ftl.release(rig.now, &superblock);
        }
        for number in 0..4000 {
            let superblock = rig.fill(0, number);
            rig.ftl.release(rig.now, &superblock);
        }
        free_wear.extend(flash.borrow().erase_counts(0));
        let (min, max) = (free_wear.iter().min().unwrap(), free_wear.iter().max().unwrap());
        assert!(max - min <= 3, "seed {seed}: erase counts from {min} to {max} with all free");
    }
}

#[test]
fn flash_that_was_never_used_is_used_after_a_mount() {
    let flash = Flash::new(geometry(1, 1, 16, 3), 1, Media::Nand);
    let config = FtlConfig { erased_target: 1, ..FtlConfig::default() };
    for number in 0..64 {
        // One mount for each superblock written: wear is known from headers only.
        let (mut rig, inventory) = Rig::mount(&flash, config);
        for found in inventory.superblocks {
            rig.ftl.release(rig.now, &found.superblock);
        }
        rig.fill(0, number);
    }
    let counts = flash.borrow().erase_counts(0);
    let (min, max) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(max - min <= 2, "erase counts from {min} to {max}: {counts:?}");
}

#[test]
fn worth_moving_returns_cold_data_that_lags_beyond_the_spread() {
    let flash = Flash::new(geometry(1, 1, 4, 3), 1, Media::Nand);
    let config = FtlConfig { wear: WearPolicy::level_by(10), ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    let cold = rig.fill(0, 1);
    for number in 0..60 {
        let hot = rig.fill(0, number);
        rig.ftl.release(rig.now, &hot);
        if number < 20 {
            assert_eq!(rig.ftl.worth_moving(UnitId(0), |_| true), None);
        }
    }
    assert_eq!(rig.ftl.worth_moving(UnitId(0), |_| true), Some(cold));
    assert_eq!(rig.ftl.worth_moving(UnitId(0), |index| index != cold.index), None);
    rig.ftl.release(rig.now, &cold);
    assert_eq!(rig.ftl.worth_moving(UnitId(0), |_| true), None);
}

#[test]
fn the_superblock_with_the_newest_header_is_not_erased_ahead_of_need() {
    let flash = Flash::new(geometry(1, 1, 6, 4), 1, Media::Nand);
    let config = FtlConfig { erased_target: u32::MAX, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    let mut live: Vec<_> = (0..6).map(|number| rig.fill(0, number)).collect();
    let newest = live.pop().unwrap();
    rig.ftl.release(rig.now, &newest);
    rig.settle();
    let space = rig.ftl.space(UnitId(0));
    assert_eq!(
        (space.erased, space.erase_pending),
        (0, 1),
        "a power cut would lose its generation"
    );
    // A newer header exists: both can be erased.
    rig.ftl.release(rig.now, &live.remove(0));
    rig.settle();
    let space = rig.ftl.space(UnitId(0));
    assert_eq!((space.erased, space.erase_pending), (2, 0));
    // If it is the only free superblock, it is allocated.
    rig.fill(0, 7);
    rig.fill(0, 8);
}
