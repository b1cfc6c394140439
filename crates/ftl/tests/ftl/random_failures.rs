//! Random use of flash whose blocks fail at random, until many of them are bad.

use crate::support::{Choices, Flash, FlashRef, Media, Medium, Rig, geometry, model, seeds};
use softflash_base::UnitId;
use softflash_device::{DeviceError, ModelDevice, Operation};
use softflash_ftl::{FtlConfig, FtlError, Hint, Superblock};

/// Makes one program or erase in `one_in` fail.
fn inject_failures(flash: &FlashRef, seed: u64, one_in: u32) {
    let mut choices = Choices::new(seed);
    flash.borrow_mut().fault = Some(Box::new(move |command| match command.operation {
        Operation::Program { .. } if choices.one_in(one_in) => Some(DeviceError::ProgramFailed),
        Operation::Erase if choices.one_in(one_in) => Some(DeviceError::EraseFailed),
        _ => None,
    }));
}

/// Writes pieces to one superblock until it is full or fails; returns the pages acknowledged before
/// the first failure.
fn write_some(rig: &mut Rig, superblock: &Superblock, choices: &mut Choices) -> u32 {
    let total = rig.ftl.payload_pages();
    let (mut at, mut requests) = (0, Vec::new());
    while at < total {
        let pages = (1 + choices.below(8)).min(total - at);
        let hint = [Hint::LOG, Hint::FLUSH, Hint::COMPACTION][choices.below(3) as usize];
        match rig.append_with(superblock, at, pages, choices.one_in(2), hint) {
            Ok(request) => requests.push((request, at + pages)),
            Err(error) => {
                assert_eq!(error, FtlError::Sealed { superblock: *superblock });
                break;
            }
        }
        at += pages;
        for _ in 0..choices.below(6) {
            rig.step();
        }
    }
    let (mut acknowledged, mut failed) = (0, false);
    for (request, end) in requests {
        let done = rig.wait(request);
        assert!(done.buffer.is_some(), "the data is always returned");
        match done.result {
            Ok(()) if !failed => acknowledged = end,
            Ok(()) => {}
            Err(FtlError::Device { .. } | FtlError::Sealed { .. }) => failed = true,
            Err(error) => panic!("{error}"),
        }
    }
    acknowledged
}

/// Uses one unit of 24 superblocks at random; returns the final number of bad blocks.
fn use_at_random(seed: u64, medium: &impl Medium) -> u32 {
    let mut choices = Choices::new(seed);
    let config = FtlConfig { erased_target: choices.below(4), ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(medium, config);
    let mut live: Vec<(Superblock, u32)> = Vec::new();
    for number in 0..400 {
        if live.len() > 8 || choices.one_in(3) && !live.is_empty() {
            let (superblock, _) = live.swap_remove(choices.below(live.len() as u32) as usize);
            assert!(rig.ftl.release(rig.now, &superblock));
        }
        match rig.try_allocate(0, number) {
            Ok(superblock) => {
                let acknowledged = write_some(&mut rig, &superblock, &mut choices);
                live.push((superblock, acknowledged));
            }
            Err(error) => assert_eq!(error, FtlError::NoSpace { unit: UnitId(0) }),
        }
        for (superblock, acknowledged) in &live {
            if choices.one_in(3) && *acknowledged > 0 {
                rig.verify(superblock, 0, *acknowledged);
            }
        }
        if choices.one_in(4) {
            rig.settle();
            let unit = rig.ftl.telemetry(UnitId(0));
            assert_eq!(unit.space.total(), 24);
            assert_eq!(unit.space.live as usize, live.len());
        }
        if choices.one_in(40) {
            rig.settle();
            let (now, bad_blocks) = (rig.now, rig.ftl.telemetry(UnitId(0)).bad_blocks);
            drop(rig);
            let recorded = medium.queue().bad_blocks(UnitId(0)).len();
            assert_eq!(recorded, bad_blocks as usize, "the FTL and the device agree on bad blocks");
            let (mounted, inventory) = Rig::mount_at(medium.queue(), config, now);
            rig = mounted;
            live.retain(|(_, acknowledged)| *acknowledged > 0);
            for (superblock, _) in &live {
                let mut found = inventory.superblocks.iter();
                assert!(found.any(|found| found.superblock == *superblock), "{superblock}");
            }
            for found in inventory.superblocks.iter().map(|found| found.superblock) {
                if !live.iter().any(|(superblock, _)| *superblock == found) {
                    assert!(rig.ftl.release(rig.now, &found));
                }
            }
            for damaged in &inventory.damaged {
                assert!(rig.ftl.release(rig.now, &damaged.superblock));
            }
        }
        rig.ftl.check();
    }
    rig.ftl.telemetry(UnitId(0)).bad_blocks
}

#[test]
fn failures_never_lose_space_or_acknowledged_data() {
    for seed in seeds(15) {
        println!("SOFTFLASH_SEED={seed}");
        let (dies, planes) = [(1, 1), (1, 2), (2, 2), (4, 1), (3, 4)][seed as usize % 5];
        let flash = Flash::new(geometry(dies, planes, 24, 8), 1, Media::Nand);
        inject_failures(&flash, seed ^ 0xf00, [30, 100, 400][seed as usize % 3]);
        assert!(use_at_random(seed, &flash) > 0, "no block ever failed");
    }
}

#[test]
fn failures_of_the_model_never_lose_space_or_acknowledged_data() {
    for seed in seeds(9) {
        println!("SOFTFLASH_SEED={seed}");
        let mut config = model(seed, 24);
        config.array.geometry.channels = 1;
        config.faults.factory_bad_block = 0.02;
        config.faults.program_failure = [0.0002, 0.001, 0.003][seed as usize % 3];
        config.faults.erase_failure = 0.01;
        let device = ModelDevice::in_memory(config).unwrap();
        assert!(use_at_random(seed, &device) > 0, "no block ever failed");
    }
}
