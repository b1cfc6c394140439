//! Flash that blocks are placed on: which units take a block, and which can be trusted to.

use super::placement::{Candidate, Placement, PlacementKind};
use super::redundancy::Redundancy;
use super::stock::Copies;
use super::tag::{self, Tag};
use crate::driver::Flash;
use crate::error::{Result, StoreError};
use smallvec::SmallVec;
use softflash_device::DeviceError;
use softflash_ftl::{FtlError, Hint, SpaceAccount};
use std::cell::{Cell, RefCell};

/// Commands that the operating system fails, one after the other, until a unit is taken for lost.
const ERRORS_OF_LOST_UNIT: u32 = 16;

/// What is known of a unit.
#[derive(Default)]
struct Unit {
    /// Blocks being written to it: load that its queue does not show yet.
    writers: Cell<u32>,
    /// Nothing that it has can be read.
    is_lost: Cell<bool>,
    /// Failures since the last success.
    errors: Cell<u32>,
}

/// Flash that blocks are placed on.
pub(super) struct Shelf {
    pub(super) flash: Flash,
    redundancy: Redundancy,
    units: Vec<Unit>,
    placement: RefCell<Box<dyn Placement>>,
}

impl Shelf {
    pub(super) fn new(flash: Flash, redundancy: Redundancy) -> Shelf {
        let units = flash.units().map(|_| Unit::default()).collect();
        let placement = RefCell::new(PlacementKind::default().policy());
        Shelf { flash, redundancy, units, placement }
    }

    pub(super) fn place_by(&self, placement: PlacementKind) {
        *self.placement.borrow_mut() = placement.policy();
    }

    fn unit(&self, unit: u16) -> Option<&Unit> {
        self.units.get(usize::from(unit.checked_sub(self.flash.units().start)?))
    }

    /// Whether nothing on the unit can be read.
    pub(super) fn is_lost(&self, unit: u16) -> bool {
        self.unit(unit).is_some_and(|unit| unit.is_lost.get())
    }

    /// Units that were lost since the mount.
    pub(super) fn lost_units(&self) -> u64 {
        self.flash.units().filter(|unit| self.is_lost(*unit)).count() as u64
    }

    /// Units that take blocks: one that is worn out can only be read.
    fn serving(&self) -> impl Iterator<Item = u16> {
        let serves = |unit: &u16| !self.is_lost(*unit) && !self.flash.space(*unit).is_worn_out();
        self.flash.units().filter(serves)
    }

    /// Why no unit is to be had.
    pub(super) fn lack_of_space(&self) -> StoreError {
        let left = self.flash.units().filter(|unit| !self.is_lost(*unit));
        let spaces: Vec<_> = left.map(|unit| self.flash.space(unit)).collect();
        if !spaces.iter().all(SpaceAccount::is_worn_out) {
            return StoreError::OutOfSpace;
        }
        let bad = spaces.iter().map(|space| space.bad).sum();
        StoreError::WornOut { bad, total: spaces.iter().map(SpaceAccount::total).sum() }
    }

    /// Whether what is written survives a unit: not where a single one is left.
    pub(super) fn is_redundant(&self) -> bool {
        self.redundancy.is_some() && self.serving().nth(1).is_some()
    }

    /// Whether a new block that should have several copies gets them.
    pub(super) fn takes_copies(&self) -> bool {
        self.is_redundant() && self.free_blocks() > 0
    }

    /// Patches that a new group may have: each needs a unit of its own, and so does their parity.
    pub(super) fn group_width(&self) -> usize {
        match self.redundancy {
            Redundancy::Parity { members } => {
                self.serving().count().saturating_sub(1).min(members.into())
            }
            _ => 0,
        }
    }

    /// Units beside those taken that have room for a block.
    pub(super) fn units_apart(&self, taken: &[u16]) -> usize {
        let has_room = |unit: &u16| self.flash.space(*unit).allocatable() > 0;
        self.serving().filter(|unit| !taken.contains(unit)).filter(has_room).count()
    }

    /// Blocks that find room.
    pub(super) fn free_blocks(&self) -> u32 {
        self.blocks_in(|unit| self.flash.space(unit).allocatable())
    }

