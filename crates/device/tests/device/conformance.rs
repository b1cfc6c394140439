//! Conformance tests, run on every backend.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

use softflash_base::{UnitId, UnitSet};
use softflash_device::file::{FileFormat, OpenOptions, Use};
use softflash_device::model::UnitKind;
use softflash_device::{
    Device, DeviceError, ModelConfig, ModelFormat, OpenError, Operation, Target, Wake, format_file,
    format_model, open_with,
};
use softflash_testing::driver::{Driver, buffer_of, pattern, rows_of};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A formatted device that can be opened again and again.
struct Fixture {
    _directory: TempDir,
    path: PathBuf,
    options: OpenOptions,
    /// Whether the backend knows which pages are programmed.
    checks_rules: bool,
    /// Units that must be in one queue pair.
    together: u16,
}

impl Fixture {
    fn file(options: OpenOptions) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("device");
        let format = FileFormat {
            units: 3,
            superblock_bytes: 64 << 10,
            ..FileFormat::new(8 << 20, 0xfeed_0000_1111_2222_3333_4444_5555_6666)
        };
        format_file(&path, &format).unwrap();
        Fixture { _directory: directory, path, options, checks_rules: false, together: 1 }
    }

    fn model(config: ModelConfig) -> Fixture {
        let together = match config.unit {
            UnitKind::Channel => 1,
            UnitKind::Chip => u16::from(config.array.geometry.chips_per_channel),
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("device");
        format_model(&path, &ModelFormat { config, force: false, uuid: 0xfeed }).unwrap();
        let options = OpenOptions::default();
        Fixture { _directory: directory, path, options, checks_rules: true, together }
    }

    fn try_open(&self) -> Result<Arc<dyn Device>, OpenError> {
        open_with(&self.path, self.options.clone())
    }

    fn open(&self) -> Arc<dyn Device> {
        self.try_open().unwrap()
    }

    fn drive(&self) -> Driver {
        let device = self.open();
        let units = device.info().units;
        Driver::new(device.open_queue_pair(&UnitSet::from(0..units)).unwrap())
    }

    fn flip_byte(&self, offset: u64) {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&self.path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[byte[0] ^ 0x10], offset).unwrap();
    }
}

/// The small array with four channels, no cache registers and no suspend.
fn four_channels() -> ModelConfig {
    let mut config = ModelConfig::small();
    config.array.geometry.channels = 4;
    config
}

const PLACE: (u16, u8, u32) = (1, 0, 2);

/// The first `rows` rows of a block of every plane, freshly erased, and their new contents.
fn programmed(driver: &mut Driver, rows: u32, seed: u64) -> (Target, Vec<u8>) {
    let target = rows_of(&driver.geometry(), PLACE, 0, rows);
    driver.erase(target).unwrap();
    let bytes = pattern(seed, driver.target_bytes(&target));
    driver.program(target, &bytes).unwrap();
    (target, bytes)
}

fn what_is_programmed_reads_back(fixture: Fixture) {
    let mut driver = fixture.drive();
    let (target, bytes) = programmed(&mut driver, 8, 1);
    assert_eq!(driver.read(target).unwrap(), bytes);
    let row = bytes.len() / 8;
    let middle = Target { page: 3, rows: 2, ..target };
    assert_eq!(driver.read(middle).unwrap(), bytes[3 * row..5 * row]);
    let page = driver.geometry().page_bytes as usize;
    let last_plane = driver.geometry().planes - 1;
    let single = Target { plane: last_plane, planes: 1, page: 5, rows: 1, ..target };
    let start = 5 * row + usize::from(last_plane) * page;
    assert_eq!(driver.read(single).unwrap(), bytes[start..start + page]);
}

fn durable_and_flushed_data_outlives_the_queue_pair(fixture: Fixture) {
    let mut driver = fixture.drive();
    let (target, bytes) = programmed(&mut driver, 2, 2);
    let next = Target { page: 2, rows: 3, ..target };
    let more = pattern(3, driver.target_bytes(&next));
    let mut data = driver.pool().take(more.len());
    data.copy_from_slice(&more);
    let completion = driver.run(next, Operation::Program { data, durable: true });
    assert_eq!(completion.result, Ok(()));
    assert_eq!(buffer_of(completion)[..], more, "the buffer comes back as it was");
    assert_eq!(driver.run(target, Operation::Flush).result, Ok(()));
    drop(driver);
    let mut driver = fixture.drive();
    assert_eq!(driver.read(target).unwrap(), bytes);
    assert_eq!(driver.read(next).unwrap(), more);
}

