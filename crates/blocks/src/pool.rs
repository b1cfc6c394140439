//! A unit pool: flash that blocks are placed on, with the state of its units (serving, worn out,
//! lost).

use crate::directory::Copies;
use crate::error::{BlockError, Result};
use crate::placement::{Candidate, Placement};
use crate::redundancy::Redundancy;
use crate::tag::{self, Tag};
use smallvec::SmallVec;
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, UnitSet};
use softflash_device::DeviceError;
use softflash_flash::{Flash, UnitHealth};
use softflash_ftl::{FtlError, Hint, SpaceAccount, Superblock};
use softflash_policy::PlacementPolicy;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Bytes per append of a block that is written whole.
const PIECE_BYTES: usize = 1 << 20;

/// The state of a unit.
#[derive(Default)]
struct Unit {
    /// Blocks being written to it: load that its queue does not show.
    writers: Cell<u32>,
    /// None of its blocks can be read.
    is_lost: Cell<bool>,
    /// It takes no blocks: those that it has move to other units.
    is_draining: Cell<bool>,
    health: UnitHealth,
}

/// The greatest generation of a unit's superblocks, as the log records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitMark {
    /// The unit.
    pub unit: u16,
    /// The generation of a header on its flash.
    pub generation: u64,
}

/// Flash that blocks are placed on.
pub(crate) struct UnitPool {
    flash: Flash,
    redundancy: Redundancy,
    units: RefCell<Units>,
    placement: Placement,
}

/// The units of a pool. Others can join.
struct Units {
    ids: UnitSet,
    /// By the positions in `ids`.
    states: Vec<Rc<Unit>>,
}

impl UnitPool {
    pub(crate) fn new(flash: Flash, redundancy: Redundancy) -> UnitPool {
        let ids = flash.units();
        let states = ids.iter().map(|_| Rc::default()).collect();
        let units = RefCell::new(Units { ids, states });
        let placement = Placement::new(PlacementPolicy::LEAST_LOADED);
        UnitPool { flash, redundancy, units, placement }
    }

    /// The units of `other`, in which the pool has no blocks, take blocks from now on.
    ///
    /// # Errors
    /// Those of [`Flash::join`].
    pub(crate) fn join(&self, other: Flash) -> Result<()> {
        self.flash.join(other)?;
        let ids = self.flash.units();
        let state = |unit| self.unit(unit).unwrap_or_default();
        let states = ids.iter().map(state).collect();
        self.units.replace(Units { ids, states });
        Ok(())
    }

    /// Whether these units take blocks: not while theirs move to other units.
    pub(crate) fn set_draining(&self, units: &UnitSet, is_draining: bool) {
        for unit in units.iter().filter_map(|unit| self.unit(unit)) {
            unit.is_draining.set(is_draining);
        }
    }

    fn is_draining(&self, unit: u16) -> bool {
        self.unit(unit).is_some_and(|unit| unit.is_draining.get())
    }

    /// The units that are draining, or have been drained.
    pub(crate) fn draining(&self) -> UnitSet {
        self.ids().iter().filter(|unit| self.is_draining(*unit)).collect()
    }

    /// A drained unit leaves the pool. It takes no blocks from here on; its commands that are under
    /// way end first.
    ///
    /// # Errors
    /// Those of [`Flash::leave`]: the unit stays.
    pub(crate) async fn leave(&self, unit: u16) -> Result<()> {
        let left = self.flash.leave(unit);
        let ids = self.flash.units();
        let states = ids.iter().map(|unit| self.unit(unit).unwrap_or_default()).collect();
        self.units.replace(Units { ids, states });
        Ok(left.await?)
    }

    fn ids(&self) -> UnitSet {
        self.units.borrow().ids.clone()
    }

    /// The units that are not lost.
    fn left(&self) -> impl Iterator<Item = u16> {
        let ids = self.ids();
        (0..ids.len()).filter_map(move |place| ids.get(place)).filter(|unit| !self.is_lost(*unit))
    }

    pub(crate) fn flash(&self) -> &Flash {
        &self.flash
    }

    pub(crate) fn redundancy(&self) -> Redundancy {
        self.redundancy
    }

    pub(crate) fn place_by(&self, policy: PlacementPolicy) {
        self.placement.set(policy);
    }

    fn unit(&self, unit: u16) -> Option<Rc<Unit>> {
        let units = self.units.borrow();
        units.states.get(units.ids.position(unit)?).cloned()
    }

