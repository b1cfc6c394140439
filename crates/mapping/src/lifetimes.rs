//! Lifetimes of pages: a policy gives each page of the host, and each block that is collected, a
//! class, whose pages have write frontiers of their own. Nothing of it is on flash: after a mount
//! the lifetimes are learned anew.
//!
//! The age of a page is that of its block: a block that the host fills begins at its opening, and
//! one that collection fills is as old as the block whose pages it takes first.

use crate::map::page::NONE;
use softflash_policy::LifetimePolicy;
use softflash_policy::lifetime::{
    CHUNK_PAGES, Estimate, Moved, Write, class_of_moved, class_of_write,
};

/// The weight of the last block in the mean lifetime of blocks of class 0, as a divisor.
const SHORT_WEIGHT: u32 = 16;

/// The lifetimes of the pages of a drive, or of the mapping units of volumes.
#[derive(Debug)]
pub struct Lifetimes {
    policy: LifetimePolicy,
    /// Pages of the drive: the mean lifetime if all are written equally often.
    capacity: u32,
    /// Pages written by the host; it wraps.
    clock: u32,
    /// The clock when each block in use was opened.
    born: Vec<u32>,
    estimates: Vec<Estimate>,
    /// The mean age at which blocks of class 0 are collected.
    short: u32,
    /// The page after the last write, and its class.
    continued_by: (u32, u32),
    /// The clock at which each page becomes invalid, if the host foretells that; it wraps.
    ends: Vec<u32>,
}

impl Lifetimes {
    /// Of so many pages in so many blocks; `None` if the policy predicts none.
    pub fn new(policy: LifetimePolicy, capacity: u32, blocks: u32) -> Option<Lifetimes> {
        let chunks = capacity / CHUNK_PAGES + 1;
        (policy != LifetimePolicy::NONE).then(|| Lifetimes {
            policy,
            capacity,
            clock: 0,
            born: vec![0; blocks as usize],
            estimates: vec![Estimate::default(); chunks as usize],
            short: u32::MAX,
            continued_by: (NONE, 0),
            ends: match policy.is_foretold() {
                true => vec![0; capacity as usize],
                false => Vec::new(),
            },
        })
    }

    /// There are more pages and blocks. Fewer than before have no effect.
    pub fn grow(&mut self, capacity: u32, blocks: u32) {
        self.capacity = self.capacity.max(capacity);
        let blocks = self.born.len().max(blocks as usize);
        self.born.resize(blocks, self.clock);
        if self.are_foretold() {
            self.ends.resize(self.capacity as usize, 0);
        }
    }

    /// The class of a page that the host writes with a hint, whose last version lies in the block
    /// `old`, or nowhere.
    #[inline]
    pub fn class_of_write(&mut self, logical: u32, hint: u32, old: u32) -> u32 {
        self.clock = self.clock.wrapping_add(1);
        let age = (old != NONE).then(|| self.age_of(old));
        let (policy, (next, class)) = (self.policy, self.continued_by);
        let write = Write {
            age,
            clock: self.clock,
            continues: (next == logical).then_some(class),
            foretold: (hint > 0).then_some(hint),
            capacity: self.capacity,
            short: self.short,
        };
        let estimate = self.estimate_of(logical);
        let class = class_of_write(policy, &write, estimate);
        self.continued_by = (logical + 1, class);
        if let Some(end) = self.ends.get_mut(logical as usize) {
            // What is beyond the capacity is of the last class, whenever it ends.
            let unknown = self.capacity;
            *end = self.clock.wrapping_add(write.foretold.unwrap_or(unknown).min(unknown));
        }
        class
    }

    /// Whether the host foretells the lifetimes of pages.
    pub fn are_foretold(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Pages that the host will write before these are invalid, in the mean.
    pub fn left_to(&self, pages: impl Iterator<Item = u32>) -> Option<u32> {
        let (mut left, mut count) = (0, 0);
        for page in pages {
            let ends_in = self.ends.get(page as usize)?.wrapping_sub(self.clock);
            // One whose end has passed lives longer than was seen.
            left += u64::from(if ends_in <= self.capacity { ends_in } else { self.capacity });
            count += 1;
        }
        left.checked_div(count).map(|mean| mean as u32)
    }

    /// The class of the pages of a victim, which is of this class; `left` is what is
    /// [left to them](Lifetimes::left_to), if that is foretold.
    pub fn class_of_moved(&mut self, class: u32, victim: u32, left: Option<u32>) -> u32 {
        let age = self.age_of(victim);
        if class == 0 {
            self.short = match self.short {
                u32::MAX => age,
                mean => mean - mean / SHORT_WEIGHT + age / SHORT_WEIGHT,
            };
        }
        let Lifetimes { capacity, short, .. } = *self;
        let moved = Moved { class, age, foretold: left, capacity, short };
        class_of_moved(self.policy, &moved)
    }

    /// A block is opened, to take the pages of this victim or those of the host.
    pub fn opened(&mut self, block: u32, victim: u32) {
        self.born[block as usize] = match victim {
            NONE => self.clock,
            victim => self.born[victim as usize],
        };
    }

    /// What is kept of the neighbourhood of a page. Volumes may have more logical pages than
    /// their flash has room for.
    #[inline]
    fn estimate_of(&mut self, logical: u32) -> &mut Estimate {
        let chunk = (logical / CHUNK_PAGES) as usize;
        if chunk >= self.estimates.len() {
            self.estimates.resize(chunk + 1, Estimate::default());
        }
        &mut self.estimates[chunk]
    }

    fn age_of(&self, block: u32) -> u32 {
        self.clock.wrapping_sub(self.born[block as usize])
    }

    /// Memory of the tables, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let born = self.born.capacity() * size_of::<u32>();
        let ends = self.ends.capacity() * size_of::<u32>();
        (born + ends + self.estimates.capacity() * size_of::<Estimate>()) as u64
    }
}
