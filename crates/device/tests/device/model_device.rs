//! Features of the model backend alone: the array's times, power cuts, and a state that outlives
//! queue pairs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

use softflash_base::random::Rng;
use softflash_base::{Time, UnitId, UnitSet};
use softflash_device::model::{PRESETS, UnitKind};
use softflash_device::{
    Completion, Contents, Device, DeviceError, ModelConfig, ModelDevice, ModelFormat, OpenError,
    Operation, Target, Wake, format_model, open,
};
use softflash_nand::Activity;
use softflash_testing::driver::{Driver, buffer_of, pattern, rows_of, target};
use std::os::unix::fs::FileExt;

/// Times of the small array: transfer, sense and program of a page (program of a lower page), and
/// erase.
const TRANSFER_NS: u64 = 10_000;
const READ_NS: u64 = 50_000;
const PROGRAM_NS: u64 = 200_000;
const ERASE_NS: u64 = 2_000_000;

fn small() -> ModelDevice {
    ModelDevice::in_memory(ModelConfig::small()).unwrap()
}

fn drive(device: &ModelDevice) -> Driver {
    Driver::new(device.open_queue_pair(&device.info().all_units()).unwrap())
}

fn on_die(die: u8, target: Target) -> Target {
    Target { die, ..target }
}

/// Submits a program of the target with bytes from `seed`.
fn program(driver: &mut Driver, target: Target, seed: u64) {
    let bytes = pattern(seed, driver.target_bytes(&target));
    let mut data = driver.pool().take(bytes.len());
    data.copy_from_slice(&bytes);
    driver.submit(target, Operation::Program { data, durable: false });
}

fn read(driver: &mut Driver, target: Target) {
    let buffer = driver.pool().take(driver.target_bytes(&target));
    driver.submit(target, Operation::Read(buffer));
}

fn ends_ns(completions: &[Completion]) -> Vec<u64> {
    completions.iter().map(|completion| completion.finished_at.0).collect()
}

#[test]
fn commands_take_the_time_of_the_flash() {
    let mut driver = drive(&small());
    driver.now = Time(1_000);
    let page = target(0, 0, 0, 1);
    program(&mut driver, page, 1);
    let done = driver.drain();
    assert_eq!(ends_ns(&done), [1_000 + TRANSFER_NS + PROGRAM_NS]);
    let start = driver.now.0;
    read(&mut driver, page);
    assert_eq!(ends_ns(&driver.drain()), [start + READ_NS + TRANSFER_NS]);
    let start = driver.now.0;
    driver.submit(page, Operation::Erase);
    assert_eq!(ends_ns(&driver.drain()), [start + ERASE_NS]);
}