    /// Whether nothing on the unit can be read.
    pub(crate) fn is_lost(&self, unit: u16) -> bool {
        self.unit(unit).is_some_and(|unit| unit.is_lost.get())
    }

    /// The greatest generation of each unit, without lost units.
    pub(crate) fn marks(&self) -> Vec<UnitMark> {
        let mark = |unit| UnitMark { unit, generation: self.flash.newest_generation(unit) };
        self.left().map(mark).collect()
    }

    /// Units that were lost since the mount.
    pub(crate) fn lost_units(&self) -> u64 {
        self.ids().iter().filter(|unit| self.is_lost(*unit)).count() as u64
    }

    /// Units that take blocks: a worn-out one is read-only, and the blocks of a draining one move
    /// to the others.
    fn serving(&self) -> impl Iterator<Item = u16> {
        self.left()
            .filter(|unit| !self.flash.space(*unit).is_worn_out())
            .filter(|unit| !self.is_draining(*unit))
    }

    /// The error where no unit takes a block.
    pub(crate) fn lack_of_space(&self) -> BlockError {
        match self.spaces_left().all(|space| space.is_worn_out()) {
            true => self.wear(),
            false => BlockError::OutOfSpace,
        }
    }

    /// The error where no unit takes a block that room is kept for.
    pub(crate) fn lack_of_kept_space(&self) -> BlockError {
        match self.spaces_left().any(|space| space.bad > 0) {
            true => self.wear(),
            false => BlockError::OutOfSpace,
        }
    }

    fn wear(&self) -> BlockError {
        let (bad, total) = self
            .spaces_left()
            .fold((0, 0), |(bad, total), space| (bad + space.bad, total + space.total()));
        BlockError::WornOut { bad, total }
    }

    /// The space of the units that are not lost.
    fn spaces_left(&self) -> impl Iterator<Item = SpaceAccount> {
        self.left().map(|unit| self.flash.space(unit))
    }

    /// Whether a new block survives the loss of a unit: not where a single unit is left.
    pub(crate) fn is_redundant(&self) -> bool {
        self.redundancy.is_some() && self.serving().nth(1).is_some()
    }

    /// Whether a new block gets all the copies it should have.
    pub(crate) fn takes_copies(&self) -> bool {
        self.is_redundant() && self.free_blocks() > 0
    }

    /// Patches that a new group may have: each needs a unit of its own, and so does their parity.
    pub(crate) fn group_width(&self) -> usize {
        match self.redundancy {
            Redundancy::Parity { members } => {
                self.serving().count().saturating_sub(1).min(members.into())
            }
            _ => 0,
        }
    }

    /// The number of units, except those taken, that have room for a block.
    pub(crate) fn units_besides(&self, taken: &[u16]) -> usize {
        let has_room = |unit: &u16| self.flash.space(*unit).allocatable() > 0;
        self.serving().filter(|unit| !taken.contains(unit)).filter(has_room).count()
    }

    /// Blocks that can be written.
    pub(crate) fn free_blocks(&self) -> u32 {
        self.blocks_in(|unit| self.flash.space(unit).allocatable())
    }

    /// Blocks that empty flash can hold.
    pub(crate) fn total_blocks(&self) -> u32 {
        self.blocks_in(|unit| {
            let space = self.flash.space(unit);
            space.total() - space.bad
        })
    }

    /// Blocks that fit these superblocks, with no two copies on one unit. Parity usually needs
    /// fewer superblocks than copies, but a group of one patch needs as many.
    fn blocks_in(&self, superblocks: impl Fn(u16) -> u32) -> u32 {
        if !self.is_redundant() {
            return self.serving().map(superblocks).sum();
        }
        let (sum, most) = self
            .serving()
            .map(superblocks)
            .fold((0, 0), |(sum, most), count| (sum + count, count.max(most)));
        if planted::bug(Bug::FreeBlocksOfOneUnit) { sum / 2 } else { (sum / 2).min(sum - most) }
    }