fn an_erased_block_takes_new_data(fixture: Fixture) {
    let mut driver = fixture.drive();
    let (_, old) = programmed(&mut driver, 4, 4);
    let (target, new) = programmed(&mut driver, 4, 5);
    assert_ne!(old, new);
    assert_eq!(driver.read(target).unwrap(), new);
}

fn other_units_and_blocks_are_left_alone(fixture: Fixture) {
    let mut driver = fixture.drive();
    let geometry = driver.geometry();
    let places: Vec<_> =
        (0..2).flat_map(|unit| (1..4).map(move |block| (unit, geometry.dies - 1, block))).collect();
    for (seed, place) in places.iter().enumerate() {
        let target = rows_of(&geometry, *place, 0, 2);
        driver.erase(target).unwrap();
        driver.program(target, &pattern(seed as u64, driver.target_bytes(&target))).unwrap();
    }
    for (seed, place) in places.iter().enumerate() {
        let target = rows_of(&geometry, *place, 0, 2);
        assert_eq!(
            driver.read(target).unwrap(),
            pattern(seed as u64, driver.target_bytes(&target))
        );
    }
}

fn addresses_outside_are_refused_and_buffers_come_back(fixture: Fixture) {
    let device = fixture.open();
    let (first, end) = (fixture.together, 2 * fixture.together);
    let mut driver = Driver::new(device.open_queue_pair(&UnitSet::from(first..end)).unwrap());
    let geometry = driver.geometry();
    let inside = rows_of(&geometry, (first, 0, 2), 0, 1);
    let mut blocks = inside.blocks;
    blocks[0] = geometry.blocks_per_plane;
    let outside = [
        Target { unit: UnitId(first - 1), ..inside },
        Target { unit: UnitId(end), ..inside },
        Target { die: geometry.dies, ..inside },
        Target { plane: geometry.planes, planes: 1, ..inside },
        Target { planes: geometry.planes + 1, ..inside },
        Target { blocks, ..inside },
        Target { page: geometry.pages_per_block, ..inside },
        Target { page: geometry.pages_per_block - 1, rows: 2, ..inside },
        Target { page: u32::MAX, rows: u32::MAX, ..inside },
        Target { rows: 0, ..inside },
        Target { rows: 2, ..inside },
    ];
    let len = driver.target_bytes(&inside);
    for target in outside {
        for durable in [None, Some(false)] {
            let buffer = driver.pool().take(len);
            let operation = match durable {
                None => Operation::Read(buffer),
                Some(durable) => Operation::Program { data: buffer, durable },
            };
            let completion = driver.run(target, operation);
            let refused = matches!(completion.result, Err(DeviceError::OutOfRange(_)));
            assert!(refused, "{target:?}: {:?}", completion.result);
            assert_eq!(buffer_of(completion).len(), len);
        }
    }
    for target in &outside[..6] {
        assert!(matches!(driver.erase(*target), Err(DeviceError::OutOfRange(_))), "{target:?}");
        assert!(matches!(driver.mark_bad(*target), Err(DeviceError::OutOfRange(_))), "{target:?}");
    }
}

fn the_rules_of_the_flash_are_kept_where_they_are_known(fixture: Fixture) {
    let mut driver = fixture.drive();
    let (target, _) = programmed(&mut driver, 2, 6);
    let again = driver.program(
        Target { rows: 1, ..target },
        &vec![0; driver.target_bytes(&Target { rows: 1, ..target })],
    );
    let skipping = Target { page: 3, rows: 1, ..target };
    let skipped = driver.program(skipping, &vec![0; driver.target_bytes(&skipping)]);
    let beyond = driver.read(Target { page: 2, rows: 1, ..target });
    if fixture.checks_rules {
        assert!(matches!(again, Err(DeviceError::RuleBroken(_))), "{again:?}");
        assert!(matches!(skipped, Err(DeviceError::RuleBroken(_))), "{skipped:?}");
        assert_eq!(beyond, Err(DeviceError::Erased { page: 2 }));
    } else {
        assert_eq!((again, skipped, beyond.map(drop)), (Ok(()), Ok(()), Ok(())));
    }
}

