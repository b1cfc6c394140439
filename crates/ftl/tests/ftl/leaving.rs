//! A unit leaves an FTL that is in use.

use crate::support::flash::kind;
use crate::support::{Choices, Flash, FlashRef, Kind, Media, Medium, Rig, geometry, model, tag};
use softflash_base::{Time, UnitId, UnitSet};
use softflash_device::{Device, DeviceError, ModelDevice, Target};
use softflash_ftl::{FtlConfig, FtlError, Hint, Superblock};

const MS: u64 = 1_000_000;

/// Commands for a unit so far, without flushes.
fn commands(flash: &FlashRef, unit: u16) -> usize {
    let flash = flash.borrow();
    let of_unit = |(_, kind, target): &&(Time, Kind, Target)| {
        *kind != Kind::Flush && target.unit == UnitId(unit)
    };
    flash.log.iter().filter(of_unit).count()
}

/// Lets a unit leave, and waits for it.
fn leave(rig: &mut Rig, unit: u16) {
    let request = rig.ftl.leave(UnitId(unit)).unwrap();
    rig.wait(request).result.unwrap();
    rig.ftl.check();
}

#[test]
fn a_unit_leaves_under_load_of_the_others_and_another_queue_pair_mounts_it() {
    let mut config = model(3, 12);
    config.array.geometry.channels = 3;
    let device = ModelDevice::in_memory(config).unwrap();
    let (mut rig, _) = Rig::mount(&device, FtlConfig::default());
    let [moving, kept] = [0, 1].map(|unit| rig.fill(unit, 1));
    let busy = rig.try_allocate(2, 2).unwrap();
    let pages = rig.ftl.payload_pages();
    let mut written = rig.append(&busy, 0, pages / 2);
    assert!(rig.ftl.release(rig.now, &moving));
    let erased = rig.ftl.erase_free(rig.now, UnitId(0)).unwrap();
    rig.wait(erased).result.unwrap();

    let read = {
        let buffer = rig.buffer(1);
        rig.ftl.read(rig.now, &kept, 0, 1, buffer, Hint::FOREGROUND).unwrap()
    };
    let first = UnitSet::from(0..1);
    device.open_queue_pair(&first).map(drop).unwrap_err();
    leave(&mut rig, 0);
    let (mut other, inventory) =
        Rig::mount_at(device.open_queue_pair(&first).unwrap(), FtlConfig::default(), rig.now);
    assert_eq!(inventory.all().count(), 0, "everything was released and erased");
    let theirs = other.fill(0, 7);
    assert!(theirs.generation > moving.generation);
    for done in [written, read] {
        rig.wait(done).result.unwrap();
    }
    written = rig.append(&busy, pages / 2, pages - pages / 2);
    rig.wait(written).result.unwrap();
    rig.verify(&busy, 0, pages);
    rig.settle();
    other.settle();
    other.verify(&theirs, 0, pages);
    // The FTL that the unit has left ends last, and changes nothing of it.
    drop(other);
    drop(rig);

    let (mut rig, inventory) = Rig::mount(&device, FtlConfig::default());
    let mut found: Vec<Superblock> = inventory.all().copied().collect();
    found.sort_unstable();
    assert_eq!(found, [theirs, kept, busy]);
    found.iter().for_each(|superblock| rig.verify(superblock, 0, pages));
}

