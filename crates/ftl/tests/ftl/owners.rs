//! An FTL keeps the superblocks of other owners.

use crate::support::flash::{Kind, kind};
use crate::support::{Flash, Media, Medium, Rig, geometry};
use softflash_base::{Time, UnitId, UnitSet};
use softflash_device::{DeviceError, Wake};
use softflash_ftl::{Ftl, FtlConfig, FtlError, Inventory, Owner, Owners, Ownership};

const OTHER: Owner = Owner { layer: 1, domain: 0x0203 };

fn mount(flash: &impl Medium, owner: Owner) -> (Rig, Inventory) {
    Rig::mount_of(flash, FtlConfig::default(), Ownership::of(owner))
}

#[test]
fn superblocks_of_another_owner_are_listed_and_never_erased() {
    let flash = Flash::new(geometry(1, 2, 8, 8), 1, Media::Nand);
    let (mut rig, _) = mount(&flash, OTHER);
    let theirs = rig.fill(0, 1);
    drop(rig);

    let (mut rig, inventory) = mount(&flash, Owner::BLOCKS);
    assert_eq!(inventory.superblocks, []);
    let kept: Vec<_> =
        inventory.of_others.iter().map(|kept| (kept.superblock, kept.owner)).collect();
    assert_eq!(kept, [(theirs, Some(OTHER))]);
    assert_eq!(rig.ftl.space(UnitId(0)).free(), 7);
    while let Ok(ours) = rig.try_allocate(0, 2) {
        let pages = rig.ftl.payload_pages();
        let request = rig.append(&ours, 0, pages);
        rig.wait(request).result.unwrap();
        if rig.now < Time(10_000_000_000) {
            assert!(rig.ftl.release(rig.now, &ours));
        }
    }
    drop(rig);

    let (mut rig, inventory) = mount(&flash, OTHER);
    let found: Vec<_> = inventory.superblocks.iter().map(|found| found.superblock).collect();
    assert_eq!(found, [theirs]);
    assert!(inventory.of_others.iter().all(|kept| kept.owner == Some(Owner::BLOCKS)));
    let pages = rig.ftl.payload_pages();
    rig.verify(&theirs, 0, pages);
}

#[test]
fn a_damaged_superblock_beside_those_of_another_owner_is_kept() {
    let flash = Flash::new(geometry(1, 2, 8, 8), 1, Media::Nand);
    let (mut rig, _) = mount(&flash, OTHER);
    let (damaged, whole) = (rig.fill(0, 1), rig.fill(0, 2));
    flash.borrow_mut().corrupt(0, 0, 1, damaged.index, 0, 60);
    drop(rig);
    for (owner, expected) in [(Owner::BLOCKS, [None, Some(OTHER)]), (OTHER, [None; 2])] {
        let (rig, inventory) = mount(&flash, owner);
        let is_ours = owner == OTHER;
        let places: Vec<_> = inventory.damaged.iter().map(|damaged| damaged.superblock).collect();
        assert_eq!(places, if is_ours { vec![damaged] } else { vec![] });
        let kept = [damaged, whole].map(|superblock| {
            let kept = inventory.of_others.iter().find(|kept| kept.superblock == superblock);
            kept.and_then(|kept| kept.owner)
        });
        assert_eq!(kept, expected);
        assert_eq!(inventory.of_others.len(), if is_ours { 0 } else { 2 });
        assert_eq!(rig.ftl.space(UnitId(0)).live, 2);
    }
}

