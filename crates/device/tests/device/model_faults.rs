//! Faults of the simulated flash as seen through a queue pair, and restored images of units.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use softflash_base::random::Rng;
use softflash_base::{Time, UnitSet, checksum64};
use softflash_device::{
    Contents, Device, DeviceError, ModelConfig, ModelDevice, ModelFormat, OpenError, Operation,
    Target, format_model,
};
use softflash_nand::{
    CutErases, CutPages, FaultPlace, FaultSchedule, FaultTime, InjectedFaults, PlannedFault,
    SilentFaults, Strike,
};
use softflash_testing::driver::{Driver, pattern, target};
use std::ops::Range;

const MS: u64 = 1_000_000;

fn device(change: impl FnOnce(&mut ModelConfig)) -> ModelDevice {
    let mut config = ModelConfig::small();
    change(&mut config);
    ModelDevice::in_memory(config).unwrap()
}

fn drive(device: &ModelDevice, units: Range<u16>) -> Driver {
    Driver::new(device.open_queue_pair(&UnitSet::from(units)).unwrap())
}

fn page(unit: u16, block: u32, page: u32) -> Target {
    target(unit, block, page, 1)
}

fn plan(place: FaultPlace, when: FaultTime, what: Strike) -> FaultSchedule {
    FaultSchedule { faults: vec![PlannedFault { place, when, what }] }
}

#[test]
fn a_planned_fault_strikes_the_die_that_is_meant_through_any_queue_pair() {
    let device = device(|_| {});
    let (mut first, mut second) = (drive(&device, 0..1), drive(&device, 1..2));
    // Die 2 is the first of the second channel.
    let schedule = plan(FaultPlace::Die(2), FaultTime::Program(2), Strike::Fail);
    device.schedule_faults(&schedule).unwrap();
    for number in 0..3 {
        let bytes = pattern(number, 4096);
        first.program(page(0, 0, number as u32), &bytes).unwrap();
        let second = second.program(page(1, number as u32, 0), &bytes);
        assert_eq!(second.is_err(), number == 1, "{second:?}");
    }
    assert_eq!(second.queue.bad_blocks(softflash_base::UnitId(1)), [(0, 0, 1)]);
    drop((first, second));
    let expected = InjectedFaults { planned_failures: 1, ..InjectedFaults::default() };
    assert_eq!(device.injected_faults(), expected, "also when the queue pairs are gone");
    let beyond = plan(FaultPlace::Die(4), FaultTime::Program(2), Strike::Fail);
    assert!(device.schedule_faults(&beyond).unwrap_err().to_string().contains("die 4"));
}

#[test]
fn a_planned_fault_strikes_the_channel_that_is_meant_among_separate_ones() {
    let device = device(|config| config.array.geometry.channels = 4);
    let units = UnitSet::from_iter([1, 3]);
    let mut driver = Driver::new(device.open_queue_pair(&units).unwrap());
    let dies = [FaultPlace::Channel(0), FaultPlace::Channel(3), FaultPlace::Die(4)];
    for place in dies {
        device.schedule_faults(&plan(place, FaultTime::Erase(1), Strike::Fail)).unwrap();
    }
    assert_eq!(driver.erase(page(1, 0, 0)), Ok(()));
    assert_eq!(driver.erase(page(3, 0, 0)), Err(DeviceError::EraseFailed));
    assert_eq!(driver.queue.bad_blocks(softflash_base::UnitId(3)), [(0, 0, 0)]);
}

#[test]
fn a_dead_channel_is_a_typed_error_of_its_unit() {
    let device = device(|_| {});
    let mut driver = drive(&device, 0..2);
    let bytes = pattern(1, 4096);
    for unit in 0..2 {
        driver.program(page(unit, 0, 0), &bytes).unwrap();
    }
    let from = FaultTime::AtNs(10 * MS);
    device.schedule_faults(&plan(FaultPlace::Channel(1), from, Strike::Death)).unwrap();
    assert_eq!(driver.read(page(1, 0, 0)).unwrap(), bytes);
    driver.now = Time(10 * MS);
    assert_eq!(driver.read(page(1, 0, 0)), Err(DeviceError::DeadDie));
    assert_eq!(driver.program(page(1, 0, 1), &bytes), Err(DeviceError::DeadDie));
    assert_eq!(driver.erase(page(1, 0, 0)), Err(DeviceError::DeadDie));
    assert_eq!(driver.read(page(0, 0, 0)).unwrap(), bytes);
    assert_eq!(device.injected_faults().dead_commands, 3);
}

#[test]
fn an_unstable_page_decays_across_a_power_cycle() {
    let cut_pages = CutPages { unstable: 1.0, unstable_reads: 3, ..CutPages::default() };
    let device = device(|config| config.faults.cut_pages = cut_pages);
    let mut driver = drive(&device, 0..1);
    let bytes = pattern(1, 4096);
    let mut data = driver.pool().take(4096);
    data.copy_from_slice(&bytes);
    driver.submit(page(0, 0, 0), Operation::Program { data, durable: false });
    assert_eq!(device.power_cut(Time(100_000), 5).unwrap().pages_unstable, 1);
    drop(driver);
    for _ in 0..3 {
        // With a power cycle before each read.
        assert_eq!(drive(&device, 0..1).read(page(0, 0, 0)).unwrap(), bytes);
    }
    assert_eq!(drive(&device, 0..1).read(page(0, 0, 0)), Err(DeviceError::Uncorrectable));
}

