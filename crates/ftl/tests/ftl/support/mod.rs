//! Support for the tests of the FTL: a strict flash in memory, and a rig that drives an FTL over
//! it.

#![allow(dead_code, unused_imports, reason = "every test binary uses a part")]

pub mod flash;
pub mod rig;

pub use flash::{Flash, FlashRef, Kind, Media};
pub use rig::{Rig, pattern, tag};

use softflash_base::Time;
use softflash_device::{Device, ModelConfig, ModelDevice, QueuePair, UnitGeometry};

/// The medium of an FTL; it survives power cuts.
pub trait Medium {
    /// A queue pair over all units.
    fn queue(&self) -> Box<dyn QueuePair>;

    /// Cuts the power. The queue pair cannot be used afterwards.
    fn cut(&self, now: Time, choices: &mut Choices);
}

impl Medium for FlashRef {
    fn queue(&self) -> Box<dyn QueuePair> {
        flash::FlashQueue::open(self, usize::MAX)
    }

    fn cut(&self, _now: Time, choices: &mut Choices) {
        self.borrow_mut().cut(choices);
    }
}

impl Medium for ModelDevice {
    fn queue(&self) -> Box<dyn QueuePair> {
        self.open_queue_pair(&self.info().all_units()).unwrap()
    }

    fn cut(&self, now: Time, choices: &mut Choices) {
        self.power_cut(now, choices.next()).unwrap();
    }
}

/// A small model of multi-level flash: 2 units of 2 dies of 2 planes that suspend for reads.
pub fn model(seed: u64, blocks_per_plane: u32) -> ModelConfig {
    let mut config = ModelConfig::model();
    config.seed = seed;
    let geometry = &mut config.array.geometry;
    geometry.channels = 2;
    geometry.blocks_per_plane = blocks_per_plane;
    geometry.pages_per_block = 8;
    config
}

/// A random number generator for tests; a seed determines all numbers.
pub struct Choices(u64);

impl Choices {
    pub fn new(seed: u64) -> Choices {
        Choices(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        (self.next() % u64::from(end.max(1))) as u32
    }

    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }
}

/// The seeds to test: the one in `SOFTFLASH_SEED`, or the first `SOFTFLASH_SEEDS`, or the first
/// `count`.
pub fn seeds(count: u64) -> Vec<u64> {
    let number = |name: &str| {
        let value = std::env::var(name).ok()?;
        Some(value.parse::<u64>().expect("seeds are numbers"))
    };
    match number("SOFTFLASH_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("SOFTFLASH_SEEDS").unwrap_or(count)).collect(),
    }
}

pub fn geometry(dies: u8, planes: u8, blocks_per_plane: u32, pages_per_block: u32) -> UnitGeometry {
    UnitGeometry {
        dies,
        planes,
        blocks_per_plane,
        pages_per_block,
        page_bytes: 4096,
        die_queue_depth: 1,
    }
}
