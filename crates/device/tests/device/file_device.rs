//! Features of the file backend alone: formatting, discards, fallbacks and waiting.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

use rustix::fs::{FlockOperation, flock};
use softflash_base::{IoBuf, Time, UnitId, UnitSet};
use softflash_device::file::{Discard, FileFormat, HEADER_PAGES, OpenOptions, Use};
use softflash_device::{
    Access, Device, DeviceError, FileDevice, FormatError, GrowthError, OpenError, Operation,
    Target, Wake, format_file, inspect, open, open_with, settle_size,
};
use softflash_testing::driver::{Driver, buffer_of, pattern, target};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device");
    (directory, path)
}

fn small() -> FileFormat {
    FileFormat { units: 2, superblock_bytes: 64 << 10, ..FileFormat::new(4 << 20, 77) }
}

fn drive(path: &Path, options: OpenOptions) -> Driver {
    let device = FileDevice::open(path, options).unwrap();
    Driver::new(device.open_queue_pair(&device.info().all_units()).unwrap())
}

#[test]
fn completions_tell_the_queue_of_the_unit_and_the_time_until_they_are_polled() {
    for io_uring in [Use::Auto, Use::Off] {
        let (_directory, path) = place();
        format_file(&path, &small()).unwrap();
        let mut driver = drive(&path, OpenOptions { io_uring, ..OpenOptions::default() });
        driver.now = Time(1_000);
        for unit in [0, 0, 1, 0] {
            let buffer = driver.pool().take(4096);
            driver.submit(target(unit, 0, 0, 1), Operation::Read(buffer));
        }
        driver.submit(target(0, 0, 0, 1), Operation::Flush);
        driver.now = Time(1_700);
        let mut done = driver.drain();
        done.sort_by_key(|completion| completion.tag);
        let queues: Vec<u16> = done.iter().map(|completion| completion.queue).collect();
        assert_eq!(queues, [0, 1, 0, 2, 0]);
        assert!(done.iter().all(|completion| completion.service_ns == 700), "{done:?}");
        // The unit is idle again.
        let buffer = driver.pool().take(4096);
        let next = driver.run(target(0, 0, 0, 1), Operation::Read(buffer));
        assert_eq!((next.queue, next.service_ns), (0, 0));
    }
}

#[test]
fn a_device_is_as_large_as_asked_and_really_reserved() {
    let (_directory, path) = place();
    format_file(&path, &FileFormat::new(256 << 20, 5)).unwrap();
    let device = open(&path).unwrap();
    let info = device.info();
    assert_eq!((info.backend.as_str(), info.uuid, info.units), ("file", 5, 4));
    assert_eq!(info.geometry.pages_per_block, 2048 + HEADER_PAGES);
    assert_eq!((info.geometry.page_bytes, info.geometry.superblock_pages()), (4096, 2050));
    let data = info.geometry.unit_bytes() * 4;
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.len(), (1 << 20) + data);
    assert!(metadata.len() <= 256 << 20 && metadata.len() > 200 << 20);
    assert!(metadata.blocks() * 512 >= metadata.len(), "space is reserved, not promised");
}

#[test]
fn too_small_a_size_is_refused_with_the_least_that_works() {
    let (_directory, path) = place();
    let minimum = FileFormat::new(0, 1).minimum_bytes();
    let refused = format_file(&path, &FileFormat::new(minimum - 1, 1)).unwrap_err();
    assert!(refused.to_string().contains(&minimum.to_string()), "{refused}");
    assert!(!path.exists(), "nothing is left behind");
    format_file(&path, &FileFormat::new(minimum, 1)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), minimum);
}

#[test]
fn impossible_shapes_are_refused() {
    let (_directory, path) = place();
    for (units, superblock_bytes) in [(0, 64 << 10), (1, 0), (1, 5000), (1, 1 << 30)] {
        let format = FileFormat { units, superblock_bytes, ..small() };
        assert!(format_file(&path, &format).is_err(), "{format:?}");
        assert!(!path.exists());
    }
}

#[test]
fn a_full_file_system_is_named_and_nothing_is_left_behind() {
    let (_directory, path) = place();
    let refused = format_file(&path, &FileFormat::new(12 << 40, 1)).unwrap_err();
    assert!(matches!(refused, FormatError::NoSpace { .. }), "{refused}");
    assert!(!path.exists());
}

