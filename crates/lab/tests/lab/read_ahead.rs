//! Tests of reads through a page cache: they return the same bytes, in windows, and read one window
//! too many if no read continues. In the small array a page takes 10 us on the bus and 50 to read.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use softflash_base::UnitSet;
use softflash_base::random::Rng;
use softflash_device::{Device, DeviceError, ModelConfig, ModelDevice, Operation};
use softflash_lab::host::ReadAhead;
use softflash_testing::driver::{Driver, pattern, target};
use std::sync::Arc;

const PAGE: usize = 4096;
const US: u64 = 1000;
/// Pages of a window.
const WINDOW: u32 = 2;
/// Pages that are written to a block.
const WRITTEN: u32 = 12;

/// Two blocks of two units with data, behind windows of two pages.
fn filled() -> (Arc<ModelDevice>, Driver) {
    let model = Arc::new(ModelDevice::in_memory(ModelConfig::small()).unwrap());
    let inner: Arc<dyn Device> = Arc::clone(&model) as Arc<dyn Device>;
    let cached = ReadAhead::new(inner, WINDOW * PAGE as u32);
    let mut driver = Driver::new(cached.open_queue_pair(&UnitSet::from(0..2)).unwrap());
    for (unit, block) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        driver.erase(target(unit, block, 0, 1)).unwrap();
        for page in 0..WRITTEN {
            let bytes = pattern(seed(unit, block, page), PAGE);
            driver.program(target(unit, block, page, 1), &bytes).unwrap();
        }
    }
    (model, driver)
}

fn seed(unit: u16, block: u32, page: u32) -> u64 {
    u64::from(unit) * 1000 + u64::from(block) * 100 + u64::from(page)
}

/// Pages that have crossed the first channel since `before_ns`.
fn pages_read(model: &ModelDevice, before_ns: u64) -> u64 {
    (model.busy_times().channels_ns[0] - before_ns) / (10 * US)
}

#[test]
fn a_read_goes_out_in_windows_two_ahead_and_one_too_many() {
    let (model, mut driver) = filled();
    let before_ns = model.busy_times().channels_ns[0];
    let began = driver.now.0;
    driver.read(target(0, 0, 0, 6)).unwrap();
    let took_ns = driver.now.0 - began;
    // Three windows of the read, and one more, which may still be under way.
    assert_eq!(pages_read(&model, before_ns), 8);
    let plain = Arc::new(ModelDevice::in_memory(ModelConfig::small()).unwrap());
    let mut direct = Driver::new(plain.open_queue_pair(&UnitSet::from(0..2)).unwrap());
    direct.erase(target(0, 0, 0, 1)).unwrap();
    for page in 0..WRITTEN {
        direct.program(target(0, 0, page, 1), &pattern(0, PAGE)).unwrap();
    }
    let before_ns = plain.busy_times().channels_ns[0];
    let began = direct.now.0;
    direct.read(target(0, 0, 0, 6)).unwrap();
    assert_eq!(pages_read(&plain, before_ns), 6);
    assert!(took_ns > direct.now.0 - began, "windows cost time: {took_ns} ns");
}

#[test]
fn a_small_read_goes_out_as_it_is_and_the_one_behind_it_begins_to_read_ahead() {
    let (model, mut driver) = filled();
    let before_ns = model.busy_times().channels_ns[0];
    driver.read(target(0, 0, 1, 2)).unwrap();
    driver.read(target(0, 0, 5, 1)).unwrap();
    assert_eq!(pages_read(&model, before_ns), 3);
    let read = driver.read(target(0, 0, 6, 1)).unwrap();
    assert!(read == pattern_of(0, 0, 6, 1));
    // Two windows of two pages.
    assert_eq!(pages_read(&model, before_ns), 7);
}

#[test]
fn a_read_that_goes_on_finds_what_was_read_ahead() {
    let (model, mut driver) = filled();
    let before_ns = model.busy_times().channels_ns[0];
    for first in (0..WRITTEN).step_by(3) {
        let read = driver.read(target(0, 0, first, 3)).unwrap();
        assert!(read == pattern_of(0, 0, first, 3));
    }
    // The whole block, once, and nothing after its end.
    assert_eq!(pages_read(&model, before_ns), u64::from(WRITTEN));
}

fn pattern_of(unit: u16, block: u32, first: u32, pages: u32) -> Vec<u8> {
    (first..first + pages).flat_map(|page| pattern(seed(unit, block, page), PAGE)).collect()
}

#[test]
fn many_reads_at_a_time_bring_what_was_written() {
    let (_, mut driver) = filled();
    let mut rng = Rng::seeded(5);
    for _ in 0..200 {
        let mut asked = Vec::new();
        for _ in 0..1 + rng.below(12) {
            let (unit, block) = (rng.below(2) as u16, rng.below(2) as u32);
            let first = rng.below(u64::from(WRITTEN)) as u32;
            let pages = 1 + rng.below(u64::from(WRITTEN - first)) as u32;
            let buffer = driver.pool().take(pages as usize * PAGE);
            let tag = driver.submit(target(unit, block, first, pages), Operation::Read(buffer));
            asked.push((tag, pattern_of(unit, block, first, pages)));
        }
        let mut ended = driver.drain();
        assert_eq!(ended.len(), asked.len());
        for (tag, wanted) in asked {
            let place = ended.iter().position(|completion| completion.tag == tag).unwrap();
            let completion = ended.swap_remove(place);
            completion.result.unwrap();
            assert!(completion.buffer.unwrap()[..] == wanted[..], "{tag:?}");
        }
    }
}

#[test]
fn what_was_read_ahead_is_forgotten_when_the_block_changes() {
    let (_, mut driver) = filled();
    driver.read(target(0, 0, 0, 6)).unwrap();
    driver.erase(target(0, 0, 0, 1)).unwrap();
    let erased = driver.read(target(0, 0, 6, 2));
    assert!(matches!(erased, Err(DeviceError::Erased { .. })), "{erased:?}");
    for page in 0..8 {
        driver.program(target(0, 0, page, 1), &pattern(u64::from(page), PAGE)).unwrap();
    }
    let wanted: Vec<u8> = (6..8).flat_map(|page| pattern(page, PAGE)).collect();
    assert!(driver.read(target(0, 0, 6, 2)).unwrap() == wanted);
}
