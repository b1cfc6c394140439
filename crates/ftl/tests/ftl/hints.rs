//! Hints reach the device, and what the device measures comes back.

use crate::support::*;
use softflash_base::{Time, UnitId};
use softflash_ftl::{FtlConfig, Hint, LifetimeClass, Origin, Priority, ProgramBytes};

/// A flash of one die with nothing erased ahead, and its FTL.
fn rig() -> (FlashRef, Rig) {
    let flash = Flash::new(geometry(1, 1, 8, 8), 1, Media::Nand);
    let config = FtlConfig { erased_target: 0, ..FtlConfig::default() };
    let (rig, _) = Rig::mount(&flash, config);
    flash.borrow_mut().hints.clear();
    (flash, rig)
}

#[test]
fn each_command_has_the_hint_of_its_request_or_of_the_ftl() {
    let (flash, mut rig) = rig();
    let hint = Hint::COMPACTION.lasting(LifetimeClass::LONG);
    let superblock = rig.ftl.allocate(rig.now, UnitId(0), tag(1), hint).unwrap();
    // The lifetime of an append is that of its superblock.
    let request = rig.append_with(&superblock, 0, 1, false, Hint::COLLECTION).unwrap();
    rig.wait(request).result.unwrap();
    let flush = rig.ftl.flush(rig.now, Hint::FLUSH);
    rig.wait(flush).result.unwrap();
    rig.verify(&superblock, 0, 1);
    let header = Hint::HEADER.at(Priority::Background);
    let expected = [
        (Kind::Erase, header),
        (Kind::Program, header.at(Priority::Foreground)),
        (Kind::Program, header.lasting(LifetimeClass::LONG)),
        (Kind::Program, Hint::COLLECTION.lasting(LifetimeClass::LONG)),
        (Kind::Flush, Hint::FLUSH),
        (Kind::Read, Hint::FOREGROUND),
    ];
    assert_eq!(flash.borrow().hints, expected);
}

#[test]
fn every_origin_has_its_bytes() {
    let (_, mut rig) = rig();
    let superblock = rig.allocate(1);
    let origins = [Origin::Host, Origin::Levelling, Origin::Rebuild];
    for (page, origin) in (0..).zip(origins) {
        let hint = Hint::FLUSH.of(origin);
        let request = rig.append_with(&superblock, page, 1, false, hint).unwrap();
        rig.wait(request).result.unwrap();
    }
    let programmed = rig.ftl.telemetry(UnitId(0)).programmed;
    let expected = ProgramBytes {
        host: 4096,
        levelling: 4096,
        rebuild: 4096,
        header: 2 * 4096,
        ..ProgramBytes::default()
    };
    assert_eq!(programmed, expected);
    assert_eq!(programmed.total(), 5 * 4096);
}

#[test]
fn telemetry_has_the_service_times_of_the_device() {
    let (_, mut rig) = rig();
    let service = |rig: &Rig| rig.ftl.telemetry(UnitId(0)).service;
    assert_eq!(service(&rig).read_ns.get(), 0);
    rig.now = Time(7_000_000);
    let superblock = rig.fill(0, 1);
    rig.verify(&superblock, 0, 1);
    let of_unit = service(&rig);
    let times = [of_unit.read_ns, of_unit.program_ns, of_unit.erase_ns].map(|mean| mean.get());
    assert_eq!(times, [100_000, 1_000_000, 5_000_000]);
    assert_eq!(of_unit.queue_milli.get(), 0, "the die takes one command at a time");
}