fn bad_blocks_stay_bad_and_can_be_read(fixture: Fixture) {
    let mut driver = fixture.drive();
    let (target, bytes) = programmed(&mut driver, 3, 7);
    assert_eq!(driver.queue.bad_blocks(UnitId(1)), []);
    driver.mark_bad(Target { planes: 1, ..target }).unwrap();
    driver.mark_bad(Target { planes: 1, blocks: [0; 4], ..target }).unwrap();
    driver.mark_bad(Target { planes: 1, ..target }).unwrap();
    for reopened in [false, true] {
        if reopened {
            drop(driver);
            driver = fixture.drive();
        }
        assert_eq!(driver.queue.bad_blocks(UnitId(1)), [(0, 0, 0), (0, 0, 2)]);
        assert_eq!(driver.queue.bad_blocks(UnitId(0)), []);
        assert_eq!(driver.read(target).unwrap(), bytes);
        let next = Target { planes: 1, page: 3, rows: 1, ..target };
        let data = pattern(8, driver.target_bytes(&next));
        assert_eq!(driver.program(next, &data), Err(DeviceError::BadBlock { block: 2 }));
        assert_eq!(
            driver.erase(Target { planes: 1, ..target }),
            Err(DeviceError::BadBlock { block: 2 })
        );
    }
}

fn one_process_at_a_time(fixture: Fixture) {
    let device = fixture.open();
    assert!(matches!(fixture.try_open(), Err(OpenError::Busy { .. })));
    assert_eq!(softflash_device::inspect(&fixture.path).unwrap().uuid, device.info().uuid);
    let queue = device.open_queue_pair(&UnitSet::from(0..fixture.together)).unwrap();
    drop(device);
    assert!(matches!(fixture.try_open(), Err(OpenError::Busy { .. })), "a queue pair keeps it");
    drop(queue);
    fixture.open();
}

fn units_belong_to_one_queue_pair(fixture: Fixture) {
    let device = fixture.open();
    let units = device.info().units;
    let one = fixture.together;
    let first = device.open_queue_pair(&UnitSet::from(0..one)).unwrap();
    let rest = device.open_queue_pair(&UnitSet::from(one..units)).unwrap();
    assert_eq!(first.units(), &UnitSet::from(0..one));
    assert_eq!(rest.units(), &UnitSet::from(one..units));
    for range in [0..units, one..2 * one, 0..one, units..units + one, 0..0] {
        let refused = device.open_queue_pair(&UnitSet::from(range.clone())).map(drop);
        assert!(matches!(refused, Err(OpenError::Geometry(_))), "{range:?}: {refused:?}");
    }
    drop(rest);
    device.open_queue_pair(&UnitSet::from(one..2 * one)).unwrap();
}

fn a_queue_pair_drives_units_that_are_not_neighbours(fixture: Fixture) {
    let device = fixture.open();
    let one = fixture.together;
    let outer: UnitSet = (0..one).chain(2 * one..3 * one).collect();
    let inner = UnitSet::from(one..2 * one);
    let mut drivers =
        [&outer, &inner].map(|units| Driver::new(device.open_queue_pair(units).unwrap()));
    assert_eq!(drivers[0].queue.units(), &outer);
    for shared in [outer.clone(), inner.clone(), UnitSet::from(2 * one..3 * one)] {
        let refused = device.open_queue_pair(&shared).map(drop).unwrap_err().to_string();
        assert!(refused.contains("which have a queue pair"), "{refused}");
    }

    let geometry = drivers[0].geometry();
    let of_unit = |unit| rows_of(&geometry, (unit, geometry.dies - 1, 2), 0, 3);
    let contents =
        |unit, driver: &Driver| pattern(100 + u64::from(unit), driver.target_bytes(&of_unit(unit)));
    for (driver, others) in drivers.iter_mut().zip([&inner, &outer]) {
        for unit in driver.queue.units().clone().iter() {
            driver.erase(of_unit(unit)).unwrap();
            let bytes = contents(unit, driver);
            driver.program(of_unit(unit), &bytes).unwrap();
        }
        for unit in others {
            let refused = driver.erase(of_unit(unit));
            assert!(matches!(refused, Err(DeviceError::OutOfRange(_))), "{unit}: {refused:?}");
        }
    }
    let last = 3 * one - 1;
    drivers[0].mark_bad(Target { planes: 1, blocks: [1; 4], ..of_unit(last) }).unwrap();
    for unit in 0..last {
        assert_eq!(drivers[0].queue.bad_blocks(UnitId(unit)), [], "unit {unit}");
    }
    let bad = [(geometry.dies - 1, 0, 1)];
    assert_eq!(drivers[0].queue.bad_blocks(UnitId(last)), bad);
    drop((drivers, device));

    let mut driver = fixture.drive();
    for unit in 0..3 * one {
        assert_eq!(driver.read(of_unit(unit)).unwrap(), contents(unit, &driver), "unit {unit}");
    }
    assert_eq!(driver.queue.bad_blocks(UnitId(last)), bad);
}