#[test]
fn an_existing_file_is_replaced_only_by_force_and_never_in_use() {
    let (directory, path) = place();
    fs::write(&path, "precious").unwrap();
    assert!(matches!(format_file(&path, &small()), Err(FormatError::Exists { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    let force = FileFormat { force: true, ..small() };
    format_file(&path, &force).unwrap();
    let device = open(&path).unwrap();
    assert!(matches!(format_file(&path, &force), Err(FormatError::Busy { .. })));
    drop(device);
    format_file(&path, &FileFormat { uuid: 78, ..force.clone() }).unwrap();
    assert_eq!(open(&path).unwrap().info().uuid, 78);
    let refused = format_file(directory.path(), &force).unwrap_err();
    assert!(matches!(refused, FormatError::WrongKind { .. }), "{refused}");
    let nowhere = directory.path().join("no/such/directory");
    assert!(matches!(format_file(&nowhere, &small()), Err(FormatError::Io { .. })));
}

#[test]
fn too_small_a_size_leaves_an_existing_file_alone() {
    let (_directory, path) = place();
    fs::write(&path, "precious").unwrap();
    let format = FileFormat { force: true, size_bytes: 4096, ..small() };
    assert!(matches!(format_file(&path, &format), Err(FormatError::TooSmall { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn another_lock_on_the_file_means_busy() {
    let (_directory, path) = place();
    format_file(&path, &small()).unwrap();
    let other = File::open(&path).unwrap();
    flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    assert!(matches!(open(&path), Err(OpenError::Busy { .. })));
}

#[test]
fn a_file_cut_short_is_no_device() {
    let (_directory, path) = place();
    format_file(&path, &small()).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(2 << 20).unwrap();
    let refused = open(&path).map(drop).unwrap_err();
    assert!(refused.to_string().contains("cut short"), "{refused}");
}

#[test]
fn erase_keeps_zeroes_or_gives_back_the_extent_as_configured() {
    for discard in [Discard::None, Discard::ZeroRange, Discard::Punch] {
        for io_uring in [Use::Auto, Use::Off] {
            let (_directory, path) = place();
            format_file(&path, &FileFormat { discard, ..small() }).unwrap();
            let mut driver = drive(&path, OpenOptions { io_uring, ..OpenOptions::default() });
            let neighbour = target(1, 2, 0, 18);
            let bytes = pattern(2, driver.target_bytes(&neighbour));
            driver.program(neighbour, &bytes).unwrap();
            let whole = target(1, 1, 0, 18);
            let old = pattern(1, driver.target_bytes(&whole));
            driver.program(whole, &old).unwrap();
            driver.run(whole, Operation::Flush).result.unwrap();
            let before = fs::metadata(&path).unwrap().blocks();
            driver.erase(target(1, 1, 7, 0)).unwrap();
            let after = driver.read(whole).unwrap();
            match discard {
                Discard::None => assert_eq!(after, old),
                _ => assert_eq!(after, vec![0; old.len()], "{discard:?}"),
            }
            let freed = (before - fs::metadata(&path).unwrap().blocks()) * 512;
            let expected = if discard == Discard::Punch { old.len() as u64 } else { 0 };
            assert_eq!(freed, expected, "{discard:?}");
            assert_eq!(driver.read(neighbour).unwrap(), bytes, "{discard:?}");
        }
    }
}

#[test]
fn sleeping_on_the_descriptor_is_enough() {
    let (_directory, path) = place();
    format_file(&path, &FileFormat::new(160 << 20, 9)).unwrap();
    let mut driver = drive(&path, OpenOptions::default());
    assert_eq!(driver.queue.wake(), Wake::Idle);
    let mut completions = Vec::new();
    for round in 0..200 {
        for unit in 0..4 {
            let target = target(unit, 0, 8 * round, 8);
            let data = driver.pool().take(driver.target_bytes(&target));
            driver.submit(target, Operation::Program { data, durable: round % 50 == 0 });
        }
        assert_eq!(driver.queue.wake(), Wake::Now, "nothing is started before the poll");
        driver.queue.poll(Time(round.into()), &mut completions);
        while driver.queue.wake() != Wake::Idle {
            driver.step(&mut completions);
        }
    }
    assert_eq!(completions.len(), 800);
    assert!(completions.iter().all(|completion| completion.result.is_ok()));
    assert!(driver.waits > 0, "the test slept at least once");
}

#[test]
fn without_io_uring_or_o_direct_the_device_says_so() {
    let (_directory, path) = place();
    format_file(&path, &small()).unwrap();
    let detail = |options| FileDevice::open(&path, options).unwrap().info().detail.clone();
    let default = OpenOptions::default();
    let told = detail(default.clone());
    assert!(told.starts_with("O_DIRECT, io_uring"), "{told}");
    let off = OpenOptions { io_uring: Use::Off, direct: Use::Off, ..default.clone() };
    let told = detail(off.clone());
    assert!(told.contains("io_uring is switched off") && told.contains("page cache"), "{told}");
    let mut driver = drive(&path, off);
    let buffer = driver.pool().take(4096);
    driver.submit(target(0, 0, 0, 1), Operation::Read(buffer));
    assert_eq!(driver.queue.wake(), Wake::Now);
}

#[test]
fn buffers_that_cannot_be_registered_still_serve() {
    let (_directory, path) = place();
    format_file(&path, &small()).unwrap();
    // More than a ring accepts.
    let options = OpenOptions {
        registered_buffers: 20_000,
        registered_buffer_bytes: 4096,
        ..OpenOptions::default()
    };
    let device = FileDevice::open(&path, options).unwrap();
    assert!(device.info().detail.contains("buffers not registered"), "{}", device.info().detail);
    let mut driver = Driver::new(device.open_queue_pair(&UnitSet::from(0..2)).unwrap());
    let bytes = pattern(3, 4096);
    driver.program(target(0, 0, 0, 1), &bytes).unwrap();
    assert_eq!(driver.read(target(0, 0, 0, 1)).unwrap(), bytes);
}

#[test]
fn buffers_from_anywhere_work() {
    let (_directory, path) = place();
    format_file(&path, &small()).unwrap();
    let device = FileDevice::open(&path, OpenOptions::default()).unwrap();
    let mut driver = Driver::new(device.open_queue_pair(&UnitSet::from(0..1)).unwrap());
    let other = device.open_queue_pair(&UnitSet::from(1..2)).unwrap();
    let bytes = pattern(4, 8192);
    driver.program(target(0, 0, 0, 2), &bytes).unwrap();
    let foreign = other.buffers().take(8192);
    assert!(foreign.registration().is_some(), "registered, with another ring");
    let mut whole = driver.pool().take(3 * 8192);
    let _front = whole.split_to(8192);
    for buffer in [foreign, whole.split_to(8192), IoBuf::zeroed(8192)] {
        let completion = driver.run(target(0, 0, 0, 2), Operation::Read(buffer));
        assert_eq!(completion.result, Ok(()));
        assert_eq!(buffer_of(completion)[..], bytes);
    }
}

#[test]
fn a_buffer_split_inside_a_page_is_refused() {
    let (_directory, path) = place();
    format_file(&path, &small()).unwrap();
    let mut driver = drive(&path, OpenOptions::default());
    let mut buffer = driver.pool().take(8192);
    let _front = buffer.split_to(512);
    buffer.truncate(4096);
    let completion = driver.run(target(0, 0, 0, 1), Operation::Read(buffer));
    assert!(matches!(completion.result, Err(DeviceError::RuleBroken(_))));
    assert_eq!(buffer_of(completion).len(), 4096);
}

#[test]
fn data_that_vanished_below_is_an_error_after_a_short_read() {
    for io_uring in [Use::Auto, Use::Off] {
        let (_directory, path) = place();
        format_file(&path, &small()).unwrap();
        let mut driver = drive(&path, OpenOptions { io_uring, ..OpenOptions::default() });
        let last = driver.geometry().blocks_per_plane - 1;
        let len = fs::metadata(&path).unwrap().len();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(len - 3 * 4096).unwrap();
        let short = driver.read(target(1, last, 10, 8));
        assert_eq!(short, Err(DeviceError::Io { errno: libc::EIO }), "{io_uring:?}");
        let gone = driver.read(target(1, last, 17, 1));
        assert_eq!(gone, Err(DeviceError::Io { errno: libc::EIO }), "{io_uring:?}");
        assert!(driver.read(target(1, last, 0, 15)).is_ok());
    }
}

#[test]
fn many_bad_blocks_are_recorded_together() {
    let (_directory, path) = place();
    format_file(&path, &small()).unwrap();
    let mut driver = drive(&path, OpenOptions::default());
    let blocks = driver.geometry().blocks_per_plane;
    for block in 0..blocks {
        driver.submit(Target { rows: 0, ..target(1, block, 0, 0) }, Operation::MarkBad);
    }
    assert!(driver.drain().iter().all(|completion| completion.result.is_ok()));
    drop(driver);
    let driver = drive(&path, OpenOptions::default());
    assert_eq!(driver.queue.bad_blocks(UnitId(1)).len(), blocks as usize);
    assert_eq!(driver.queue.bad_blocks(UnitId(0)).len(), 0);
}

#[test]
fn a_larger_device_has_units_beside_those_in_use() {
    let (_directory, path) = place();
    format_file(&path, &small()).unwrap();
    let device = open(&path).unwrap();
    let had = fs::metadata(&path).unwrap().len();
    let mut old = Driver::new(device.open_queue_pair(&device.info().all_units()).unwrap());
    old.program(target(0, 0, 0, 1), &pattern(1, 4096)).unwrap();
    let larger = device.enlarge(4).unwrap();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.len(), (1 << 20) + larger.info().geometry.unit_bytes() * 4);
    assert!(metadata.blocks() * 512 >= metadata.len(), "space is reserved, not promised");
    assert_eq!((device.info().units, larger.info().units), (2, 4));
    assert!(device.open_queue_pair(&UnitSet::from(2..4)).is_err(), "the old handle has two");
    assert!(larger.open_queue_pair(&UnitSet::from(1..3)).is_err(), "one of them is in use");
    let mut new = Driver::new(larger.open_queue_pair(&UnitSet::from(2..4)).unwrap());
    new.program(target(3, 0, 0, 1), &pattern(2, 4096)).unwrap();
    assert_eq!(inspect(&path).unwrap().units, 2, "not recorded yet");
    larger.record_units().unwrap();
    assert_eq!(inspect(&path).unwrap().units, 4);
    // Bad blocks of the old units are marked by the same label.
    old.mark_bad(target(1, 0, 0, 1)).unwrap();
    assert_eq!(inspect(&path).unwrap().units, 4);
    device.give_back_room().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), metadata.len(), "the label names these units");
    drop((old, new, device, larger));

    let device = open(&path).unwrap();
    assert_eq!(device.info().units, 4);
    let mut driver = Driver::new(device.open_queue_pair(&device.info().all_units()).unwrap());
    for (unit, seed) in [(0, 1), (3, 2)] {
        assert!(driver.read(target(unit, 0, 0, 1)).unwrap() == pattern(seed, 4096), "unit {unit}");
    }
    assert_eq!(driver.queue.bad_blocks(UnitId(1)), [(0, 0, 0)]);
    assert!(had < metadata.len());
}

#[test]
fn room_that_is_not_recorded_is_given_back() {
    let (_directory, path) = place();
    format_file(&path, &small()).unwrap();
    let had = fs::metadata(&path).unwrap().len();
    let bytes = || fs::metadata(&path).unwrap().len();
    let device = open(&path).unwrap();
    device.enlarge(3).unwrap();
    assert!(bytes() > had);
    device.give_back_room().unwrap();
    assert_eq!(bytes(), had);
    drop(device.enlarge(5).unwrap());
    drop(device);
    assert_eq!((settle_size(&path).unwrap().units, bytes()), (2, had), "also by the next process");
}

#[test]
fn a_device_that_cannot_grow_stays_as_it_is() {
    let (_directory, path) = place();
    format_file(&path, &small()).unwrap();
    let had = fs::metadata(&path).unwrap().len();
    let device = open(&path).unwrap();
    let refused = device.enlarge(1).err().unwrap().to_string();
    assert!(refused.contains("cannot be cut to 1"), "{refused}");
    let look = OpenOptions { access: Access::Look, ..OpenOptions::default() };
    drop(device);
    let looking = open_with(&path, look).unwrap();
    assert!(matches!(looking.enlarge(3), Err(GrowthError::ReadOnly)));
    drop(looking);
    assert_eq!(fs::metadata(&path).unwrap().len(), had);
}
