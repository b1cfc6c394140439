//! Classes of data without hints, by the lifetimes that a policy of the registry predicts.
//!
//! Collection always separates: its frames are full. Clients' data have a frame of each class only
//! where those fill, as a frame that is not full costs as much as one that is.

use softflash_base::cast;
use softflash_mapping::{Lifetimes, NONE};
use softflash_policy::LifetimePolicy;
use softflash_policy::lifetime::{MOST_CLASSES, classes};
use std::cell::{Cell, RefCell};

/// Mapping units that a frame of a class would have in the mean: with fewer the class has no frames
/// of its own.
const LEAST_FRAME_UNITS: u64 = 16;

/// Writes after which the shares of the classes count half.
const SHARE_WRITES: u32 = 1024;

/// Spare superblocks of a unit for each further class. Its open superblock is half empty in the
/// mean, so it takes a thirty-second of the spare space, and write amplification grows by as much.
const SPARE_OF_CLASS: u32 = 16;

/// The class of the data in a superblock that was opened before the mount, or takes data of several
/// classes.
const OF_SEVERAL: u8 = 1;

/// The predictions of a domain. Predicted classes are numbers of the policy.
pub(crate) struct Predicted {
    lifetimes: RefCell<Lifetimes>,
    /// The last class that has frontiers of its own; longer ones share them.
    last: u8,
    /// By superblock.
    blocks: RefCell<Vec<Block>>,
    /// Recent writes of each class.
    recent: RefCell<[u32; MOST_CLASSES as usize]>,
    /// Mapping units that clients wait for.
    outstanding: Cell<u32>,
}

/// What is known of the data in a superblock.
#[derive(Debug, Clone, Copy)]
struct Block {
    class: u8,
    /// Whether its age is already that of the data that were moved to it.
    has_age: bool,
}

impl Predicted {
    /// Of a domain of so many mapping units in so many superblocks, with so many spare ones in each
    /// unit; `None` if the policy predicts nothing.
    pub fn new(policy: LifetimePolicy, units: u32, blocks: u32, spare: u32) -> Option<Predicted> {
        let lifetimes = Lifetimes::new(policy, units, blocks)?;
        // One that takes moved data costs nothing, in place of the one for all of them.
        let last = number((classes(policy) - 1).min(1 + spare / SPARE_OF_CLASS));
        let before = Block { class: OF_SEVERAL.min(last), has_age: true };
        Some(Predicted {
            lifetimes: RefCell::new(lifetimes),
            last,
            blocks: RefCell::new(vec![before; cast::index(blocks)]),
            recent: RefCell::default(),
            outstanding: Cell::new(0),
        })
    }

    /// The domain has more mapping units and superblocks. Fewer than before have no effect.
    pub fn grow(&self, units: u32, blocks: u32) {
        self.lifetimes.borrow_mut().grow(units, blocks);
        let mut all = self.blocks.borrow_mut();
        let count = all.len().max(cast::index(blocks));
        all.resize(count, Block { class: OF_SEVERAL.min(self.last), has_age: true });
    }

    /// A client waits for so many mapping units, until the result is dropped.
    pub fn begin(&self, units: u32) -> Outstanding<'_> {
        self.outstanding.set(self.outstanding.get() + units);
        Outstanding { of: self, units }
    }

    /// The class of a mapping unit that a client writes, whose last version is in the superblock
    /// `old`, if there is one.
    pub fn of_write(&self, logical: u32, old: Option<u32>) -> u8 {
        let old = old.unwrap_or(NONE);
        let class = self.lifetimes.borrow_mut().class_of_write(logical, 0, old);
        let mut recent = self.recent.borrow_mut();
        recent[cast::index(class)] += 1;
        let writes: u32 = recent.iter().sum();
        let share = u64::from(recent[cast::index(class)]) * u64::from(self.outstanding.get());
        if writes >= 2 * SHARE_WRITES {
            recent.iter_mut().for_each(|count| *count /= 2);
        }
        match share >= LEAST_FRAME_UNITS * u64::from(writes) {
            true => number(class).min(self.last),
            false => 0,
        }
    }

    /// The class of the data of a superblock that is collected.
    pub fn of_moved(&self, victim: u32) -> u8 {
        let class = self.blocks.borrow()[cast::index(victim)].class;
        let class = self.lifetimes.borrow_mut().class_of_moved(class.into(), victim, None);
        number(class).min(self.last)
    }

    /// A superblock is opened for data of a class.
    pub fn opened(&self, block: u32, class: u8) {
        self.lifetimes.borrow_mut().opened(block, NONE);
        self.blocks.borrow_mut()[cast::index(block)] = Block { class, has_age: false };
    }

    /// A superblock is opened for data of several classes, or with hints.
    pub fn opened_for_several(&self, block: u32) {
        self.opened(block, OF_SEVERAL.min(self.last));
    }

    /// Data of a superblock are moved to another one. The age of the first of them is that of the
    /// other one.
    pub fn moved(&self, victim: u32, to: u32) {
        let block = &mut self.blocks.borrow_mut()[cast::index(to)];
        if !std::mem::replace(&mut block.has_age, true) {
            self.lifetimes.borrow_mut().opened(to, victim);
        }
    }

    /// Memory of the tables, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let blocks = self.blocks.borrow().capacity() * size_of::<Block>();
        self.lifetimes.borrow().memory_bytes() + cast::wide(blocks)
    }
}

/// Mapping units that a client waits for.
pub(crate) struct Outstanding<'a> {
    of: &'a Predicted,
    units: u32,
}

impl Drop for Outstanding<'_> {
    fn drop(&mut self) {
        let outstanding = self.of.outstanding.get();
        assert!(outstanding >= self.units, "{outstanding} units outstanding, {} end", self.units);
        self.of.outstanding.set(outstanding - self.units);
    }
}

fn number(class: u32) -> u8 {
    u8::try_from(class).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sepbit() -> Predicted {
        Predicted::new("sepbit".parse().unwrap(), 4096, 8, 64).unwrap()
    }

    #[test]
    fn classes_of_clients_have_frames_of_their_own_where_those_fill() {
        let predicted = sepbit();
        predicted.opened(0, 0);
        // Half of the writes replace versions that are as old as the first superblock, which is
        // collected at the age of 64 writes.
        for outstanding in [16, 64] {
            let _waits = predicted.begin(outstanding);
            let mut of_class = [0; 2];
            for write in 0..1024 {
                if write % 64 == 0 {
                    predicted.opened(1, 0);
                    predicted.opened(0, 0);
                }
                if write % 64 == 63 {
                    assert_eq!(predicted.of_moved(0), 2);
                }
                let old = (write % 2 == 0).then_some(1);
                of_class[usize::from(predicted.of_write(write, old))] += 1;
            }
            let has_two = of_class[1] > 400;
            assert_eq!(has_two, outstanding == 64, "{outstanding}: {of_class:?}");
        }
    }

    #[test]
    fn moved_data_are_as_old_as_they_were() {
        let predicted = sepbit();
        predicted.opened(0, 1);
        (0..100).for_each(|unit| {
            predicted.of_write(unit, None);
        });
        predicted.opened(1, 3);
        predicted.moved(0, 1);
        // The first data decide.
        predicted.opened(2, 1);
        predicted.moved(2, 1);
        predicted.opened(3, 0);
        predicted.of_write(0, None);
        // Superblocks of class 0 live for one write: 101 are more than 4 times 16.
        assert_eq!(predicted.of_moved(3), 2);
        assert_eq!(predicted.of_moved(1), 5);
        assert_eq!(predicted.of_moved(2), 3);
    }
}
