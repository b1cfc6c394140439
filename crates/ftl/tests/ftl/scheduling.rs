//! Tests of the order of commands on a die, and of erases ahead of need.

use crate::support::{Flash, Kind, Media, Rig, geometry, model};
use softflash_base::{Time, UnitId};
use softflash_device::ModelDevice;
use softflash_ftl::{FtlConfig, Hint, Priority};
use softflash_policy::Schedule;

const MS: u64 = 1_000_000;

fn hint(priority: Priority) -> Hint {
    Hint { priority, ..Hint::FOREGROUND }
}

#[test]
fn a_foreground_read_waits_for_at_most_the_operation_in_progress() {
    let flash = Flash::new(geometry(1, 1, 8, 64), 1, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    let old = rig.fill(0, 1);
    let superblock = rig.allocate(2);
    let request = rig.append(&superblock, 0, 40);
    for _ in 0..10 {
        rig.step();
    }
    for _ in 0..5 {
        let start = rig.now;
        rig.verify(&old, 3, 1);
        let waited = rig.now.since_ns(start);
        assert!(waited <= 5 * MS + 100_000 + 1, "a read took {waited} ns");
    }
    assert!(
        !rig.done.iter().any(|done| done.request == request),
        "the append is still in progress"
    );
    rig.wait(request).result.unwrap();
}

#[test]
fn in_fifo_order_a_read_waits_for_the_programs_before_it() {
    for order in [Schedule::READS_FIRST, Schedule::FIFO] {
        let flash = Flash::new(geometry(1, 1, 8, 64), 1, Media::Nand);
        let config = FtlConfig { order, ..FtlConfig::default() };
        let (mut rig, _) = Rig::mount(&flash, config);
        let old = rig.fill(0, 1);
        let superblock = rig.allocate(2);
        let request = rig.append(&superblock, 0, 40);
        for _ in 0..10 {
            rig.step();
        }
        rig.verify(&old, 3, 1);
        let written = rig.done.iter().any(|done| done.request == request);
        assert_eq!(written, order.is_fifo());
    }
}

#[test]
fn a_read_passes_programs_and_erases_on_flash_that_suspends() {
    let device = ModelDevice::in_memory(model(1, 12)).unwrap();
    let (mut rig, _) = Rig::mount(&device, FtlConfig::default());
    let old = rig.fill(0, 1);
    let superblock = rig.allocate(2);
    let pages = rig.ftl.payload_pages();
    let request = rig.append(&superblock, 0, pages);
    let mut reads = 0;
    while !rig.done.iter().any(|done| done.request == request) {
        rig.step();
        let start = rig.now;
        rig.verify(&old, reads % pages, 1);
        let waited = rig.now.since_ns(start);
        // A read takes 0.06 ms, suspending 0.02 or 0.1; a program takes up to 0.6, an erase 2.
        assert!(waited < 400_000, "read {reads} took {waited} ns");
        reads += 1;
    }
    assert!(reads > 10, "there were {reads} reads");
}

#[test]
fn the_log_goes_before_compaction_on_the_same_die() {
    let flash = Flash::new(geometry(1, 1, 8, 64), 1, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    rig.settle();
    let (log, compaction) = (rig.allocate(1), rig.allocate(2));
    let first = rig.append_with(&log, 0, 1, true, Hint::LOG).unwrap();
    rig.wait(first).result.unwrap();
    let slow = rig.append_with(&compaction, 0, 20, false, Hint::COMPACTION).unwrap();
    rig.step();
    let start = rig.now;
    let quick = rig.append_with(&log, 1, 1, true, Hint::LOG).unwrap();
    rig.wait(quick).result.unwrap();
    assert!(rig.now.since_ns(start) <= 3 * MS, "one program in progress, then the log");
    assert!(!rig.done.iter().any(|done| done.request == slow));
    rig.wait(slow).result.unwrap();
}

#[test]
fn background_programs_are_not_starved_by_reads() {
    let flash = Flash::new(geometry(1, 1, 8, 64), 1, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    let old = rig.fill(0, 1);
    rig.settle();
    let superblock = rig.allocate(2);
    let program = rig.append_with(&superblock, 0, 1, false, Hint::COMPACTION).unwrap();
    let start = rig.now;
    let mut reads = 0;
    while !rig.done.iter().any(|done| done.request == program) {
        assert!(rig.now.since_ns(start) < 60 * MS, "the program starves behind {reads} reads");
        // More reads wait than the die can execute.
        while rig.ftl.load(UnitId(0)) < 12 {
            let buffer = rig.buffer(1);
            rig.ftl.read(rig.now, &old, 5, 1, buffer, Hint::FOREGROUND).unwrap();
            reads += 1;
        }
        rig.step();
    }
    assert!(reads > 30, "reads must go first for some time, and only {reads} did");
}

#[test]
fn an_erase_goes_before_the_programs_of_its_superblock() {
    let flash = Flash::new(geometry(1, 1, 8, 16), 1, Media::Nand);
    let config = FtlConfig { erased_target: 0, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    let superblock = rig.allocate(1);
    let request = rig.append(&superblock, 0, 2);
    rig.wait(request).result.unwrap();
    let log = flash.borrow();
    let kinds: Vec<Kind> =
        log.log.iter().map(|(_, kind, _)| *kind).filter(|k| *k != Kind::Read).collect();
    let flush = Kind::Flush;
    assert_eq!(
        kinds,
        [Kind::Erase, Kind::Program, Kind::Program, Kind::Program, Kind::Program, flush],
        "erase, erase header, opening header, two pages, and the flush of several commands"
    );
}

#[test]
fn superblocks_are_erased_ahead_of_need_once_the_unit_is_idle() {
    let flash = Flash::new(geometry(2, 2, 8, 8), 2, Media::Nand);
    let config = FtlConfig { erased_target: 3, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    rig.ftl.poll(rig.now, &mut rig.done);
    assert_eq!(flash.borrow().count(Kind::Erase), 0, "not at once");
    rig.settle();
    for unit in [0, 1] {
        assert_eq!(rig.ftl.space(UnitId(unit)).erased, 3);
    }
    assert_eq!(flash.borrow().count(Kind::Erase), 2 * 3 * 2, "and no more than wanted");
    // An erased superblock is used first and needs no erase.
    let erases = flash.borrow().count(Kind::Erase);
    rig.fill(0, 1);
    assert_eq!(flash.borrow().count(Kind::Erase), erases);
    rig.settle();
    assert_eq!(rig.ftl.space(UnitId(0)).erased, 3, "and is replaced");
}

#[test]
fn superblocks_are_erased_ahead_of_need_on_a_unit_that_is_never_idle() {
    let flash = Flash::new(geometry(1, 1, 8, 64), 1, Media::Nand);
    let config = FtlConfig { erased_target: 2, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    let old = rig.fill(0, 1);
    while rig.ftl.space(UnitId(0)).erased < 2 {
        assert!(rig.now < Time(1000 * MS), "erases ahead of need starve");
        while rig.ftl.load(UnitId(0)) < 4 {
            let buffer = rig.buffer(1);
            rig.ftl.read(rig.now, &old, 5, 1, buffer, Hint::FOREGROUND).unwrap();
        }
        rig.step();
    }
}

#[test]
fn the_erase_of_a_superblock_allocated_meanwhile_is_promoted() {
    for steps in 0..8 {
        let flash = Flash::new(geometry(2, 2, 4, 8), 1, Media::Nand);
        let config = FtlConfig { erased_target: 1, ..FtlConfig::default() };
        let (mut rig, _) = Rig::mount(&flash, config);
        rig.now = Time(10 * MS);
        for _ in 0..steps {
            rig.step();
        }
        let superblock = rig.allocate(1);
        let request = rig.append_with(&superblock, 0, 5, true, hint(Priority::Foreground)).unwrap();
        let start = rig.now;
        rig.wait(request).result.unwrap();
        assert!(rig.now.since_ns(start) < 20 * MS);
        rig.verify(&superblock, 0, 5);
        rig.settle();
        assert_eq!(rig.ftl.space(UnitId(0)).erased, 1);
    }
}
