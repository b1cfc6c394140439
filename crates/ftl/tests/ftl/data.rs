//! Appends and reads on every shape of unit.

use crate::support;
use crate::support::flash::FlashQueue;
use crate::support::{Choices, Flash, Kind, Media, Rig, geometry, tag};
use softflash_base::{Time, UnitId};
use softflash_ftl::{FtlConfig, FtlError, Hint, ProgramBytes, Stream};

const SHAPES: [(u8, u8, u16); 7] =
    [(1, 1, 1), (1, 1, 32), (1, 2, 1), (1, 4, 2), (2, 1, 1), (4, 2, 2), (3, 4, 1)];

#[test]
fn appends_across_rows_dies_and_planes_read_back() {
    for (dies, planes, depth) in SHAPES {
        let mut shape = geometry(dies, planes, 8, 16);
        shape.die_queue_depth = depth;
        let flash = Flash::new(shape, 1, Media::Nand);
        let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
        let mut choices = Choices::new(u64::from(dies) * 10 + u64::from(planes));
        let superblock = rig.allocate(1);
        let total = rig.ftl.payload_pages();
        assert_eq!(total, shape.superblock_pages() - 2);
        // All appends are issued before the test waits for the first.
        let (mut at, mut requests) = (0, Vec::new());
        while at < total {
            let pages = (1 + choices.below(7)).min(total - at);
            requests.push(rig.append(&superblock, at, pages));
            at += pages;
        }
        for request in requests {
            let done = rig.wait(request);
            assert_eq!(done.result, Ok(()));
            assert!(done.buffer.is_some());
        }
        for _ in 0..50 {
            let first = choices.below(total);
            let pages = 1 + choices.below(total - first);
            rig.verify(&superblock, first, pages);
        }
        // The data is the same after a mount.
        drop(rig.ftl);
        let (mut rig, inventory) = Rig::mount(&flash, FtlConfig::default());
        assert_eq!(inventory.superblocks.len(), 1);
        assert_eq!(inventory.superblocks[0].superblock, superblock);
        assert_eq!(inventory.superblocks[0].tag, tag(1));
        assert_eq!(inventory.superblocks[0].stream, Stream::User);
        rig.verify(&superblock, 0, total);
    }
}

#[test]
fn a_large_append_is_one_command_per_row_on_a_die_and_one_command_on_an_extent() {
    for (depth, expected) in [(1, 8), (32, 1)] {
        let mut shape = geometry(1, 1, 8, 16);
        shape.die_queue_depth = depth;
        let flash = Flash::new(shape, 1, Media::Nand);
        let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
        rig.settle();
        let before = flash.borrow().count(Kind::Program);
        let superblock = rig.allocate(1);
        let request = rig.append(&superblock, 0, 8);
        rig.wait(request).result.unwrap();
        let header = 1;
        assert_eq!(flash.borrow().count(Kind::Program) - before, expected + header);
    }
}