#[test]
fn completions_tell_the_queue_and_the_time_of_service() {
    let mut config = ModelConfig::small();
    config.array.die.cache_read = true;
    let mut driver = drive(&ModelDevice::in_memory(config).unwrap());
    driver.now = Time(1_000);
    let page = target(0, 0, 0, 1);
    program(&mut driver, page, 1);
    let alone = driver.drain();
    assert_eq!((alone[0].queue, alone[0].service_ns), (0, TRANSFER_NS + PROGRAM_NS));
    // With a cache register the die takes two: the second read waits for the first one.
    read(&mut driver, page);
    read(&mut driver, page);
    let both = driver.drain();
    assert_eq!(both.iter().map(|one| one.queue).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(both[0].service_ns, READ_NS + TRANSFER_NS);
    let ends = both[1].finished_at.0 - (both[0].finished_at.0 - READ_NS - TRANSFER_NS);
    assert_eq!(both[1].service_ns, ends, "both were accepted at the same time");
    assert!(both[1].service_ns > both[0].service_ns);
    // Another die has a queue of its own, and a command that is refused has no service.
    let outside = driver.run(target(99, 0, 0, 1), Operation::Erase);
    assert_eq!((outside.queue, outside.service_ns), (0, 0));
}

#[test]
fn the_beginning_of_a_page_is_read_in_less_time() {
    let device = small();
    let mut driver = drive(&device);
    let bytes = pattern(3, 2 * 4096);
    driver.program(target(0, 0, 0, 2), &bytes).unwrap();
    let sector = driver.queue.sector_bytes() as usize;
    assert_eq!(sector, 1024);
    let mut read = |target, len| {
        let begin = driver.now;
        let buffer = driver.pool().take(len);
        let ended = driver.run(target, Operation::Read(buffer));
        let bytes = ended.buffer.map(|buffer| buffer.to_vec());
        (ended.result, bytes.unwrap_or_default(), ended.finished_at.since_ns(begin))
    };
    let (result, head, took_ns) = read(target(0, 0, 1, 1), sector);
    assert_eq!((result, took_ns), (Ok(()), READ_NS + TRANSFER_NS / 4));
    assert_eq!(head, bytes[4096..4096 + sector]);
    for (target, len) in [(target(0, 0, 0, 2), sector), (target(0, 0, 0, 1), sector / 2)] {
        assert!(matches!(read(target, len).0, Err(DeviceError::OutOfRange(_))));
    }
}

#[test]
fn rows_follow_each_other_on_a_die_and_a_late_poll_changes_nothing() {
    let mut driver = drive(&small());
    let rows = rows_of(&driver.geometry(), (0, 0, 0), 0, 3);
    program(&mut driver, rows, 1);
    let mut completions = Vec::new();
    driver.queue.poll(Time(900_000_000), &mut completions);
    // Three lower pages in shadow order would be pages 0, 1 and 3; page 2 is an upper one.
    let transfers = 3 * 2 * TRANSFER_NS;
    assert_eq!(ends_ns(&completions), [transfers + 2 * PROGRAM_NS + 600_000]);
}

#[test]
fn units_work_in_parallel_and_dies_of_a_channel_share_its_bus() {
    let mut driver = drive(&small());
    program(&mut driver, target(0, 0, 0, 1), 1);
    program(&mut driver, target(1, 0, 0, 1), 2);
    program(&mut driver, on_die(1, target(0, 0, 0, 1)), 3);
    let mut ends = ends_ns(&driver.drain());
    ends.sort_unstable();
    let alone = TRANSFER_NS + PROGRAM_NS;
    assert_eq!(ends, [alone, alone, alone + TRANSFER_NS]);
}

#[test]
fn a_die_without_registers_takes_one_command() {
    let device = small();
    let mut driver = drive(&device);
    assert_eq!(driver.geometry().die_queue_depth, 1);
    program(&mut driver, target(0, 0, 0, 1), 1);
    program(&mut driver, target(0, 1, 0, 1), 2);
    assert!(driver.now > Time::ZERO, "the second one had to wait");
    assert_eq!(driver.drain().len(), 2);
}

#[test]
fn a_read_passes_an_erase_where_the_die_can_suspend() {
    let device = ModelDevice::in_memory(ModelConfig::model()).unwrap();
    let mut driver = drive(&device);
    let page = target(0, 0, 0, 1);
    let written = pattern(1, 4096);
    driver.program(page, &written).unwrap();
    let start = driver.now.0;
    let erase = driver.submit(target(0, 1, 0, 1), Operation::Erase);
    driver.submit(target(0, 2, 0, 1), Operation::Erase);
    read(&mut driver, page);
    let done = driver.drain();
    assert_eq!(done[0].finished_at.0, start + 100_000 + READ_NS + TRANSFER_NS);
    assert_eq!(done[1].tag, erase, "resumed after the read");
    assert_eq!(buffer_of(done.into_iter().next().unwrap())[..], written);
}

#[test]
fn two_runs_with_one_seed_are_equal() {
    let run = |seed: u64| {
        let mut config = ModelConfig::small();
        config.seed = seed;
        config.faults.program_failure = 0.05;
        config.faults.factory_bad_block = 0.05;
        let device = ModelDevice::in_memory(config).unwrap();
        let mut driver = drive(&device);
        let mut trace = format!("{:?}", driver.queue.bad_blocks(UnitId(0)));
        for block in 0..8 {
            for die in 0..2 {
                program(&mut driver, on_die(die, target(0, block, 0, 4)), block.into());
            }
            for completion in driver.drain() {
                trace += &format!("{:?} {:?};", completion.finished_at, completion.result);
            }
        }
        trace
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn factory_bad_blocks_and_failed_programs_are_bad_blocks() {
    let mut config = ModelConfig { seed: 3, ..ModelConfig::small() };
    config.faults.factory_bad_block = 0.2;
    let device = ModelDevice::in_memory(config.clone()).unwrap();
    let bad = drive(&device).queue.bad_blocks(UnitId(1));
    assert!(!bad.is_empty() && bad.is_sorted());
    let mut driver = drive(&device);
    assert_eq!(driver.queue.bad_blocks(UnitId(1)), bad, "the same after a reopen");
    let (die, plane, block) = bad[0];
    let place = Target { die, plane, ..target(1, block, 0, 1) };
    assert_eq!(driver.erase(place), Err(DeviceError::BadBlock { block }));

    config.faults.factory_bad_block = 0.0;
    config.faults.program_failure = 1.0;
    let device = ModelDevice::in_memory(config.clone()).unwrap();
    let mut driver = drive(&device);
    let result = driver.program(target(0, 3, 0, 2), &[0; 8192]);
    assert_eq!(result, Err(DeviceError::ProgramFailed));
    assert_eq!(driver.queue.bad_blocks(UnitId(0)), [(0, 0, 3)]);

    config.faults.program_failure = 0.0;
    config.faults.erase_failure = 1.0;
    let device = ModelDevice::in_memory(config).unwrap();
    assert_eq!(drive(&device).erase(target(0, 3, 0, 0)), Err(DeviceError::EraseFailed));
}

#[test]
fn units_that_share_a_channel_stay_together() {
    let config = ModelConfig { unit: UnitKind::Chip, ..ModelConfig::small() };
    let device = ModelDevice::in_memory(config).unwrap();
    assert_eq!(device.info().units, 4);
    for range in [0..1, 1..2, 0..3, 1..4] {
        let refused = device.open_queue_pair(&UnitSet::from(range)).map(drop).unwrap_err();
        assert!(matches!(refused, OpenError::Geometry(_)), "{refused}");
    }
    let across = device.open_queue_pair(&UnitSet::from_iter([0, 3])).map(drop).unwrap_err();
    assert!(across.to_string().contains("units 0,3 split a channel"), "{across}");
    let mut all = device.open_queue_pair(&UnitSet::from(0..4)).unwrap();
    all.give_up(UnitId(3));
    let alone = device.open_queue_pair(&UnitSet::from(3..4)).map(drop).unwrap_err();
    assert!(alone.to_string().contains("units 3 split a channel"), "{alone}");
    let both = device.open_queue_pair(&UnitSet::from(2..4)).map(drop).unwrap_err();
    assert!(both.to_string().contains("overlap units 0-2"), "{both}");
    all.give_up(UnitId(2));
    device.open_queue_pair(&UnitSet::from(2..4)).unwrap();
    drop(all);
    device.open_queue_pair(&UnitSet::from(2..4)).unwrap();
}

#[test]
fn presets_can_be_opened() {
    for name in PRESETS {
        let config = ModelConfig::preset(name).unwrap();
        let (geometry, units) = (config.unit_geometry().unwrap(), config.units().unwrap());
        assert_eq!(
            config.array.geometry.bytes(),
            geometry.unit_bytes() * u64::from(units),
            "{name}"
        );
        let text = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<ModelConfig>(&text).unwrap(), config, "{name}");
    }
    assert_eq!(ModelConfig::preset("nothing"), None);
    assert_eq!(ModelConfig::sdf().units().unwrap(), 44);
    let odd = ModelConfig { seed: u64::MAX, ..ModelConfig::small() };
    assert!(matches!(ModelDevice::in_memory(odd).map(drop), Err(OpenError::Geometry(_))));
}

/// Programs rows of one block on every die of the device, cuts the power at `at` and checks the
/// pages: acknowledged pages hold their data; the others hold their data, or cannot be read.
/// Returns how many of the others are whole and torn.
fn cut_and_look(device: &ModelDevice, at: Time, seed: u64) -> (usize, usize) {
    let mut driver = drive(device);
    let geometry = driver.geometry();
    let places: Vec<_> = (0..device.info().units)
        .flat_map(|unit| (0..geometry.dies).map(move |die| (unit, die, 1)))
        .collect();
    for place in &places {
        let first = rows_of(&geometry, *place, 0, 4);
        program(&mut driver, first, 10);
    }
    assert!(driver.drain().iter().all(|completion| completion.result.is_ok()));
    for place in &places {
        program(&mut driver, rows_of(&geometry, *place, 4, 4), 11);
    }
    device.power_cut(driver.now + at.0, seed).unwrap();
    let lost = driver.drain();
    assert_eq!(lost.len(), places.len());
    for completion in lost {
        assert_eq!(completion.result, Err(DeviceError::Io { errno: libc::ENODEV }));
    }
    let refused = driver.read(rows_of(&geometry, places[0], 0, 1));
    assert_eq!(refused, Err(DeviceError::Io { errno: libc::ENODEV }));
    drop(driver);

    let mut driver = drive(device);
    let row_bytes = usize::from(geometry.planes) * geometry.page_bytes as usize;
    let second = pattern(11, 4 * row_bytes);
    let (mut whole, mut torn) = (0, 0);
    for place in &places {
        let first = driver.read(rows_of(&geometry, *place, 0, 4)).unwrap();
        assert!(first == pattern(10, 4 * row_bytes), "acknowledged data survive");
        for row in 0..4 {
            for plane in 0..geometry.planes {
                let page = Target { plane, planes: 1, ..rows_of(&geometry, *place, 4 + row, 1) };
                let start = row as usize * row_bytes + usize::from(plane) * 4096;
                match driver.read(page) {
                    Ok(bytes) => {
                        assert!(bytes == second[start..start + 4096], "never other bytes");
                        whole += 1;
                    }
                    Err(DeviceError::Uncorrectable) => torn += 1,
                    Err(DeviceError::Erased { page }) => assert_eq!(page, 4 + row),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        driver.erase(rows_of(&geometry, *place, 0, 1)).unwrap();
    }
    (whole, torn)
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_at_any_time() {
    let (mut whole, mut torn) = (0, 0);
    let seed = std::env::var("SOFTFLASH_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("replay with SOFTFLASH_SEED={seed}");
    let mut rng = Rng::seeded(seed);
    let device = small();
    for _ in 0..60 {
        let at = Time(rng.below(2_500_000));
        let (a, b) = cut_and_look(&device, at, rng.next_u64());
        (whole, torn) = (whole + a, torn + b);
    }
    assert!(whole > 0 && torn > 0, "cuts came before and after: {whole} whole, {torn} torn");
}

#[test]
fn dropping_a_queue_pair_at_work_cuts_its_power() {
    let device = small();
    let mut driver = drive(&device);
    let page = target(0, 0, 0, 1);
    program(&mut driver, page, 1);
    driver.queue.poll(Time(100_000), &mut Vec::new());
    drop(driver);
    let again = drive(&device).program(page, &pattern(1, 4096));
    assert!(matches!(again, Err(DeviceError::RuleBroken(_))), "the page is spent: {again:?}");
}

#[test]
fn a_kill_leaves_the_file_without_what_was_under_way() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device");
    format_model(&path, &ModelFormat { config: ModelConfig::small(), force: false, uuid: 8 })
        .unwrap();
    let device = open(&path).unwrap();
    assert_eq!((device.info().uuid, device.info().backend.as_str()), (8, "model"));
    let mut driver = Driver::new(device.open_queue_pair(&UnitSet::from(0..2)).unwrap());
    let page = target(1, 5, 0, 1);
    let first = pattern(1, 4096);
    driver.program(page, &first).unwrap();
    program(&mut driver, Target { page: 1, ..page }, 2);
    driver.submit(target(0, 5, 0, 0), Operation::Erase);
    driver.queue.poll(driver.now + 1_000, &mut Vec::new());
    let copy = directory.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();

    let killed = open(&copy).unwrap();
    let mut driver = Driver::new(killed.open_queue_pair(&UnitSet::from(0..2)).unwrap());
    assert_eq!(driver.read(page).unwrap(), first);
    let next = Target { page: 1, ..page };
    assert_eq!(driver.read(next), Err(DeviceError::Erased { page: 1 }));
    driver.program(next, &pattern(2, 4096)).unwrap();
}

#[test]
fn a_damaged_record_loses_its_block_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device");
    format_model(&path, &ModelFormat { config: ModelConfig::small(), force: false, uuid: 8 })
        .unwrap();
    let mut driver =
        Driver::new(open(&path).unwrap().open_queue_pair(&UnitSet::from(0..2)).unwrap());
    for block in [0, 1] {
        driver.program(target(0, block, 0, 1), &pattern(1, 4096)).unwrap();
    }
    drop(driver);
    // The record of block 0 is the first after the label.
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[9], (1 << 20) + 12).unwrap();
    let mut driver =
        Driver::new(open(&path).unwrap().open_queue_pair(&UnitSet::from(0..2)).unwrap());
    assert_eq!(driver.read(target(0, 0, 0, 1)), Err(DeviceError::Uncorrectable));
    assert_eq!(driver.read(target(0, 1, 0, 1)).unwrap(), pattern(1, 4096));
    driver.erase(target(0, 0, 0, 0)).unwrap();
    driver.program(target(0, 0, 0, 1), &pattern(2, 4096)).unwrap();
}

#[test]
fn an_erase_gives_the_files_space_back() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device");
    format_model(&path, &ModelFormat { config: ModelConfig::small(), force: false, uuid: 8 })
        .unwrap();
    let mut driver =
        Driver::new(open(&path).unwrap().open_queue_pair(&UnitSet::from(0..2)).unwrap());
    let whole = target(0, 3, 0, 16);
    driver.program(whole, &pattern(1, driver.target_bytes(&whole))).unwrap();
    driver.run(whole, Operation::Flush).result.unwrap();
    let before = std::fs::metadata(&path).unwrap().blocks() * 512;
    driver.erase(whole).unwrap();
    let after = std::fs::metadata(&path).unwrap().blocks() * 512;
    assert_eq!(before - after, 16 * 4096);
    assert_eq!(driver.queue.wake(), Wake::Idle);
}

#[test]
fn the_clock_may_start_anywhere_on_reopening() {
    let device = small();
    for start in [0, 5_000_000_000_000, 7] {
        let mut driver = drive(&device);
        driver.now = Time(start);
        driver.erase(target(0, 0, 0, 0)).unwrap();
        assert_eq!(driver.now.0, start + ERASE_NS);
        driver.program(target(0, 0, 0, 1), &pattern(start, 4096)).unwrap();
        assert_eq!(driver.read(target(0, 0, 0, 1)).unwrap(), pattern(start, 4096));
    }
}

#[test]
fn what_is_kept_in_memory_changes_no_time() {
    let mut ends = Vec::new();
    for contents in [Contents::Bytes, Contents::Packed, Contents::Nothing] {
        let device = ModelDevice::in_memory_keeping(ModelConfig::small(), contents).unwrap();
        let written = pattern(1, 2 * 4096);
        {
            let mut driver = drive(&device);
            driver.program(target(1, 2, 0, 2), &written).unwrap();
            let read = driver.read(target(1, 2, 0, 2)).unwrap();
            assert!(contents == Contents::Nothing || read == written);
            ends.push(driver.now);
        }
        let mut reopened = drive(&device);
        match contents {
            Contents::Nothing => {}
            _ => assert_eq!(reopened.read(target(1, 2, 0, 2)).unwrap(), written),
        }
        reopened.erase(target(1, 2, 0, 1)).unwrap();
        assert_eq!(reopened.read(target(1, 2, 0, 1)), Err(DeviceError::Erased { page: 0 }));
    }
    assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "{ends:?}");
}

#[test]
fn busy_times_and_recordings_are_numbered_through_the_device() {
    let device = small();
    let mut second = Driver::new(device.open_queue_pair(&UnitSet::from(1..2)).unwrap());
    device.record(Time::ZERO, Time::MAX, usize::MAX);
    second.program(target(1, 0, 0, 1), &pattern(1, 4096)).unwrap();
    let busy = device.busy_times();
    assert_eq!(busy.channels_ns, [0, 10_000]);
    assert_eq!(busy.dies_ns, [0, 0, 200_000, 0]);
    let recorded: Vec<_> = device.recorded().iter().map(|r| (r.die.0, r.activity)).collect();
    assert_eq!(recorded, [(2, Activity::Transfer), (2, Activity::Program)]);
}

#[test]
fn busy_times_and_recordings_of_separate_channels_are_numbered_through_the_device() {
    let mut config = ModelConfig::small();
    config.array.geometry.channels = 4;
    let device = ModelDevice::in_memory(config).unwrap();
    let units = UnitSet::from_iter([1, 3]);
    let mut driver = Driver::new(device.open_queue_pair(&units).unwrap());
    device.record(Time::ZERO, Time::MAX, usize::MAX);
    driver.program(on_die(1, target(3, 0, 0, 1)), &pattern(1, 4096)).unwrap();
    let busy = device.busy_times();
    assert_eq!(busy.channels_ns, [0, 0, 0, TRANSFER_NS]);
    assert_eq!(busy.dies_ns, [0, 0, 0, 0, 0, 0, 0, PROGRAM_NS]);
    let recorded: Vec<_> = device.recorded().iter().map(|r| r.die.0).collect();
    assert_eq!(recorded, [7, 7]);
}