#[test]
fn each_unit_of_an_ftl_is_allocated_for_its_own_owner() {
    let flash = Flash::new(geometry(1, 2, 8, 8), 3, Media::Nand);
    let units = |text: &str| -> UnitSet { text.parse().unwrap() };
    let owners = || {
        let theirs = Ownership { asks_about_unclaimed: true, ..Ownership::of(OTHER) };
        Owners::new(vec![(units("0,2"), Ownership::BLOCKS), (units("1"), theirs)])
    };
    let config = FtlConfig { erased_target: 1, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount_for(&flash, config, owners());
    let [ours, theirs, also_ours] = [0, 1, 2].map(|unit| rig.fill(unit, 10 + u64::from(unit)));
    rig.settle();
    drop(rig);

    let (rig, mut inventory) = Rig::mount_for(&flash, config, owners());
    assert_eq!(inventory.of_others, []);
    // Erased in advance: only the owner that asks is told.
    assert!(!inventory.unclaimed.is_empty());
    assert!(inventory.unclaimed.iter().all(|unclaimed| unclaimed.superblock.unit == UnitId(1)));
    let found = |inventory: &Inventory| -> Vec<_> {
        inventory.superblocks.iter().map(|found| found.superblock).collect()
    };
    let of_theirs = inventory.split_off(&units("1"));
    assert_eq!((found(&inventory), found(&of_theirs)), (vec![ours, also_ours], vec![theirs]));
    assert_eq!(inventory.unclaimed, []);
    drop(rig);

    // An FTL of one owner finds what those of several have left, and the other way round.
    let (_, inventory) = mount(&flash, OTHER);
    assert_eq!(found(&inventory), [theirs]);
    assert_eq!(inventory.of_others.len(), 2);
}

#[test]
fn a_table_of_sets_that_is_older_than_the_flash_is_refused() {
    let flash = Flash::new(geometry(1, 2, 8, 8), 2, Media::Nand);
    let owners = |epoch| Owners::one(UnitSet::from(0..2), Ownership::of(OTHER)).at_epoch(epoch);
    let mount = |epoch| {
        let mut mounting = Ftl::mount_for(flash.queue(), FtlConfig::default(), owners(epoch));
        let mut now = Time::ZERO;
        loop {
            if let Some(mounted) = mounting.poll(now) {
                break mounted.map(|(_, inventory)| inventory.superblocks.len());
            }
            if let Wake::At(at) = mounting.wake() {
                now = at;
            }
        }
    };
    // A table may follow where there was none.
    for (epoch, unit) in [(0, 0), (3, 0), (7, 1)] {
        Rig::mount_for(&flash, FtlConfig::default(), owners(epoch)).0.fill(unit, 1);
    }
    assert_eq!((mount(7), mount(8)), (Ok(3), Ok(3)));
    let refused = |unit, found, epoch| Err(FtlError::OlderTable { unit, found, epoch });
    assert_eq!(mount(6), refused(UnitId(1), 7, 6));
    assert_eq!(mount(0), refused(UnitId(0), 3, 0), "without a table, too");
}

/// Releases everything in unit 0, and erases it, at an epoch of the table of sets.
fn erase_for_another(flash: &impl Medium, epoch: u32) -> Result<(), FtlError> {
    let owners = Owners::one(UnitSet::from(0..1), Ownership::BLOCKS).at_epoch(epoch);
    let (mut rig, inventory) = Rig::mount_for(flash, FtlConfig::default(), owners);
    let found: Vec<_> = inventory.all().copied().collect();
    found.iter().for_each(|superblock| assert!(rig.ftl.release(rig.now, superblock)));
    let request = rig.ftl.erase_free(rig.now, UnitId(0)).unwrap();
    let result = rig.wait(request).result;
    rig.ftl.check();
    let space = rig.ftl.space(UnitId(0));
    assert!(result.is_err() || space.erased + space.bad == space.total(), "{space:?}");
    result
}

#[test]
fn all_of_a_unit_is_erased_before_another_owner_gets_it() {
    let flash = Flash::new(geometry(1, 2, 8, 8), 1, Media::Nand);
    let (mut rig, _) = mount(&flash, OTHER);
    let filled = [1, 2, 3].map(|number| rig.fill(0, number));
    assert!(rig.ftl.release(rig.now, &filled[0]));
    flash.borrow_mut().corrupt(0, 0, 1, filled[1].index, 0, 60);
    drop(rig);
    erase_for_another(&flash, 1).unwrap();
    let ownership = Ownership { owner: OTHER, asks_about_unclaimed: true };
    let owners = Owners::one(UnitSet::from(0..1), ownership).at_epoch(1);
    let (_, inventory) = Rig::mount_for(&flash, FtlConfig::default(), owners);
    assert_eq!((inventory.superblocks, inventory.of_others), (vec![], vec![]));
    assert_eq!((inventory.damaged, inventory.unclaimed.len()), (vec![], 8));
    let refused = mount(&flash, OTHER).0.ftl.erase_free(Time::ZERO, UnitId(3));
    assert_eq!(refused, Err(FtlError::NotOurs { unit: UnitId(3) }));
}

#[test]
fn what_cannot_be_erased_does_not_hide_the_damage_of_the_new_owner() {
    const NEW: Owner = Owner { layer: 1, domain: 9 };
    let flash = Flash::new(geometry(1, 1, 8, 8), 1, Media::Nand);
    let (mut rig, _) = mount(&flash, OTHER);
    let left = rig.fill(0, 1);
    drop(rig);
    flash.borrow_mut().make_bad(0, 0, 0, left.index);
    erase_for_another(&flash, 1).unwrap();

    let mount = |epoch| {
        let owners = Owners::one(UnitSet::from(0..1), Ownership::of(NEW)).at_epoch(epoch);
        Rig::mount_for(&flash, FtlConfig::default(), owners)
    };
    let (mut rig, inventory) = mount(2);
    assert_eq!((inventory.of_others, inventory.damaged), (vec![], vec![]));
    let space = rig.ftl.space(UnitId(0));
    assert_eq!((space.bad, space.live), (1, 0), "it is no space of the new owner");
    let damaged = rig.fill(0, 5);
    drop(rig);
    flash.borrow_mut().corrupt(0, 0, 0, damaged.index, 1, 60);
    let (_, inventory) = mount(2);
    let found: Vec<_> = inventory.damaged.iter().map(|damaged| damaged.superblock).collect();
    assert_eq!(found, [damaged]);
}

/// A domain without its newest root would take an old frame there for all that is left of its data.
#[test]
fn a_unit_that_returns_to_its_owner_has_nothing_of_before_in_bad_blocks() {
    let flash = Flash::new(geometry(1, 1, 8, 8), 1, Media::Nand);
    let (mut rig, _) = mount(&flash, OTHER);
    let left = rig.fill(0, 1);
    drop(rig);
    flash.borrow_mut().make_bad(0, 0, 0, left.index);
    assert_eq!(mount(&flash, OTHER).1.superblocks.len(), 1, "it can still be read");
    erase_for_another(&flash, 1).unwrap();

    let mount = || {
        let owners = Owners::one(UnitSet::from(0..1), Ownership::of(OTHER)).at_epoch(2);
        Rig::mount_for(&flash, FtlConfig::default(), owners)
    };
    // The headers of other superblocks say so, whichever are erased meanwhile.
    for number in 0..20 {
        let (mut rig, inventory) = mount();
        let found: Vec<_> = inventory.superblocks.iter().map(|found| found.superblock).collect();
        assert!(!found.contains(&left), "{found:?}");
        found.iter().for_each(|superblock| assert!(rig.ftl.release(rig.now, superblock)));
        rig.fill(0, number);
    }
}

#[test]
fn the_erase_of_a_unit_with_a_dead_die_ends_with_its_error() {
    // The other die ends last, without an error.
    let flash = Flash::new(geometry(2, 1, 8, 8), 1, Media::Nand);
    flash.borrow_mut().fault = Some(Box::new(|command| {
        (kind(&command.operation) == Kind::Erase && command.target.die == 0)
            .then_some(DeviceError::DeadDie)
    }));
    let failed = erase_for_another(&flash, 1);
    let is_dead =
        |error: &FtlError| matches!(error, FtlError::Device { error: DeviceError::DeadDie, .. });
    assert!(failed.as_ref().is_err_and(is_dead), "{failed:?}");
    flash.borrow_mut().fault = None;
    erase_for_another(&flash, 1).unwrap();
}

#[test]
fn the_blocks_of_a_superblock_out_of_service_are_erased_too() {
    let flash = Flash::new(geometry(1, 2, 8, 8), 1, Media::Nand);
    let (mut rig, _) = mount(&flash, OTHER);
    let left = rig.fill(0, 1);
    drop(rig);
    // Its first block is good, and there is no spare for the other one.
    flash.borrow_mut().make_bad(0, 0, 1, left.index);
    let (_, inventory) = mount(&flash, OTHER);
    assert_eq!(inventory.superblocks.len(), 1);
    erase_for_another(&flash, 1).unwrap();
    let owners = Owners::one(UnitSet::from(0..1), Ownership::of(OTHER)).at_epoch(1);
    let (rig, inventory) = Rig::mount_for(&flash, FtlConfig::default(), owners);
    assert_eq!((inventory.superblocks, inventory.damaged), (vec![], vec![]));
    assert_eq!(rig.ftl.space(UnitId(0)).bad, 1);
}
