//! Tests of the host path: it adds its times to those computed by hand, and changes nothing else.
//! In the small array a page takes 10 us on the bus, 50 to read and 200 to program; the link takes
//! 8 us a page to the host and 16 to the device.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use softflash_base::UnitSet;
use softflash_base::random::Rng;
use softflash_device::{Device, ModelConfig, ModelDevice, Operation, Target};
use softflash_lab::host::{HostPath, HostPathConfig};
use softflash_testing::driver::{Driver, buffer_of, pattern, target};
use std::sync::Arc;

const US: u64 = 1000;

fn config() -> HostPathConfig {
    HostPathConfig {
        read_bytes_per_second: 512_000_000,
        write_bytes_per_second: 256_000_000,
        submit_ns: 3 * US,
        complete_ns: 2 * US,
        ..HostPathConfig::default()
    }
}

fn device(config: HostPathConfig) -> HostPath {
    HostPath::new(Arc::new(ModelDevice::in_memory(ModelConfig::small()).unwrap()), config)
}

fn submit(driver: &mut Driver, target: Target, program: bool) {
    let data = driver.pool().take(4096);
    let operation = match program {
        true => Operation::Program { data, durable: false },
        false => Operation::Read(data),
    };
    driver.submit(target, operation);
}

#[test]
fn a_command_takes_the_sum_of_software_link_and_flash() {
    let path = device(config());
    let mut driver = Driver::new(path.open_queue_pair(&UnitSet::from(0..2)).unwrap());
    submit(&mut driver, target(0, 0, 0, 1), true);
    assert_eq!(driver.drain()[0].finished_at.0, (3 + 16 + 10 + 200 + 2) * US);
    let began = driver.now.0;
    submit(&mut driver, target(0, 0, 0, 1), false);
    assert_eq!(driver.drain()[0].finished_at.0 - began, (3 + 50 + 10 + 8 + 2) * US);
    let began = driver.now.0;
    driver.submit(target(0, 1, 0, 1), Operation::Erase);
    assert_eq!(driver.drain()[0].finished_at.0 - began, (3 + 2000 + 2) * US);
    let traffic = path.traffic();
    assert_eq!((traffic.read_bytes, traffic.written_bytes), (4096, 4096));
    assert_eq!((traffic.read_busy_ns, traffic.write_busy_ns), (8 * US, 16 * US));
    assert_eq!((traffic.completions, traffic.interrupts), (3, 3));
}

#[test]
fn queue_pairs_share_the_link() {
    let path = device(config());
    let mut pairs = [0, 1]
        .map(|unit| Driver::new(path.open_queue_pair(&UnitSet::from(unit..unit + 1)).unwrap()));
    for (unit, driver) in (0..).zip(&mut pairs) {
        submit(driver, target(unit, 0, 0, 1), true);
    }
    let ends = pairs.each_mut().map(|driver| driver.drain()[0].finished_at.0);
    assert_eq!(ends, [231 * US, (231 + 16) * US], "the second page waits for the first");
}

#[test]
fn interrupts_announce_completions_together() {
    let path = device(HostPathConfig {
        completions_per_interrupt: 2,
        interrupt_wait_ns: 30 * US,
        ..HostPathConfig::default()
    });
    let mut driver = Driver::new(path.open_queue_pair(&UnitSet::from(0..2)).unwrap());
    for unit in 0..2 {
        submit(&mut driver, target(unit, 0, 0, 1), true);
    }
    let ends: Vec<u64> = driver.drain().iter().map(|end| end.finished_at.0).collect();
    assert_eq!(ends, [210 * US; 2]);
    submit(&mut driver, target(0, 0, 0, 1), false);
    assert_eq!(driver.drain()[0].finished_at.0, (210 + 60 + 30) * US, "it waits for company");
    assert_eq!((path.traffic().completions, path.traffic().interrupts), (3, 2));
}

/// Commands of all kinds at once, checked against the written data.
#[test]
fn data_and_order_survive() {
    for seed in 0..8 {
        let mut rng = Rng::seeded(seed);
        let interrupts = 1 + rng.below(4) as u32;
        let config = HostPathConfig {
            completions_per_interrupt: interrupts,
            interrupt_wait_ns: 50 * US,
            ..config()
        };
        let preset = if seed % 2 == 0 { ModelConfig::small() } else { ModelConfig::model() };
        let inner = ModelDevice::in_memory(preset).unwrap();
        let path = HostPath::new(Arc::new(inner), config);
        let mut driver = Driver::new(path.open_queue_pair(&UnitSet::from(0..2)).unwrap());
        let page_seed = |unit: u16, page: u32| u64::from(unit) << 32 | u64::from(page);
        for page in 0..8_u32 {
            for unit in 0..2 {
                let mut data = driver.pool().take(4096);
                data.copy_from_slice(&pattern(page_seed(unit, page), 4096));
                driver
                    .submit(target(unit, 0, page, 1), Operation::Program { data, durable: false });
                if page > 1 && rng.chance(0.5) {
                    let block = 1 + rng.below(4) as u32;
                    driver.submit(target(unit, block, 0, 1), Operation::Erase);
                }
            }
        }
        assert!(driver.drain().iter().all(|end| end.result.is_ok()), "seed {seed}");
        for page in 0..8 {
            for unit in 0..2 {
                let operation = Operation::Read(driver.pool().take(4096));
                let end = driver.run(target(unit, 0, page, 1), operation);
                assert!(end.result.is_ok());
                assert!(buffer_of(end)[..] == pattern(page_seed(unit, page), 4096)[..]);
            }
        }
    }
}
