//! Tests of bad blocks from the factory, and of blocks that fail in use.

use crate::support;
use crate::support::{Choices, Flash, FlashRef, Kind, Media, Rig, geometry, seeds};
use softflash_base::UnitId;
use softflash_device::{DeviceError, Operation};
use softflash_ftl::{FtlConfig, FtlError, Hint, UnitState};
use std::cell::Cell;
use std::rc::Rc;

/// Makes one command of a kind fail: the `nth` from the call on.
fn fail_nth(flash: &FlashRef, kind: Kind, nth: u32, error: DeviceError) {
    let seen = Cell::new(0);
    flash.borrow_mut().fault = Some(Box::new(move |command| {
        let hit = support::flash::kind(&command.operation) == kind;
        seen.set(seen.get() + u32::from(hit));
        (hit && seen.get() == nth).then(|| error.clone())
    }));
}

#[test]
fn factory_bad_blocks_cost_the_least_possible_number_of_superblocks() {
    for seed in seeds(30) {
        println!("SOFTFLASH_SEED={seed}");
        let mut choices = Choices::new(seed);
        let (dies, planes) = [(1, 1), (1, 2), (2, 2), (4, 1)][choices.below(4) as usize];
        let flash = Flash::new(geometry(dies, planes, 24, 4), 1, Media::Nand);
        let mut good = vec![24_u32; usize::from(dies * planes)];
        for _ in 0..choices.below(12) {
            let (die, plane) =
                (choices.below(dies.into()) as u8, choices.below(planes.into()) as u8);
            let block = choices.below(24);
            if !flash.borrow().is_bad(0, die, plane, block) {
                flash.borrow_mut().make_bad(0, die, plane, block);
                good[usize::from(die * planes + plane)] -= 1;
            }
        }
        let possible = *good.iter().min().unwrap();
        let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
        let space = rig.ftl.space(UnitId(0));
        assert_eq!((space.free(), space.total()), (possible, 24), "seed {seed}");
        // All superblocks can be written, and read after a mount.
        let written: Vec<_> = (0..possible).map(|number| rig.fill(0, number.into())).collect();
        assert!(matches!(rig.try_allocate(0, 99), Err(FtlError::NoSpace { .. })));
        assert_eq!(rig.ftl.telemetry(UnitId(0)).state, UnitState::Full);
        let (mut rig, inventory) = Rig::mount(&flash, FtlConfig::default());
        assert_eq!(inventory.superblocks.len(), written.len());
        let pages = rig.ftl.payload_pages();
        for superblock in &written {
            rig.verify(superblock, 0, pages);
        }
        rig.ftl.check();
    }
}

