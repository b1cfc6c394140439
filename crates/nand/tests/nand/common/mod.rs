//! A test bench for an array.

#![allow(dead_code, reason = "every test file uses its own part of it")]
#![expect(clippy::unwrap_used, reason = "a failure here fails the test that called")]

use softflash_base::Time;
use softflash_nand::{
    Array, ArrayConfig, BlockAddress, CommandKind, DieCommand, DieIndex, FaultConfig, Finished,
    Refused, Storage, presets,
};

pub const US: u64 = 1000;
/// Times of the `small` preset.
pub const BUS: u64 = 10 * US;
pub const READ: u64 = 50 * US;
pub const LOWER: u64 = 200 * US;
pub const UPPER: u64 = 600 * US;
pub const ERASE: u64 = 2000 * US;

pub struct Rig {
    pub array: Array,
}

impl Rig {
    pub fn new(config: &ArrayConfig) -> Rig {
        Rig::with(config, Storage::TimingOnly, &FaultConfig::default())
    }

    pub fn with(config: &ArrayConfig, storage: Storage, faults: &FaultConfig) -> Rig {
        Rig { array: Array::new(config, storage, faults, 1).unwrap() }
    }

    /// An array that keeps data.
    pub fn ram() -> Rig {
        Rig::with(&presets::small(), Storage::Ram, &FaultConfig::default())
    }

    pub fn submit(&mut self, now: u64, command: DieCommand) -> Result<(), Refused> {
        self.array.submit(Time(now), &command, &[])
    }

    pub fn advance(&mut self, until: u64) -> Vec<Finished> {
        let mut finished = Vec::new();
        self.array.advance(Time(until), &mut finished);
        finished
    }

    pub fn drain(&mut self) -> Vec<Finished> {
        self.advance(u64::MAX)
    }

    /// Submits a command now, runs until the array is idle and returns the one completion.
    pub fn run(&mut self, command: DieCommand, data: &[u8]) -> Finished {
        let now = self.array.now();
        self.array.submit(now, &command, data).unwrap();
        let finished = self.drain();
        assert_eq!(finished.len(), 1);
        finished[0]
    }

    /// Programs the first `pages` pages of a block, in a store or without.
    pub fn fill(&mut self, die: u32, block: u32, pages: u32) {
        for page in 0..pages {
            let ended = self.run(program(0, die, block, page), &self.page(page as u8));
            assert!(ended.is_good(), "{ended:?}");
        }
    }

    /// A page of one byte's repetition.
    pub fn page(&self, byte: u8) -> Vec<u8> {
        vec![byte; self.array.geometry().page_bytes as usize]
    }

    /// Ends of the commands, by tag, in microseconds.
    pub fn ends_us(&mut self) -> Vec<(u64, u64)> {
        self.drain().iter().map(|ended| (ended.tag, ended.at.0 / US)).collect()
    }
}

pub fn read(tag: u64, die: u32, block: u32, page: u32) -> DieCommand {
    DieCommand::single(tag, DieIndex(die), CommandKind::Read, block, page)
}

pub fn program(tag: u64, die: u32, block: u32, page: u32) -> DieCommand {
    DieCommand::single(tag, DieIndex(die), CommandKind::Program, block, page)
}

pub fn erase(tag: u64, die: u32, block: u32) -> DieCommand {
    DieCommand::single(tag, DieIndex(die), CommandKind::Erase, block, 0)
}

pub fn block(die: u32, plane: u8, block: u32) -> BlockAddress {
    BlockAddress { die: DieIndex(die), plane, block }
}
