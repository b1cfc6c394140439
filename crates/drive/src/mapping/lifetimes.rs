//! Lifetimes of pages: a policy gives each page of the host, and each block that is collected, a
//! class, whose pages have write frontiers of their own.
//!
//! The age of a page is that of its block: a block that the host fills begins at its opening, and
//! one that collection fills is as old as the block whose pages it takes first.

use crate::shape::Shape;
use crate::spec::PageMapped;
use softflash_mapping::NONE;
use softflash_policy::LifetimePolicy;
use softflash_policy::lifetime::{Estimate, Moved, Write, class_of_moved, class_of_write};

/// Pages that share an estimate, as a power of two.
const CHUNK_SHIFT: u32 = 8;

/// The weight of the last block in the mean lifetime of blocks of class 0, as a divisor.
const SHORT_WEIGHT: u32 = 16;

/// The lifetimes of the pages of a drive.
#[derive(Debug)]
pub(crate) struct Lifetimes {
    policy: LifetimePolicy,
    /// Pages of the drive.
    capacity: u32,
    /// Pages written by the host; it wraps.
    clock: u32,
    /// The clock when each block in use was opened.
    born: Vec<u32>,
    estimates: Vec<Estimate>,
    /// The mean age at which blocks of class 0 are collected.
    short: u32,
}

impl Lifetimes {
    /// Of a layout; `None` if it predicts none.
    pub(crate) fn new(layout: &PageMapped, shape: &Shape) -> Option<Lifetimes> {
        let chunks = (shape.logical_pages() >> CHUNK_SHIFT) as usize + 1;
        (layout.lifetime != LifetimePolicy::NONE).then(|| Lifetimes {
            policy: layout.lifetime,
            capacity: shape.logical_pages(),
            clock: 0,
            born: vec![0; shape.blocks_end() as usize],
            estimates: vec![Estimate::default(); chunks],
            short: u32::MAX,
        })
    }

    /// The class of a page that the host writes, whose last version lies in the block `old`, or
    /// nowhere.
    pub(crate) fn class_of_write(&mut self, logical: u32, old: u32) -> u32 {
        self.clock = self.clock.wrapping_add(1);
        let age = (old != NONE).then(|| self.age_of(old));
        let write = Write { age, capacity: self.capacity, short: self.short };
        class_of_write(self.policy, &write, &mut self.estimates[(logical >> CHUNK_SHIFT) as usize])
    }

    /// The class of the pages of a victim, which is of this class.
    pub(crate) fn class_of_moved(&mut self, class: u32, victim: u32) -> u32 {
        let age = self.age_of(victim);
        if class == 0 {
            self.short = match self.short {
                u32::MAX => age,
                mean => mean - mean / SHORT_WEIGHT + age / SHORT_WEIGHT,
            };
        }
        let moved = Moved { class, age, capacity: self.capacity, short: self.short };
        class_of_moved(self.policy, &moved)
    }

    /// A block is opened, to take the pages of this victim or those of the host.
    pub(crate) fn opened(&mut self, block: u32, victim: u32) {
        self.born[block as usize] = match victim {
            NONE => self.clock,
            victim => self.born[victim as usize],
        };
    }

    fn age_of(&self, block: u32) -> u32 {
        self.clock.wrapping_sub(self.born[block as usize])
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let born = self.born.capacity() * size_of::<u32>();
        (born + self.estimates.capacity() * size_of::<Estimate>()) as u64
    }
}
