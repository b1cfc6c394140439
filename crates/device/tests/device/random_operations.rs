//! Random commands on every backend, checked against a copy of the written data in memory.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

use softflash_base::UnitSet;
use softflash_base::random::Rng;
use softflash_device::file::{FileFormat, OpenOptions, Use};
use softflash_device::model::UnitKind;
use softflash_device::{
    Device, ModelConfig, ModelFormat, Operation, Tag, Target, UnitGeometry, format_file,
    format_model, open_with,
};
use softflash_testing::driver::{Driver, buffer_of, pattern, rows_of};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

type Place = (u16, u8, u32);

/// The contents of each block; a missing block was never erased by the test.
#[derive(Default)]
struct Reference(BTreeMap<Place, Vec<u8>>);

struct Run {
    rng: Rng,
    driver: Driver,
    units: u16,
    reference: Reference,
    /// Reads in progress and their expected data.
    expected: BTreeMap<Tag, Vec<u8>>,
    touched: HashSet<Place>,
}

impl Run {
    fn place(&mut self, geometry: &UnitGeometry) -> Place {
        let unit = self.rng.below(u64::from(self.units)) as u16;
        let die = self.rng.below(u64::from(geometry.dies)) as u8;
        (unit, die, self.rng.below(u64::from(geometry.blocks_per_plane)) as u32)
    }

    /// Submits one random command on a block without a command in progress.
    fn step(&mut self) {
        let geometry = self.driver.geometry();
        let place = self.place(&geometry);
        if !self.touched.insert(place) {
            return;
        }
        let row_bytes = (u32::from(geometry.planes) * geometry.page_bytes) as usize;
        let written = self.reference.0.get(&place).map(|bytes| (bytes.len() / row_bytes) as u32);
        match (written, self.rng.below(10)) {
            (None, _) | (_, 0) => self.erase(rows_of(&geometry, place, 0, 1), place),
            (Some(rows), 1..=5) if rows < geometry.pages_per_block => {
                let most = (geometry.pages_per_block - rows).min(5);
                let count = 1 + self.rng.below(u64::from(most)) as u32;
                self.program(rows_of(&geometry, place, rows, count), place);
            }
            (Some(rows), _) if rows > 0 => {
                let first = self.rng.below(u64::from(rows)) as u32;
                let count = 1 + self.rng.below(u64::from((rows - first).min(6))) as u32;
                self.read(rows_of(&geometry, place, first, count), place, row_bytes);
            }
            _ => {}
        }
    }

    fn erase(&mut self, target: Target, place: Place) {
        self.driver.submit(target, Operation::Erase);
        self.reference.0.insert(place, Vec::new());
    }

    fn program(&mut self, target: Target, place: Place) {
        let bytes = pattern(self.rng.next_u64(), self.driver.target_bytes(&target));
        let mut data = self.driver.pool().take(bytes.len());
        data.copy_from_slice(&bytes);
        let durable = self.rng.chance(0.05);
        self.driver.submit(target, Operation::Program { data, durable });
        self.reference.0.entry(place).or_default().extend(bytes);
    }

    fn read(&mut self, target: Target, place: Place, row_bytes: usize) {
        let start = target.page as usize * row_bytes;
        let len = target.rows as usize * row_bytes;
        let buffer = self.driver.pool().take(len);
        let tag = self.driver.submit(target, Operation::Read(buffer));
        self.expected.insert(tag, self.reference.0[&place][start..start + len].to_vec());
    }

    /// Waits for all commands and compares the data read.
    fn settle(&mut self) {
        for completion in self.driver.drain() {
            assert_eq!(completion.result, Ok(()), "{:?}", completion.tag);
            if let Some(expected) = self.expected.remove(&completion.tag) {
                assert!(buffer_of(completion)[..] == expected[..], "wrong bytes");
            }
        }
        assert!(self.expected.is_empty(), "a read never completed");
        self.touched.clear();
    }
}

/// Replays a seed: opens the device three times, with 60 batches of commands each.
fn run(path: &Path, options: &OpenOptions, seed: u64) {
    let mut rng = Rng::seeded(seed);
    let mut reference = Reference::default();
    for _life in 0..3 {
        let device: Arc<dyn Device> = open_with(path, options.clone()).unwrap();
        let units = device.info().units;
        let mut run = Run {
            rng: rng.clone(),
            driver: Driver::new(device.open_queue_pair(&UnitSet::from(0..units)).unwrap()),
            units,
            reference,
            expected: BTreeMap::new(),
            touched: HashSet::new(),
        };
        for _batch in 0..60 {
            for _ in 0..1 + run.rng.below(30) {
                run.step();
            }
            run.settle();
        }
        (rng, reference) = (run.rng, run.reference);
    }
}

/// `SOFTFLASH_SEED` replays one seed.
fn seeds() -> Vec<u64> {
    match std::env::var("SOFTFLASH_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..4).collect(),
    }
}

fn run_all(format: impl Fn(&Path), options: &OpenOptions) {
    for seed in seeds() {
        println!("replay with SOFTFLASH_SEED={seed}");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("device");
        format(&path);
        run(&path, options, seed);
    }
}

fn file(path: &Path) {
    let format =
        FileFormat { units: 3, superblock_bytes: 128 << 10, ..FileFormat::new(8 << 20, 0xabcd) };
    format_file(path, &format).unwrap();
}

fn model(path: &Path, config: ModelConfig) {
    format_model(path, &ModelFormat { config, force: false, uuid: 1 }).unwrap();
}

#[test]
fn the_file_device_returns_what_was_written() {
    run_all(file, &OpenOptions::default());
}

#[test]
fn the_file_device_without_io_uring_returns_what_was_written() {
    run_all(file, &OpenOptions { io_uring: Use::Off, ..OpenOptions::default() });
}

#[test]
fn the_model_returns_what_was_written() {
    run_all(|path| model(path, ModelConfig::small()), &OpenOptions::default());
}

#[test]
fn the_model_with_chips_registers_and_suspend_returns_what_was_written() {
    let config = || {
        let mut config = ModelConfig { unit: UnitKind::Chip, ..ModelConfig::model() };
        config.array.geometry.blocks_per_plane = 6;
        config.array.geometry.pages_per_block = 24;
        config
    };
    run_all(|path| model(path, config()), &OpenOptions::default());
}