#[test]
fn a_failed_program_seals_the_superblock_and_earlier_pages_stay_readable() {
    let flash = Flash::new(geometry(2, 2, 8, 8), 1, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    let superblock = rig.allocate(1);
    let request = rig.append(&superblock, 0, 6);
    rig.wait(request).result.unwrap();
    fail_nth(&flash, Kind::Program, 1, DeviceError::ProgramFailed);
    let requests: Vec<_> = (0..4).map(|part| rig.append(&superblock, 6 + part * 4, 4)).collect();
    let mut results = Vec::new();
    for request in requests {
        let done = rig.wait(request);
        assert!(done.buffer.is_some(), "the data is returned, to be written elsewhere");
        results.push(done.result);
    }
    let failed = FtlError::Device { superblock, error: DeviceError::ProgramFailed };
    assert_eq!(results[0], Err(failed));
    assert!(results[3].is_err(), "appends that waited behind the failure fail");
    assert_eq!(
        rig.append_with(&superblock, 22, 1, true, Hint::LOG),
        Err(FtlError::Sealed { superblock })
    );
    rig.settle();
    rig.verify(&superblock, 0, 6);
    let unit = rig.ftl.telemetry(UnitId(0));
    assert_eq!((unit.bad_blocks, unit.space.live, unit.errors), (2, 1, 1), "both planes");

    // The same after a mount, when the device knows the bad blocks.
    let (mut rig, inventory) = Rig::mount(&flash, FtlConfig::default());
    assert_eq!(inventory.superblocks[0].superblock, superblock);
    rig.verify(&superblock, 0, 6);
    rig.ftl.release(rig.now, &superblock);
    rig.settle();
    let space = rig.ftl.space(UnitId(0));
    assert_eq!((space.bad, space.total()), (1, 8), "no spares: one superblock less");
    for number in 0..7 {
        rig.fill(0, number);
    }
    rig.ftl.check();
}

#[test]
fn a_block_that_fails_to_erase_is_replaced_while_the_append_waits() {
    let flash = Flash::new(geometry(2, 2, 8, 8), 1, Media::Nand);
    flash.borrow_mut().make_bad(0, 0, 0, 5);
    let config = FtlConfig { erased_target: 0, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    // The first erase of both planes of die 1 fails, and then that of one of them.
    let second_try = Rc::new(Cell::new(0));
    flash.borrow_mut().fault = Some(Box::new(move |command| {
        let erase = matches!(command.operation, Operation::Erase);
        let target = &command.target;
        let worn = erase && target.die == 1 && target.plane + target.planes > 1;
        let block = target.blocks[usize::from(1 - target.plane.min(1))];
        second_try.set(second_try.get() + 1);
        (worn && block == 0).then_some(DeviceError::EraseFailed)
    }));
    let superblock = rig.fill(0, 1);
    assert_eq!(superblock.index, 0);
    assert!(flash.borrow().is_bad(0, 1, 1, 0), "the block that failed alone");
    assert!(!flash.borrow().is_bad(0, 1, 0, 0), "its neighbour is good");
    let pages = rig.ftl.payload_pages();
    rig.verify(&superblock, 0, pages);
    rig.settle();
    assert_eq!(rig.ftl.space(UnitId(0)).bad, 1, "the spare replaced the block");
    let (mut rig, _) = Rig::mount(&flash, config);
    rig.verify(&superblock, 0, pages);
}

#[test]
fn an_allocated_superblock_that_cannot_be_erased_fails_its_appends() {
    let flash = Flash::new(geometry(1, 1, 8, 8), 1, Media::Nand);
    let config = FtlConfig { erased_target: 0, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    fail_nth(&flash, Kind::Erase, 1, DeviceError::EraseFailed);
    let superblock = rig.allocate(1);
    let requests = [rig.append(&superblock, 0, 2), rig.append(&superblock, 2, 2)];
    for request in requests {
        let done = rig.wait(request);
        let error = FtlError::Device { superblock, error: DeviceError::EraseFailed };
        assert_eq!(done.result, Err(error));
        assert_eq!(done.buffer.unwrap().len(), 2 * 4096);
    }
    rig.ftl.release(rig.now, &superblock);
    rig.settle();
    assert_eq!(rig.ftl.space(UnitId(0)).bad, 1);
    assert!(flash.borrow().is_bad(0, 0, 0, superblock.index));
    rig.fill(0, 2);
}

#[test]
fn failures_of_an_erase_ahead_of_need_cost_only_the_block() {
    for kind in [Kind::Erase, Kind::Program] {
        let error = match kind {
            Kind::Erase => DeviceError::EraseFailed,
            _ => DeviceError::ProgramFailed,
        };
        let flash = Flash::new(geometry(1, 1, 8, 8), 1, Media::Nand);
        fail_nth(&flash, kind, 1, error);
        let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
        rig.settle();
        let space = rig.ftl.space(UnitId(0));
        assert_eq!((space.erased, space.bad, space.total()), (2, 1, 8), "{kind:?}");
    }
}

#[test]
fn an_io_error_retires_no_block() {
    let flash = Flash::new(geometry(1, 1, 8, 8), 1, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    rig.settle();
    fail_nth(&flash, Kind::Program, 2, DeviceError::Io { errno: 5 });
    let superblock = rig.allocate(1);
    let request = rig.append(&superblock, 0, 1);
    assert!(matches!(rig.wait(request).result, Err(FtlError::Device { .. })));
    rig.ftl.release(rig.now, &superblock);
    rig.settle();
    assert_eq!(rig.ftl.space(UnitId(0)).bad, 0);
    assert_eq!(flash.borrow().count(Kind::MarkBad), 0);
}

#[test]
fn good_blocks_of_a_dissolved_superblock_complete_another() {
    let flash = Flash::new(geometry(2, 1, 8, 8), 1, Media::Nand);
    // Superblock 7 lacks its block in die 1 from the start, and there is no spare.
    flash.borrow_mut().make_bad(0, 1, 0, 7);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    assert_eq!(rig.ftl.space(UnitId(0)).bad, 1);
    // The lead block of another superblock fails: its block in die 1 completes superblock 7.
    rig.settle();
    let superblock = rig.allocate(1);
    flash.borrow_mut().fault = Some(Box::new(|command| {
        let program = matches!(command.operation, Operation::Program { .. });
        (program && command.target.die == 0).then_some(DeviceError::ProgramFailed)
    }));
    let request = rig.append(&superblock, 0, 4);
    assert!(rig.wait(request).result.is_err());
    flash.borrow_mut().fault = None;
    rig.ftl.release(rig.now, &superblock);
    rig.settle();
    let space = rig.ftl.space(UnitId(0));
    assert_eq!((space.bad, space.total()), (1, 8), "one is lost, one returns to service");
    let mut used: Vec<u32> = (0..7).map(|number| rig.fill(0, number).index).collect();
    used.sort_unstable();
    assert!(used.contains(&7) && !used.contains(&superblock.index));
}

#[test]
fn a_unit_of_which_half_is_bad_takes_no_more_data() {
    let flash = Flash::new(geometry(1, 1, 8, 8), 1, Media::Nand);
    for block in 0..3 {
        flash.borrow_mut().make_bad(0, 0, 0, block);
    }
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    let kept = rig.fill(0, 1);
    assert_eq!(rig.ftl.telemetry(UnitId(0)).state, UnitState::Online);
    fail_nth(&flash, Kind::Program, 2, DeviceError::ProgramFailed);
    let superblock = rig.allocate(2);
    let request = rig.append(&superblock, 0, 2);
    assert!(rig.wait(request).result.is_err());
    rig.ftl.release(rig.now, &superblock);
    rig.settle();
    assert_eq!(rig.ftl.telemetry(UnitId(0)).state, UnitState::ReadOnly);
    assert_eq!(rig.try_allocate(0, 3), Err(FtlError::NoSpace { unit: UnitId(0) }));
    rig.verify(&kept, 0, 1);
}