#[test]
fn what_both_queue_pairs_have_flushed_survives_a_power_cut() {
    for seed in 0..8 {
        let device = ModelDevice::in_memory(model(seed, 12)).unwrap();
        let (mut rig, _) = Rig::mount(&device, FtlConfig::default());
        leave(&mut rig, 0);
        let queue = device.open_queue_pair(&UnitSet::from(0..1)).unwrap();
        let (mut other, _) = Rig::mount_at(queue, FtlConfig::default(), rig.now);
        let [theirs, ours] = [(&mut other, 0), (&mut rig, 1)].map(|(rig, unit)| {
            let superblock = rig.try_allocate(unit, 1).unwrap();
            let request = rig.append_with(&superblock, 0, 4, false, Hint::FLUSH).unwrap();
            rig.wait(request).result.unwrap();
            let flush = rig.ftl.flush(rig.now, Hint::FLUSH);
            rig.wait(flush).result.unwrap();
            rig.fill(unit, 2);
            superblock
        });
        let at = rig.now.max(other.now);
        device.cut(at, &mut Choices::new(seed));
        drop((rig, other));
        let (mut rig, _) = Rig::mount(&device, FtlConfig::default());
        for superblock in [theirs, ours] {
            rig.verify(&superblock, 0, 4);
        }
    }
}