fn a_unit_that_is_given_up_can_be_opened_while_its_queue_pair_lives(fixture: Fixture) {
    let device = fixture.open();
    let (one, units) = (fixture.together, device.info().units);
    let (moved, all) = (UnitSet::from(0..one), UnitSet::from(0..units));
    let open = |units: &UnitSet| device.open_queue_pair(units).map(Driver::new);
    let mut first = open(&all).unwrap();
    let geometry = first.geometry();
    let rows = |unit, rows| rows_of(&geometry, (unit, geometry.dies - 1, 2), 0, rows);
    let contents = |seed, target: &Target, driver: &Driver| {
        pattern(seed + u64::from(target.unit.0), driver.target_bytes(target))
    };
    let fill = |driver: &mut Driver, target: Target, seed| {
        driver.erase(target).unwrap();
        let bytes = contents(seed, &target, driver);
        driver.program(target, &bytes).unwrap();
    };
    all.iter().for_each(|unit| fill(&mut first, rows(unit, 2), 100));
    first.mark_bad(Target { planes: 1, blocks: [1; 4], ..rows(0, 1) }).unwrap();
    for unit in &moved {
        assert!(open(&moved).is_err(), "units of a queue pair are opened together");
        first.queue.give_up(UnitId(unit));
        let refused = first.erase(rows(unit, 1));
        assert!(matches!(refused, Err(DeviceError::OutOfRange(_))), "{refused:?}");
    }
    assert_eq!(first.queue.units(), &all, "the positions of units stay");

    let mut second = open(&moved).unwrap();
    assert!(open(&all).is_err());
    assert_eq!(second.queue.bad_blocks(UnitId(0)), [(geometry.dies - 1, 0, 1)]);
    for unit in &moved {
        let before = rows(unit, 2);
        assert_eq!(second.read(before).unwrap(), contents(100, &before, &second));
        fill(&mut second, rows(unit, 4), 200);
    }
    let last = units - 1;
    fill(&mut first, rows(last, 3), 300);
    drop(second);
    let mut third = open(&moved).unwrap();
    for unit in &moved {
        let target = rows_of(&geometry, (unit, geometry.dies - 1, 2), 4, 1);
        let bytes = contents(200, &target, &third);
        third.program(target, &bytes).unwrap();
    }
    drop(third);
    // The first queue pair ends last, and changes nothing of what it gave up.
    drop((first, device));

    let mut driver = fixture.drive();
    for (unit, count, seed) in [(0, 4, 200), (one - 1, 4, 200), (one, 2, 100), (last, 3, 300)] {
        let target = rows(unit, count);
        assert_eq!(driver.read(target).unwrap(), contents(seed, &target, &driver), "unit {unit}");
    }
    let later = rows_of(&geometry, (0, geometry.dies - 1, 2), 4, 1);
    assert_eq!(driver.read(later).unwrap(), contents(200, &later, &driver));
}