    /// The unit for a copy of a block whose other copies are on the units `taken`.
    fn choose_unit(&self, taken: &[u16]) -> Option<u16> {
        let candidate = |unit: u16| Candidate {
            unit,
            load: self.flash.load(unit) + self.unit(unit).map_or(0, |unit| unit.writers.get()),
            free: self.flash.space(unit).allocatable(),
            erases: self.flash.most_erases(unit),
        };
        let untaken = self.serving().filter(|unit| !taken.contains(unit));
        let mut candidates: Vec<Candidate> = untaken.map(candidate).collect();
        if self.redundancy.is_some() && taken.is_empty() {
            // A unit with as much room as all other units together must take a copy of each block:
            // otherwise part of its room stays unused.
            let room: u32 = candidates.iter().map(|candidate| candidate.free).sum();
            if let Some(roomy) = candidates.iter().copied().find(|c| 2 * c.free >= room) {
                candidates = vec![roomy];
            }
        }
        self.placement.choose(&candidates)
    }

    /// Allocates a superblock for each copy of a block, on different units, none of them among
    /// `taken`.
    pub(crate) fn allocate(&self, tag: Tag, taken: &[u16], hint: Hint) -> Result<Copies> {
        let wanted = if self.is_redundant() { self.redundancy.copies_of(tag.kind) } else { 1 };
        let (mut copies, mut taken) = (Copies::new(), SmallVec::<[u16; 2]>::from_slice(taken));
        while copies.len() < usize::from(wanted) {
            let copy = (wanted > 1).then_some(copies.len() as u8);
            let allocated = match self.choose_unit(&taken) {
                None => Err(self.lack_of_space()),
                Some(unit) => {
                    assert!(!taken.contains(&unit), "two copies of {} on unit {unit}", tag.id);
                    taken.push(unit);
                    match self.flash.allocate(unit, tag::encode(Tag { copy, ..tag }), hint) {
                        Err(FtlError::NoSpace { .. }) => Err(self.lack_of_space()),
                        allocated => allocated.map_err(BlockError::from),
                    }
                }
            };
            match allocated {
                Ok(superblock) => {
                    let is_chosen = taken.last() == Some(&superblock.unit.0);
                    assert!(is_chosen, "the FTL allocated {superblock} on another unit");
                    copies.push(superblock);
                }
                Err(error) => {
                    self.release(&copies);
                    return Err(error);
                }
            }
        }
        copies.iter().for_each(|copy| self.count_writer(copy.unit.0, 1));
        Ok(copies)
    }

    /// Whether a superblock that holds no known block was written beyond page `page`, as far as
    /// reads of the flash show.
    pub(crate) async fn was_written_beyond(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<bool> {
        if self.is_lost(superblock.unit.0) {
            return Ok(false);
        }
        match self.flash.was_written_beyond(superblock, page, hint).await {
            Err(FtlError::Device { error: DeviceError::DeadDie, .. }) => Ok(false),
            // The other copies decide.
            Err(FtlError::Device { error: DeviceError::Io { .. }, .. }) if self.is_redundant() => {
                Ok(false)
            }
            written => Ok(written?),
        }
    }

    pub(crate) fn release(&self, superblocks: &[Superblock]) {
        superblocks.iter().for_each(|superblock| self.flash.release(superblock));
    }

    /// Copies bytes to buffers of whole pages.
    pub(crate) fn pieces_of(&self, bytes: &[u8]) -> Vec<IoBuf> {
        let piece_of = |chunk: &[u8]| {
            let whole_pages = chunk.len().next_multiple_of(self.flash.page_bytes());
            let mut piece = self.flash.buffer(whole_pages);
            let (front, padding) = piece.split_at_mut(chunk.len());
            front.copy_from_slice(chunk);
            padding.fill(0);
            piece
        };
        bytes.chunks(PIECE_BYTES).map(piece_of).collect()
    }

    /// Adds `by` to the number of blocks that are being written to the unit.
    pub(crate) fn count_writer(&self, unit: u16, by: i32) {
        if let Some(unit) = self.unit(unit) {
            unit.writers.set(unit.writers.get().saturating_add_signed(by));
        }
    }

    /// Records the outcome of a command. Returns whether the unit counts as lost from this command
    /// on; a unit is lost only where its blocks have redundancy.
    pub(crate) fn note_outcome(&self, unit: u16, error: Option<&FtlError>) -> bool {
        if !self.redundancy.is_some() {
            return false;
        }
        let Some(known) = self.unit(unit) else { return false };
        known.health.note(error);
        let is_lost = known.health.is_lost() && !self.is_lost(unit);
        if is_lost {
            tracing::error!(unit, "the unit is lost; its blocks are rewritten to other units");
            known.is_lost.set(true);
        }
        is_lost
    }
}
