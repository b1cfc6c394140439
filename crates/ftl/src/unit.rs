//! One unit: its superblocks, its blocks, and the queues of its dies.

mod choice;
mod reclaim;
mod survey;

use crate::blocks::BlockTable;
use crate::config::FtlConfig;
use crate::counters::Counters;
use crate::erase_ahead::EraseAhead;
use crate::layout::{Layout, Run};
use crate::op::{Op, Work};
use crate::scheduler::{DieQueue, QueueClass};
use crate::slots::{Slot, Slots, State};
use crate::stream::Stream;
use crate::superblock::{FtlError, Owner, OwnerTag, Superblock};
use crate::telemetry::SpaceAccount;
use softflash_base::{Time, UnitId};
use softflash_device::geometry::MAX_PLANES;
use softflash_device::{Completion, DeviceError, Target};

/// The contents of the opening header of an allocated superblock.
pub(crate) struct Opening {
    pub index: u32,
    pub stream: Stream,
    pub tag: OwnerTag,
}

/// One unit.
pub(crate) struct Unit {
    id: UnitId,
    owner: Owner,
    /// Its place in the table of units.
    place: usize,
    layout: Layout,
    slots: Slots,
    pub blocks: BlockTable,
    dies: Vec<DieQueue>,
    next_generation: u64,
    /// The first generation since the mount.
    first_generation: u64,
    /// What had smaller generations is void.
    void_below: u64,
    /// The greatest generation in a header on the flash, and the superblock of that header.
    newest: Option<(u64, u32)>,
    /// Header pages that the mount found damaged.
    damaged_headers: u32,
    /// Allocated superblocks without an append.
    openings: Vec<Opening>,
    /// Commands waiting or in the device.
    load: u32,
    /// The time at which `load` became 0.
    idle_since: Time,
    erase_ahead: EraseAhead,
    /// It leaves the FTL, or has left it.
    leaves: bool,
    /// Blocks that no superblock has and that are being erased. No superblock is meanwhile.
    pub idle_under_erase: u32,
    counters: Counters,
}

impl Unit {
    /// A unit with all superblocks out of service; recovery sets their states.
    ///
    /// # Panics
    /// If the order of the commands is for drives only.
    pub fn new(id: UnitId, place: usize, layout: Layout, config: &FtlConfig, now: Time) -> Unit {
        let allowances = config.order.allowances();
        assert!(allowances.is_some(), "the order `{}` is for drives only", config.order);
        let die = || allowances.map(DieQueue::new);
        Unit {
            id,
            owner: Owner::BLOCKS,
            place,
            layout,
            slots: Slots::new(id, layout.blocks_per_plane),
            blocks: BlockTable::new(layout.columns(), layout.blocks_per_plane),
            dies: (0..layout.dies).filter_map(|_| die()).collect(),
            next_generation: 0,
            first_generation: 0,
            void_below: 0,
            newest: None,
            damaged_headers: 0,
            openings: Vec::new(),
            load: 0,
            idle_since: now,
            erase_ahead: EraseAhead::new(config),
            leaves: false,
            idle_under_erase: 0,
            counters: Counters::default(),
        }
    }

    pub fn id(&self) -> UnitId {
        self.id
    }

    /// The owner of the superblocks that are allocated.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Nothing is started on the unit from now on: it leaves the FTL.
    pub fn leave(&mut self) {
        self.leaves = true;
    }

    /// Whether the unit leaves the FTL, or has left it.
    pub fn leaves(&self) -> bool {
        self.leaves
    }

    /// Superblocks that their owner has not released.
    pub fn held_superblocks(&self) -> u32 {
        self.slots.in_state(State::Open) + self.slots.in_state(State::Live)
    }

    /// Whether all free superblocks are to be erased.
    pub fn wants_all_erased(&self) -> bool {
        self.erase_ahead.wants_all()
    }

    /// All free superblocks are to be erased at once, or not any more.
    pub fn want_all_erased(&mut self, wants_all: bool) {
        self.erase_ahead.want_all(wants_all);
    }

    /// No superblock is erased ahead of need from now on, or some are again.
    pub fn hold_erases(&mut self, is_held: bool) {
        self.erase_ahead.hold(is_held);
    }

    /// A superblock cannot be erased because the path to the flash fails: the erase of all of them
    /// ends, if it is under way.
    pub fn note_erase_failure(&mut self, index: u32, error: DeviceError) {
        let superblock = self.superblock(index);
        self.erase_ahead.fail(FtlError::Device { superblock, error });
    }

    /// From now on, superblocks are allocated for this owner.
    pub fn set_owner(&mut self, owner: Owner) {
        self.owner = owner;
    }

