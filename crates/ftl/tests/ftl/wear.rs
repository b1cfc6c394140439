//! Wear levelling.

use crate::support::{Choices, Flash, Media, Rig, geometry, seeds};
use softflash_base::UnitId;
use softflash_ftl::FtlConfig;

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
                // Nine in ten releases hit the youngest data, the rest any.
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
        // What was erased counts once its header is written.
        rig.settle();
        let counts = flash.borrow().erase_counts(0);
        let (min, max) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        let told = rig.ftl.telemetry(UnitId(0));
        assert_eq!((told.erase_count_min, told.erase_count_max), (*min, *max), "told as it is");
        // The coldest data stays where it is; all others share the work of 3000 erases.
        assert!(max - min <= 200, "seed {seed}: erase counts from {min} to {max}");
        // Among those that take turns, all are equal but for one.
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
fn flash_never_used_takes_its_turn_after_a_mount() {
    let flash = Flash::new(geometry(1, 1, 16, 3), 1, Media::Nand);
    let config = FtlConfig { prepared_target: 1, ..FtlConfig::default() };
    for number in 0..64 {
        // A mount for every superblock written: what is known of wear is only what headers tell.
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
fn cold_data_is_named_when_it_lags_far_behind() {
    let flash = Flash::new(geometry(1, 1, 4, 3), 1, Media::Nand);
    let config = FtlConfig { wear_spread: 10, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    let cold = rig.fill(0, 1);
    for number in 0..60 {
        let hot = rig.fill(0, number);
        rig.ftl.release(rig.now, &hot);
        if number < 20 {
            assert_eq!(rig.ftl.worth_moving(UnitId(0)), None);
        }
    }
    assert_eq!(rig.ftl.worth_moving(UnitId(0)), Some(cold));
    rig.ftl.release(rig.now, &cold);
    assert_eq!(rig.ftl.worth_moving(UnitId(0)), None);
}

#[test]
fn the_newest_header_is_not_erased_ahead_of_need() {
    let flash = Flash::new(geometry(1, 1, 6, 4), 1, Media::Nand);
    let config = FtlConfig { prepared_target: u32::MAX, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    let mut live: Vec<_> = (0..6).map(|number| rig.fill(0, number)).collect();
    let newest = live.pop().unwrap();
    rig.ftl.release(rig.now, &newest);
    rig.settle();
    let space = rig.ftl.space(UnitId(0));
    assert_eq!((space.prepared, space.reclaimable), (0, 1), "a cut would forget its generation");
    // Another header takes over: then both can be erased.
    rig.ftl.release(rig.now, &live.remove(0));
    rig.settle();
    let space = rig.ftl.space(UnitId(0));
    assert_eq!((space.prepared, space.reclaimable), (2, 0));
    // Where it is the only one free, a write is not refused for its sake.
    rig.fill(0, 7);
    rig.fill(0, 8);
}