#[test]
fn invalid_requests_are_refused_and_their_buffer_is_returned() {
    let flash = Flash::new(geometry(2, 2, 8, 4), 2, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    let superblock = rig.allocate(1);
    let total = rig.ftl.payload_pages();

    let odd = rig.ftl.buffers().take(5000);
    let (error, odd) = rig.ftl.append(rig.now, &superblock, odd, true, Hint::LOG).unwrap_err();
    assert_eq!(error, FtlError::NotWholePages { bytes: 5000, page_bytes: 4096 });
    assert_eq!(odd.len(), 5000);
    let (error, _) = rig.ftl.read(rig.now, &superblock, 0, 2, odd, Hint::FOREGROUND).unwrap_err();
    assert!(matches!(error, FtlError::NotWholePages { .. }));
    let empty = rig.ftl.buffers().take(0);
    assert!(rig.ftl.append(rig.now, &superblock, empty, true, Hint::LOG).is_err());

    let request = rig.append(&superblock, 0, 3);
    rig.wait(request).result.unwrap();
    assert_eq!(
        rig.read(&superblock, 2, 2).unwrap_err(),
        FtlError::Unwritten { superblock, first: 2, end: 4 }
    );
    assert_eq!(
        rig.append_with(&superblock, 3, total - 2, true, Hint::FLUSH),
        Err(FtlError::Sealed { superblock }),
        "no append beyond the end"
    );
    assert!(rig.ftl.seal(&superblock));
    assert_eq!(
        rig.append_with(&superblock, 3, 1, true, Hint::FLUSH),
        Err(FtlError::Sealed { superblock })
    );
    assert_eq!(rig.try_allocate(2, 1), Err(FtlError::NotOurs { unit: UnitId(2) }));
}

#[test]
fn a_stale_handle_is_refused() {
    let flash = Flash::new(geometry(1, 1, 4, 4), 1, Media::Nand);
    let config = FtlConfig { erased_target: 0, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    let mut last_generation = 0;
    let mut old = Vec::new();
    for number in 0..20 {
        let superblock = rig.fill(0, number);
        assert!(superblock.generation > last_generation, "generations rise");
        last_generation = superblock.generation;
        assert!(rig.ftl.release(rig.now, &superblock));
        assert!(!rig.ftl.release(rig.now, &superblock), "released once");
        assert!(!rig.ftl.seal(&superblock));
        old.push(superblock);
        for superblock in &old {
            let stale = FtlError::Stale { superblock: *superblock };
            assert_eq!(rig.read(superblock, 0, 1).unwrap_err(), stale);
            assert_eq!(rig.append_with(superblock, 0, 1, true, Hint::LOG), Err(stale));
        }
        rig.ftl.check();
    }
    let identities: std::collections::HashSet<u64> =
        old.iter().map(|superblock| rig.ftl.identity(superblock)).collect();
    assert_eq!(identities.len(), old.len(), "each life has a different identity");
}

#[test]
fn a_released_superblock_is_free_after_its_last_read() {
    let flash = Flash::new(geometry(2, 1, 4, 8), 1, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    let superblock = rig.fill(0, 1);
    let total = rig.ftl.payload_pages();
    let reads: Vec<_> = (0..total)
        .map(|page| {
            let buffer = rig.buffer(1);
            let hint = Hint::FOREGROUND;
            let request = rig.ftl.read(rig.now, &superblock, page, 1, buffer, hint).unwrap();
            (page, request)
        })
        .collect();
    rig.ftl.release(rig.now, &superblock);
    let free = rig.ftl.space(UnitId(0)).free();
    for (page, request) in reads {
        let done = rig.wait(request);
        assert_eq!(done.result, Ok(()));
        let mut expected = vec![0; 4096];
        support::pattern(&mut expected, &superblock, page);
        assert!(done.buffer.unwrap()[..] == expected[..]);
    }
    assert_eq!(rig.ftl.space(UnitId(0)).free(), free + 1, "free only after the last read");
    rig.settle();
}

#[test]
fn a_release_fails_the_appends_that_wait() {
    let flash = Flash::new(geometry(1, 1, 4, 16), 1, Media::Nand);
    let config = FtlConfig { erased_target: 0, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    for polls in 0..12 {
        let superblock = rig.allocate(1);
        let requests: Vec<_> = (0..4).map(|at| rig.append(&superblock, at, 1)).collect();
        for _ in 0..polls {
            rig.step();
        }
        rig.ftl.release(rig.now, &superblock);
        let mut failed = 0;
        for request in requests {
            match rig.wait(request).result {
                Ok(()) => assert_eq!(failed, 0, "appends end in their order"),
                Err(error) => {
                    assert_eq!(error, FtlError::Stale { superblock });
                    failed += 1;
                }
            }
        }
        rig.settle();
        assert_eq!(rig.ftl.space(UnitId(0)).erase_pending, 4);
        assert!(rig.ftl.idle());
    }
}

#[test]
fn commands_wait_while_the_device_queue_is_full() {
    let flash = Flash::new(geometry(4, 2, 8, 8), 2, Media::Nand);
    let (mut rig, _) = Rig::mount_at(FlashQueue::open(&flash, 3), FtlConfig::default(), Time::ZERO);
    let (first, second) = (rig.fill(0, 1), rig.fill(1, 2));
    let total = rig.ftl.payload_pages();
    let flush = rig.ftl.flush(rig.now, Hint::FOREGROUND);
    rig.wait(flush).result.unwrap();
    rig.verify(&first, 0, total);
    rig.verify(&second, 0, total);
    rig.settle();
    assert_eq!(rig.ftl.telemetry(UnitId(0)).errors, 0);
}

#[test]
fn telemetry_counts_commands_and_bytes() {
    let flash = Flash::new(geometry(2, 2, 8, 4), 2, Media::Nand);
    let config = FtlConfig { erased_target: 0, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    let superblock = rig.fill(1, 1);
    rig.verify(&superblock, 0, 2);
    let other = rig.ftl.telemetry(UnitId(0));
    assert_eq!((other.reads, other.programs, other.erases, other.busy_ns), (0, 0, 0, 0));
    let unit = rig.ftl.telemetry(UnitId(1));
    assert_eq!(unit.erases, 2, "all planes of a die at once");
    assert_eq!(unit.bytes_programmed, 16 * 4096, "headers included");
    let by_origin = ProgramBytes { flush: 14 * 4096, header: 2 * 4096, ..ProgramBytes::default() };
    assert_eq!(unit.programmed, by_origin);
    assert_eq!((unit.reads, unit.bytes_read), (1, 2 * 4096));
    assert_eq!((unit.erase_count_min, unit.erase_count_max, unit.errors), (0, 1, 0));
    assert_eq!(unit.superblock_payload_bytes, 14 * 4096);
    assert!(unit.busy_ns > 5_000_000);
    assert_eq!((unit.queue, rig.ftl.load(UnitId(1))), (0, 0));
}