#[test]
fn a_weak_block_stays_weak_across_a_power_cycle() {
    let cut_erases =
        CutErases { looks_erased: 1.0, program_failure_factor: 1e6, ..CutErases::default() };
    let device = device(|config| {
        config.faults.cut_erases = cut_erases;
        config.faults.program_failure = 1e-6;
    });
    let mut driver = drive(&device, 0..1);
    driver.submit(page(0, 3, 0), Operation::Erase);
    assert_eq!(device.power_cut(Time(MS), 5).unwrap().blocks_look_erased, 1);
    drop(driver);
    let mut driver = drive(&device, 0..1);
    driver.program(page(0, 2, 0), &[1; 4096]).unwrap();
    assert_eq!(driver.program(page(0, 3, 0), &[1; 4096]), Err(DeviceError::ProgramFailed));
}

#[test]
fn what_was_misdirected_is_still_there_after_a_power_cycle() {
    for contents in [Contents::Bytes, Contents::Packed] {
        let mut config = ModelConfig::small();
        config.faults.silent.misdirected_program = 1.0;
        let device = ModelDevice::in_memory_keeping(config, contents).unwrap();
        let bytes = pattern(1, 4096);
        let mut driver = drive(&device, 0..1);
        driver.program(page(0, 0, 0), &bytes).unwrap();
        drop(driver);
        let mut driver = drive(&device, 0..1);
        assert_eq!(driver.read(page(0, 0, 0)), Err(DeviceError::Erased { page: 0 }));
        let strays: Vec<u32> =
            (1..8).filter(|&block| driver.read(page(0, block, 0)).is_ok()).collect();
        assert_eq!(strays.len(), 1, "{strays:?}");
        assert_eq!(driver.read(page(0, strays[0], 0)).unwrap(), bytes);
        driver.program(page(0, strays[0], 0), &[2; 4096]).unwrap();
        let after = driver.read(page(0, strays[0], 0));
        assert!(after.is_err() || after.unwrap() == bytes, "its own data went elsewhere");
    }
}

/// Submits a program of the first page of a unit's block 0.
fn start(driver: &mut Driver, unit: u16) {
    let mut data = driver.pool().take(4096);
    data.copy_from_slice(&pattern(1, 4096));
    driver.submit(page(unit, 0, 0), Operation::Program { data, durable: false });
}

#[test]
fn a_planned_cut_strikes_all_queue_pairs_at_its_instant() {
    let gone = Err(DeviceError::Io { errno: libc::ENODEV });
    for (when, place) in
        [(FaultTime::Program(1), FaultPlace::Die(0)), (FaultTime::AtNs(60_000), FaultPlace::Die(3))]
    {
        let device = device(|_| {});
        let (mut first, mut second) = (drive(&device, 0..1), drive(&device, 1..2));
        device.schedule_faults(&plan(place, when, Strike::PowerCut { progress: 0.25 })).unwrap();
        // 10 us on the bus and a quarter of 200 us in the cells.
        start(&mut first, 0);
        start(&mut second, 1);
        let ended = first.drain();
        assert_eq!((&ended[0].result, ended[0].finished_at), (&gone, Time(60_000)));
        second.now = first.now;
        let ended = second.drain();
        assert_eq!((&ended[0].result, ended[0].finished_at), (&gone, Time(60_000)));
        let report = device.last_power_cut().unwrap();
        let pages = report.pages_untouched + report.pages_torn + report.pages_whole;
        assert_eq!((report.commands_lost, pages), (2, 2));
        drop((first, second));
        let again = drive(&device, 0..2).program(page(1, 0, 0), &pattern(1, 4096));
        assert!(matches!(again, Err(DeviceError::RuleBroken(_))), "the page is spent: {again:?}");
    }
}

/// Uses a device through many power cuts; returns all its results.
fn history(device: &ModelDevice, seed: u64) -> Vec<String> {
    let mut rng = Rng::seeded(seed);
    let mut said = Vec::new();
    let mut next = [[0; 4]; 2];
    for _ in 0..30 {
        let mut driver = drive(device, 0..2);
        for _ in 0..40 {
            let (unit, block) = (rng.below(2) as u16, rng.below(4) as u32);
            let at = &mut next[usize::from(unit)][block as usize];
            match rng.below(8) {
                0..4 => {
                    let bytes = pattern(rng.next_u64(), 4096);
                    let programmed = driver.program(page(unit, block, *at), &bytes);
                    said.push(format!("{programmed:?}"));
                    *at += 1;
                    if *at == 16 || matches!(programmed, Err(DeviceError::RuleBroken(_))) {
                        said.push(format!("{:?}", driver.erase(page(unit, block, 0))));
                        *at = 0;
                    }
                }
                _ => {
                    let read =
                        driver.read(page(unit, block, rng.below(u64::from(*at) + 1) as u32 % 16));
                    said.push(format!("{:?}", read.map(|bytes| checksum64(0, &bytes))));
                }
            }
        }
        for unit in 0..2 {
            match rng.below(2) {
                0 => drop(driver.submit(page(unit, rng.below(4) as u32, 0), Operation::Erase)),
                _ => start(&mut driver, unit),
            }
        }
        let at = driver.now + rng.below(1_500_000);
        said.push(format!("{:?}", device.power_cut(at, rng.next_u64()).unwrap()));
        said.extend(driver.drain().iter().map(|ended| format!("{:?}", ended.result)));
    }
    said
}