#[test]
fn a_unit_with_a_superblock_that_is_not_released_stays_and_everything_goes_on() {
    let flash = Flash::new(geometry(2, 2, 8, 8), 2, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    let (live, open) = (rig.fill(0, 1), rig.allocate(2));
    for (held, number) in [(open, 2), (live, 1)] {
        let refused = rig.ftl.leave(UnitId(0)).unwrap_err();
        let reason = format!("its owner has not released {number} of its superblocks");
        assert_eq!(refused, FtlError::InUse { unit: UnitId(0), reason });
        rig.verify(&live, 0, 1);
        if held == open {
            let request = rig.append(&open, 0, 1);
            rig.wait(request).result.unwrap();
        }
        rig.settle();
        assert_eq!(rig.ftl.space(UnitId(0)).erased, FtlConfig::default().erased_target);
        assert!(rig.ftl.release(rig.now, &held));
    }
    leave(&mut rig, 0);
}

#[test]
fn nothing_is_started_on_a_unit_that_has_left_and_its_counts_can_be_read() {
    let flash = Flash::new(geometry(2, 2, 8, 8), 2, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    let (released, kept) = (rig.fill(0, 1), rig.fill(1, 1));
    assert!(rig.ftl.release(rig.now, &released));
    leave(&mut rig, 0);
    let (so_far, unit) = (commands(&flash, 0), UnitId(0));
    let at_the_end = rig.ftl.telemetry(unit);

    let not_ours = FtlError::NotOurs { unit };
    assert_eq!(rig.try_allocate(0, 2), Err(not_ours.clone()));
    assert_eq!(rig.ftl.erase_free(rig.now, unit), Err(not_ours.clone()));
    assert_eq!(rig.ftl.leave(unit), Err(not_ours.clone()));
    assert_eq!(rig.read(&released, 0, 1).map(drop), Err(not_ours.clone()));
    assert_eq!(rig.append_with(&released, 0, 1, true, Hint::FLUSH), Err(not_ours));
    assert!(!rig.ftl.release(rig.now, &released) && !rig.ftl.seal(&released));
    assert_eq!(rig.ftl.worth_moving(unit, |_| true), None);
    assert_eq!((rig.ftl.load(unit), rig.ftl.units().len()), (0, 2));
    assert_eq!(rig.ftl.space(unit).total(), 8);
    assert!(rig.ftl.newest_generation(unit) >= released.generation);
    assert!(rig.ftl.most_erases(unit) > 0);

    let flush = rig.ftl.flush(rig.now, Hint::FLUSH);
    rig.wait(flush).result.unwrap();
    rig.settle();
    let pages = rig.ftl.payload_pages();
    rig.verify(&kept, 0, pages);
    rig.fill(1, 3);
    rig.settle();
    assert_eq!(commands(&flash, 0), so_far, "no erase ahead of need either");
    assert_eq!(rig.ftl.telemetry(unit), at_the_end);
    assert!(rig.ftl.space(UnitId(1)).erased > 0, "the other unit has its erases");
}

#[test]
fn a_unit_leaves_when_the_erases_ahead_that_are_under_way_have_their_headers() {
    let mut under_way = 0;
    for steps in 0..24 {
        let flash = Flash::new(geometry(2, 2, 8, 8), 2, Media::Nand);
        let config = FtlConfig { erased_target: 3, ..FtlConfig::default() };
        let (mut rig, _) = Rig::mount(&flash, config);
        rig.now = Time(10 * MS);
        for _ in 0..steps {
            rig.step();
        }
        under_way += u32::from(rig.ftl.load(UnitId(0)) > 0);
        let started = flash.borrow().count(Kind::Erase);
        leave(&mut rig, 0);
        rig.settle();
        let log = |of: Kind| {
            let flash = flash.borrow();
            let ours = flash.log.iter().filter(|(_, kind, target)| {
                *kind == of && target.unit == UnitId(0) && target.die == 0
            });
            ours.count() as u32
        };
        let erased = rig.ftl.space(UnitId(0)).erased;
        assert_eq!((log(Kind::Erase), log(Kind::Program)), (erased, erased), "whole erases");
        assert!(steps > 0 || erased == 0, "{started} were started");
        assert_eq!(rig.ftl.space(UnitId(1)).erased, 3);
    }
    assert!(under_way > 3, "a unit left {under_way} times with commands under way");
}

#[test]
fn a_unit_leaves_when_its_commands_and_its_bad_blocks_are_recorded() {
    let flash = Flash::new(geometry(1, 1, 8, 16), 2, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    let superblock = rig.fill(0, 1);
    let (old, failing) = (superblock, rig.try_allocate(0, 2).unwrap());
    let buffer = rig.buffer(3);
    let read = rig.ftl.read(rig.now, &old, 0, 3, buffer, Hint::FOREGROUND).unwrap();
    let appended = rig.append_with(&failing, 0, 2, false, Hint::FLUSH).unwrap();
    flash.borrow_mut().fault = Some(Box::new(|command| {
        let is_data = kind(&command.operation) == Kind::Program && command.target.page >= 2;
        is_data.then_some(DeviceError::ProgramFailed)
    }));
    rig.wait(appended).result.unwrap_err();
    for superblock in [old, failing] {
        assert!(rig.ftl.release(rig.now, &superblock));
    }
    leave(&mut rig, 0);
    assert!(rig.done.iter().any(|done| done.request == read && done.result.is_ok()));
    assert_eq!(flash.borrow().count(Kind::MarkBad), 1);
    assert!(flash.borrow().is_bad(0, 0, 0, failing.index));
}

#[test]
fn an_erase_of_all_free_superblocks_ends_before_the_unit_leaves() {
    let flash = Flash::new(geometry(2, 1, 8, 8), 2, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    let released = rig.fill(0, 1);
    assert!(rig.ftl.release(rig.now, &released));
    let erased = rig.ftl.erase_free(rig.now, UnitId(0)).unwrap();
    let left = rig.ftl.leave(UnitId(0)).unwrap();
    rig.wait(left).result.unwrap();
    let space = rig.ftl.space(UnitId(0));
    assert_eq!(space.erased, space.total(), "{space:?}");
    rig.wait(erased).result.unwrap();
    rig.ftl.check();
}

#[test]
fn all_units_can_leave() {
    let flash = Flash::new(geometry(1, 1, 8, 8), 2, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    let released = [0, 1].map(|unit| rig.fill(unit, 1));
    released.iter().for_each(|superblock| assert!(rig.ftl.release(rig.now, superblock)));
    (0..2).for_each(|unit| leave(&mut rig, unit));
    let flush = rig.ftl.flush(rig.now, Hint::FLUSH);
    rig.wait(flush).result.unwrap();
    rig.settle();
    assert!(rig.ftl.idle());
    let allocated = rig.ftl.allocate(rig.now, UnitId(1), tag(1), Hint::FLUSH);
    assert_eq!(allocated, Err(FtlError::NotOurs { unit: UnitId(1) }));
}