    pub fn place(&self) -> usize {
        self.place
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub fn slot(&self, index: u32) -> &Slot {
        self.slots.slot(index)
    }

    pub fn slot_mut(&mut self, index: u32) -> &mut Slot {
        self.slots.slot_mut(index)
    }

    /// The superblock of an index that may be out of range.
    pub fn try_slot(&self, index: u32) -> Option<&Slot> {
        self.slots.try_slot(index)
    }

    /// Changes the state of a superblock.
    pub fn set_state(&mut self, index: u32, state: State) {
        self.slots.set_state(index, state);
    }

    /// Number of superblocks in each state.
    pub fn space(&self) -> SpaceAccount {
        self.slots.space()
    }

    /// The queue of a die.
    pub fn die_mut(&mut self, die: u8) -> &mut DieQueue {
        &mut self.dies[usize::from(die)]
    }

    /// The handle of the current life of a superblock.
    pub fn superblock(&self, index: u32) -> Superblock {
        Superblock { unit: self.id, index, generation: self.slot(index).generation() }
    }

    /// The place of a run of superblock pages on the device.
    pub fn target(&self, index: u32, run: Run) -> Target {
        assert!(
            run.page + run.rows <= self.layout.pages_per_block,
            "superblock {index}: pages {}+{} of a block",
            run.page,
            run.rows
        );
        let column = self.layout.column_of_block(run.die, run.plane) as usize;
        let columns = column..column + usize::from(run.planes);
        let mut blocks = [0; MAX_PLANES];
        for (block, used) in blocks.iter_mut().zip(&self.blocks.blocks_of(index)[columns]) {
            *block = *used;
        }
        Target {
            unit: self.id,
            die: run.die,
            plane: run.plane,
            planes: run.planes,
            blocks,
            page: run.page,
            rows: run.rows,
        }
    }

    /// Updates the wear of a superblock from its blocks.
    pub fn refresh_wear(&mut self, index: u32) {
        let wear = self.blocks.wear(index);
        self.slot_mut(index).set_wear(wear);
    }

    /// Takes the generation of a new life.
    pub fn take_generation(&mut self) -> u64 {
        let generation = self.next_generation;
        self.next_generation += 1;
        generation
    }

    /// Sets the first generation for new lives, the one below which superblocks are void, and the
    /// number of damaged headers, as the mount found them.
    pub fn note_mount(&mut self, next_generation: u64, void_below: u64, damaged_headers: u32) {
        self.next_generation = next_generation;
        self.first_generation = next_generation;
        self.void_below = void_below;
        self.damaged_headers = damaged_headers;
    }

    /// The whole unit is erased from now on: what bad blocks keep is void.
    pub fn void_older(&mut self) {
        assert!(self.held_superblocks() == 0, "unit {}: data are declared void", self.id);
        self.void_below = self.first_generation;
    }

    /// Superblocks with smaller generations are void.
    pub fn void_below(&self) -> u64 {
        self.void_below
    }

    /// Records that a header is on the flash.
    pub fn note_header(&mut self, index: u32, generation: u64) {
        self.newest = self.newest.max(Some((generation, index)));
    }

    /// Stores the contents of the opening header of an allocated superblock.
    pub fn add_opening(&mut self, opening: Opening) {
        self.openings.push(opening);
    }

    /// Takes the contents of the opening header of an allocated superblock.
    pub fn take_opening(&mut self, index: u32) -> Opening {
        let Some(found) = self.openings.iter().position(|opening| opening.index == index) else {
            unreachable!("superblock {index} was opened and not allocated");
        };
        self.openings.swap_remove(found)
    }

    /// Commands waiting or in the device.
    pub fn load(&self) -> u32 {
        self.load
    }

    /// Counts a command of a superblock that waits.
    pub fn command_added(&mut self, index: u32) {
        self.load += 1;
        self.slot_mut(index).command_added();
    }

    /// Counts a command of a superblock that has ended.
    pub fn command_ended(&mut self, now: Time, index: u32) {
        self.load -= 1;
        if self.load == 0 {
            self.idle_since = now;
        }
        self.slot_mut(index).command_ended();
    }

    /// Counts a command that the device has executed.
    pub fn count_command(&mut self, op: &Op, ended: &Completion) {
        self.counters.add_command(op.work, op.hint.origin, ended);
    }

    /// Moves the waiting programs and erases of a superblock to a more urgent queue class.
    /// `belongs` tells whether a command is of the superblock.
    pub fn promote(&mut self, index: u32, class: QueueClass, belongs: impl Fn(u32) -> bool) {
        if let Some(from) = self.slot_mut(index).hasten(class) {
            for die in &mut self.dies {
                die.promote(from, class, &belongs);
            }
        }
    }

    /// The reason why a program must not be submitted any more.
    pub fn refusal(&self, op: &Op) -> Option<FtlError> {
        let slot = self.slot(op.index);
        let superblock = self.superblock(op.index);
        match (op.work, slot.state()) {
            (Work::Erase | Work::EraseIdle, _) => None,
            (Work::EraseHeader, State::Releasing) if !slot.has_failed() => None,
            (_, State::Releasing) => Some(FtlError::Stale { superblock }),
            _ if slot.has_failed() => Some(FtlError::Sealed { superblock }),
            _ => None,
        }
    }
}