#[test]
fn memory_and_file_answer_alike_whatever_goes_wrong() {
    let mut injected = InjectedFaults::default();
    for seed in 0..6 {
        let mut config = ModelConfig { seed, ..ModelConfig::small() };
        config.faults.erase_failure = 0.002;
        config.faults.program_failure = 0.002;
        config.faults.paired_page_loss = 0.5;
        config.faults.silent = SilentFaults {
            miscorrected_read: 0.02,
            misdirected_read: 0.02,
            stale_read: 0.02,
            misdirected_program: 0.03,
            phantom_program: 0.03,
        };
        config.faults.cut_pages =
            CutPages { shorn: 1.0, random: 1.0, unstable: 2.0, ..CutPages::default() };
        config.faults.cut_erases = CutErases {
            looks_erased: 1.0,
            part_old: 2.0,
            random: 1.0,
            program_failure_factor: 9.0,
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("device");
        let format = ModelFormat { config: config.clone(), force: false, uuid: 77 };
        format_model(&path, &format).unwrap();
        let in_file = history(&ModelDevice::open(&path).unwrap(), seed);
        for contents in [Contents::Bytes, Contents::Packed] {
            let device = ModelDevice::in_memory_keeping(config.clone(), contents).unwrap();
            assert_eq!(history(&device, seed), in_file, "seed {seed}");
            injected.add(&device.injected_faults());
        }
    }
    let InjectedFaults { misdirected_reads, miscorrected_reads, stale_reads, .. } = injected;
    assert!(misdirected_reads > 0 && miscorrected_reads > 0 && stale_reads > 0, "{injected:?}");
    let InjectedFaults { misdirected_programs, pages_overwritten, .. } = injected;
    assert!(misdirected_programs > pages_overwritten && pages_overwritten > 0, "{injected:?}");
}

/// Uses a unit, restores its image and checks it.
fn set_back(device: &ModelDevice) {
    let (old, new) = (pattern(1, 4096), pattern(2, 4096));
    let mut driver = drive(device, 0..2);
    for unit in 0..2 {
        driver.program(page(unit, 0, 0), &old).unwrap();
        driver.program(page(unit, 1, 0), &old).unwrap();
    }
    let refused = device.image(1..2).map(drop);
    assert!(matches!(refused, Err(OpenError::Geometry(_))), "it is in use: {refused:?}");
    drop(driver);
    let image = device.image(1..2).unwrap();

    let mut driver = drive(device, 0..2);
    for unit in 0..2 {
        driver.program(page(unit, 0, 1), &new).unwrap();
        driver.erase(page(unit, 1, 0)).unwrap();
        driver.program(page(unit, 1, 0), &new).unwrap();
        driver.mark_bad(page(unit, 2, 0)).unwrap();
    }
    assert!(device.restore(&image).is_err(), "it is in use");
    drop(driver);
    device.restore(&image).unwrap();

    let mut driver = drive(device, 0..2);
    assert_eq!(driver.read(page(0, 0, 1)).unwrap(), new, "not of the image");
    assert_eq!(driver.read(page(0, 1, 0)).unwrap(), new);
    assert_eq!(driver.read(page(1, 0, 0)).unwrap(), old);
    assert_eq!(driver.read(page(1, 0, 1)), Err(DeviceError::Erased { page: 1 }));
    assert_eq!(driver.read(page(1, 1, 0)).unwrap(), old, "what was acknowledged is gone");
    driver.program(page(1, 0, 1), &new).unwrap();
    driver.program(page(1, 2, 0), &new).unwrap();
    assert_eq!(driver.program(page(0, 2, 0), &new), Err(DeviceError::BadBlock { block: 2 }));
    let other = device_of_seed(9);
    let refused = other.restore(&image).unwrap_err();
    assert!(refused.to_string().contains("another device"), "{refused}");
}

fn device_of_seed(seed: u64) -> ModelDevice {
    device(|config| config.seed = seed)
}

#[test]
fn a_unit_comes_back_as_an_old_image() {
    set_back(&device(|_| {}));
    let packed = ModelDevice::in_memory_keeping(ModelConfig::small(), Contents::Packed);
    set_back(&packed.unwrap());
}

#[test]
fn a_unit_in_a_file_comes_back_as_an_old_image() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device");
    let format = ModelFormat { config: ModelConfig::small(), force: false, uuid: 77 };
    format_model(&path, &format).unwrap();
    set_back(&ModelDevice::open(&path).unwrap());
}