    /// Blocks that would find room if there were none.
    pub(super) fn total_blocks(&self) -> u32 {
        self.blocks_in(|unit| {
            let space = self.flash.space(unit);
            space.total() - space.bad
        })
    }

    /// Blocks that so many superblocks are enough for, where no two copies lie on one unit. With parity fewer superblocks may
    /// do, but a group may be of one patch.
    fn blocks_in(&self, superblocks: impl Fn(u16) -> u32) -> u32 {
        if !self.is_redundant() {
            return self.serving().map(superblocks).sum();
        }
        let (sum, most) = self
            .serving()
            .map(superblocks)
            .fold((0, 0), |(sum, most), count| (sum + count, count.max(most)));
        (sum / 2).min(sum - most)
    }

    /// The unit for a copy of which others lie on `taken`.
    fn choose_unit(&self, taken: &[u16]) -> Option<u16> {
        let candidate = |unit: u16| Candidate {
            unit,
            load: self.flash.load(unit) + self.unit(unit).map_or(0, |unit| unit.writers.get()),
            free: self.flash.space(unit).allocatable(),
        };
        let untaken = self.serving().filter(|unit| !taken.contains(unit));
        let mut candidates: Vec<Candidate> = untaken.map(candidate).collect();
        if self.redundancy.is_some() && taken.is_empty() {
            // A unit that has as much room as all others together must take a copy of each block, or its room is of no use.
            let room: u32 = candidates.iter().map(|candidate| candidate.free).sum();
            if let Some(roomy) = candidates.iter().copied().find(|c| 2 * c.free >= room) {
                candidates = vec![roomy];
            }
        }
        self.placement.borrow_mut().choose(&candidates)
    }

    /// Takes a superblock for each copy of a block, on different units, none of them among `taken`.
    pub(super) fn allocate(&self, tag: Tag, taken: &[u16], hint: Hint) -> Result<Copies> {
        let wanted = if self.is_redundant() { self.redundancy.copies_of(tag.kind) } else { 1 };
        let (mut copies, mut taken) = (Copies::new(), SmallVec::<[u16; 2]>::from_slice(taken));
        while copies.len() < usize::from(wanted) {
            let copy = (wanted > 1).then_some(copies.len() as u8);
            let allocated = match self.choose_unit(&taken) {
                None => Err(self.lack_of_space()),
                Some(unit) => {
                    taken.push(unit);
                    match self.flash.allocate(unit, tag::encode(Tag { copy, ..tag }), hint) {
                        Err(FtlError::NoSpace { .. }) => Err(self.lack_of_space()),
                        allocated => allocated.map_err(StoreError::from),
                    }
                }
            };
            match allocated {
                Ok(superblock) => copies.push(superblock),
                Err(error) => {
                    copies.iter().for_each(|copy| self.flash.release(copy));
                    return Err(error);
                }
            }
        }
        copies.iter().for_each(|copy| self.count_writer(copy.unit.0, 1));
        Ok(copies)
    }

    /// A block is being written to the unit, or no longer is.
    pub(super) fn count_writer(&self, unit: u16, by: i32) {
        if let Some(unit) = self.unit(unit) {
            unit.writers.set(unit.writers.get().saturating_add_signed(by));
        }
    }

    /// What came of a command. Returns whether the unit is found lost by it; only where something makes up for that.
    pub(super) fn note_outcome(&self, unit: u16, error: Option<&FtlError>) -> bool {
        let Some(known) = self.unit(unit).filter(|_| self.redundancy.is_some()) else {
            return false;
        };
        match error {
            None => known.errors.set(0),
            Some(FtlError::Device { error: DeviceError::DeadDie, .. }) => {
                known.errors.set(ERRORS_OF_LOST_UNIT);
            }
            Some(FtlError::Device { error: DeviceError::Io { .. }, .. }) => {
                known.errors.set(known.errors.get() + 1);
            }
            Some(_) => {}
        }
        let is_lost = known.errors.get() >= ERRORS_OF_LOST_UNIT && !self.is_lost(unit);
        if is_lost {
            tracing::error!(unit, "the unit is lost; what it had is written anew to others");
            known.is_lost.set(true);
        }
        is_lost
    }
}