fn a_damaged_label_copy_is_repaired_and_two_are_refused(fixture: Fixture) {
    let uuid = fixture.open().info().uuid;
    fixture.flip_byte(70);
    let device = fixture.open();
    assert!(device.info().detail.contains("label copy A"), "{}", device.info().detail);
    assert_eq!(device.info().uuid, uuid);
    drop(device);
    let device = fixture.open();
    assert!(device.info().detail.contains("label copy A"), "nothing is written by an opening");
    device.mend_label().unwrap();
    drop(device);
    assert!(!fixture.open().info().detail.contains("label copy"));
    fixture.flip_byte(70);
    fixture.flip_byte((512 << 10) + 70);
    assert!(matches!(fixture.try_open(), Err(OpenError::DamagedLabel { .. })));
    for offset in [0, 512 << 10] {
        let file = std::fs::OpenOptions::new().write(true).open(&fixture.path).unwrap();
        file.write_all_at(b"something else", offset).unwrap();
    }
    assert!(matches!(fixture.try_open(), Err(OpenError::NotADevice { .. })));
}

fn a_full_queue_gives_the_command_back(fixture: Fixture) {
    let mut driver = fixture.drive();
    let (target, bytes) = programmed(&mut driver, 1, 9);
    let reads = 5 + 3 * usize::from(driver.geometry().die_queue_depth);
    let mut tags: Vec<_> = (0..reads)
        .map(|_| {
            let buffer = driver.pool().take(bytes.len());
            driver.submit(target, Operation::Read(buffer))
        })
        .collect();
    let mut completions = driver.drain();
    completions.sort_by_key(|completion| completion.tag);
    tags.sort();
    assert_eq!(completions.iter().map(|completion| completion.tag).collect::<Vec<_>>(), tags);
    for completion in completions {
        assert_eq!(completion.result, Ok(()));
        assert_eq!(buffer_of(completion)[..], bytes);
    }
    assert_eq!(driver.queue.wake(), Wake::Idle);
}

fn a_queue_pair_may_be_dropped_with_commands_under_way(fixture: Fixture) {
    let device = fixture.open();
    for round in 0..20 {
        let mut driver =
            Driver::new(device.open_queue_pair(&UnitSet::from(0..2 * fixture.together)).unwrap());
        let target = rows_of(&driver.geometry(), (0, 0, 1), 0, 8);
        driver.submit(target, Operation::Erase);
        let mut completions = Vec::new();
        if round % 2 == 0 {
            driver.queue.poll(driver.now, &mut completions);
        }
        let other = rows_of(&driver.geometry(), (1, 0, 1), 0, 4);
        let buffer = driver.pool().take(driver.target_bytes(&other));
        driver.submit(other, Operation::Read(buffer));
        if round % 3 == 0 {
            driver.queue.poll(driver.now, &mut completions);
        }
    }
}

macro_rules! conformance {
    ($backend:ident, $fixture:expr; $($case:ident)*) => {
        mod $backend {
            use super::*;
            $(#[test] fn $case() { super::$case($fixture) })*
        }
    };
}

macro_rules! conformance_of {
    ($($backend:ident: $fixture:expr;)*) => {$(
        conformance! { $backend, $fixture;
            what_is_programmed_reads_back
            durable_and_flushed_data_outlives_the_queue_pair
            an_erased_block_takes_new_data
            other_units_and_blocks_are_left_alone
            addresses_outside_are_refused_and_buffers_come_back
            the_rules_of_the_flash_are_kept_where_they_are_known
            bad_blocks_stay_bad_and_can_be_read
            one_process_at_a_time
            units_belong_to_one_queue_pair
            a_queue_pair_drives_units_that_are_not_neighbours
            a_unit_that_is_given_up_can_be_opened_while_its_queue_pair_lives
            a_damaged_label_copy_is_repaired_and_two_are_refused
            a_full_queue_gives_the_command_back
            a_queue_pair_may_be_dropped_with_commands_under_way
        }
    )*};
}

conformance_of! {
    file: Fixture::file(OpenOptions::default());
    model: Fixture::model(ModelConfig::model());
    model_of_chips_without_registers: Fixture::model(ModelConfig { unit: UnitKind::Chip, ..four_channels() });
    file_without_io_uring: Fixture::file(OpenOptions { io_uring: Use::Off, ..OpenOptions::default() });
    file_through_the_page_cache: Fixture::file(OpenOptions { direct: Use::Off, ..OpenOptions::default() });
    file_without_registered_buffers: Fixture::file(OpenOptions { registered_buffers: 0, ..OpenOptions::default() });
}
