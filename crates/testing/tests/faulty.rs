//! The decorator fails what it was told to, and passes everything else on untouched.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

use softflash_base::{UnitId, UnitSet};
use softflash_device::{Device, DeviceError, ModelConfig, ModelDevice, Operation, Wake};
use softflash_testing::driver::{Driver, buffer_of, pattern, target};
use softflash_testing::faulty::{Faults, FaultyDevice, FaultyQueuePair, OperationKind};
use std::sync::Arc;

fn faulty() -> (Driver, Faults) {
    let device = ModelDevice::in_memory(ModelConfig::small()).unwrap();
    let faults = Faults::default();
    let queue = device.open_queue_pair(&UnitSet::from(0..2)).unwrap();
    (Driver::new(Box::new(FaultyQueuePair::new(queue, faults.clone()))), faults)
}

#[test]
fn the_nth_command_of_a_kind_fails_once_and_does_not_reach_the_device() {
    let (mut driver, faults) = faulty();
    faults.fail_nth(2, OperationKind::Program, DeviceError::ProgramFailed);
    let page = |page| target(0, 0, page, 1);
    driver.program(page(0), &pattern(0, 4096)).unwrap();
    driver.read(page(0)).unwrap();
    assert_eq!(driver.program(page(1), &pattern(1, 4096)), Err(DeviceError::ProgramFailed));
    assert_eq!(driver.read(page(1)), Err(DeviceError::Erased { page: 1 }));
    driver.program(page(1), &pattern(2, 4096)).unwrap();
    assert_eq!(driver.read(page(1)).unwrap(), pattern(2, 4096));
    assert_eq!((faults.commands_failed(), faults.commands_seen()), (1, 6));
}

#[test]
fn a_block_can_be_made_unreadable_and_healed() {
    let (mut driver, faults) = faulty();
    let (sick, well) = (target(1, 3, 0, 1), target(1, 4, 0, 1));
    driver.program(sick, &pattern(1, 4096)).unwrap();
    driver.program(well, &pattern(2, 4096)).unwrap();
    faults.fail_block(UnitId(1), 3, OperationKind::Read, DeviceError::Uncorrectable);
    assert_eq!(driver.read(sick), Err(DeviceError::Uncorrectable));
    assert_eq!(driver.read(sick), Err(DeviceError::Uncorrectable));
    assert_eq!(driver.read(well).unwrap(), pattern(2, 4096));
    faults.clear();
    assert_eq!(driver.read(sick).unwrap(), pattern(1, 4096));
}

#[test]
fn a_failed_command_gives_its_buffer_back_at_the_next_poll() {
    let (mut driver, faults) = faulty();
    faults.fail_if(|_| Some(DeviceError::Io { errno: libc::EIO }));
    let mut data = driver.pool().take(4096);
    data.copy_from_slice(&pattern(3, 4096));
    driver.submit(target(0, 0, 0, 1), Operation::Program { data, durable: true });
    assert_eq!(driver.queue.wake(), Wake::Now);
    let completion = driver.drain().remove(0);
    assert_eq!(completion.result, Err(DeviceError::Io { errno: libc::EIO }));
    assert_eq!(buffer_of(completion)[..], pattern(3, 4096));
    assert_eq!(driver.queue.wake(), Wake::Idle);
}

#[test]
fn all_queue_pairs_of_a_faulty_device_share_its_faults() {
    let device = Arc::new(ModelDevice::in_memory(ModelConfig::small()).unwrap());
    let faults = Faults::default();
    let device = FaultyDevice::new(device, faults.clone());
    let mut drivers: Vec<_> = [0..1, 1..2]
        .map(|units| Driver::new(device.open_queue_pair(&UnitSet::from(units)).unwrap()))
        .into_iter()
        .collect();
    faults.fail_nth(2, OperationKind::Erase, DeviceError::EraseFailed);
    assert_eq!(drivers[0].erase(target(0, 0, 0, 0)), Ok(()));
    assert_eq!(drivers[1].erase(target(1, 0, 0, 0)), Err(DeviceError::EraseFailed));
    assert_eq!(device.info().units, 2);
}

#[test]
fn a_command_that_found_the_queue_full_counts_once() {
    let (mut driver, faults) = faulty();
    for block in 0..4 {
        driver.submit(target(0, block, 0, 0), Operation::Erase);
    }
    assert_eq!(driver.drain().len(), 4);
    assert_eq!(faults.commands_seen(), 4);
}
