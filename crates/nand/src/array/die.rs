//! The state of a die: its commands and their stages. [`array`](super) drives the transitions.

use crate::address::DieIndex;
use crate::command::{CommandKind, PageStatus};
use crate::geometry::MAX_PLANES;
use crate::timing::HEAD;

/// No slot.
pub(super) const NONE: u8 = u8::MAX;

/// Slots of a die: two for commands in order, and one for a read that may suspend the others. The
/// fourth is never used; a power of two makes the look-up cheap.
pub(super) const SLOTS: usize = 4;

/// The slot of the suspending read.
pub(super) const SUSPENDER: u8 = 2;

/// The stage of a command: its kind and progress, which determine the operations that can start on
/// a die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// No command.
    Free,
    /// A read that has not begun.
    ReadQueued,
    /// A read in the array.
    Sensing,
    /// A read in the array for its retries, with shifted thresholds.
    Retrying,
    /// A read whose page waits in the page register for the cache register to become free.
    Sensed,
    /// A read waiting for the bus or using it.
    Unloading,
    /// A program that has not begun.
    ProgramQueued,
    /// A program waiting for the bus or using it.
    Loading,
    /// A program with its data in a register, waiting for the array.
    Loaded,
    /// A program in the array, or suspended there.
    Programming,
    /// An erase that has not begun.
    EraseQueued,
    /// An erase in the array, or suspended there.
    Erasing,
}

impl Stage {
    /// The first stage of a command of this kind.
    #[inline]
    pub(super) fn first(kind: CommandKind) -> Stage {
        match kind {
            CommandKind::Read => Stage::ReadQueued,
            CommandKind::Program => Stage::ProgramQueued,
            CommandKind::Erase => Stage::EraseQueued,
        }
    }
}

/// The slot of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) tag: u64,
    pub(super) submitted_at: u64,
    /// Flat block indexes.
    pub(super) blocks: [u32; MAX_PLANES],
    pub(super) status: [PageStatus; MAX_PLANES],
    pub(super) page: u32,
    pub(super) kind: CommandKind,
    pub(super) planes: u8,
    pub(super) retries: u8,
    /// Only the beginning of the page is transferred.
    pub(super) head: bool,
}

impl Slot {
    /// Pages that cross the bus, or [`HEAD`].
    #[inline]
    pub(super) fn transferred(&self) -> u8 {
        if self.head { HEAD } else { self.planes }
    }
}

const EMPTY: Slot = Slot {
    tag: 0,
    submitted_at: 0,
    blocks: [0; MAX_PLANES],
    status: [PageStatus::Good; MAX_PLANES],
    page: 0,
    kind: CommandKind::Read,
    planes: 0,
    retries: 0,
    head: false,
};

/// The state of a die's cell array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellArray {
    Idle,
    /// At work until the die's event.
    Working,
    /// Being suspended until the die's event.
    Suspending,
    /// Being resumed until the die's event.
    Resuming,
    /// Occupied by a read whose page is still in the page register.
    Holding,
}

/// A die.
#[derive(Debug, Clone)]
pub(super) struct Die {
    /// The stage of each slot's command.
    pub(super) stages: [Stage; SLOTS],
    pub(super) slots: [Slot; SLOTS],
    /// When the operation in the array ends, if it is not suspended before.
    pub(super) work_ends: u64,
    /// The total duration of the operation of `array_slot` or `parked`.
    pub(super) work_ns: u64,
    /// The remaining time of the suspended operation.
    pub(super) parked_left_ns: u64,
    pub(super) busy_ns: u64,
    /// The number of suspensions of the operation in the array, or parked.
    pub(super) suspends: u16,
    pub(super) array: CellArray,
    /// The slot of the operation in the array.
    pub(super) array_slot: u8,
    /// The slot of the suspended operation.
    pub(super) parked: u8,
    /// The slot whose data are on the bus to the host, or wait for it.
    pub(super) output: u8,
    /// The slot whose data are on the bus to the die, or wait for it.
    pub(super) input: u8,
    /// The slot of the oldest command in order. The first two slots alternate.
    front: u8,
    /// Commands in order.
    queued: u8,
    /// The die's number in its channel.
    pub(super) place: u8,
    pub(super) channel: u16,
    pub(super) index: DieIndex,
}

impl Die {
    pub(super) fn new(index: DieIndex, channel: u16, place: u8) -> Die {
        Die {
            stages: [Stage::Free; SLOTS],
            slots: [EMPTY; SLOTS],
            work_ends: 0,
            work_ns: 0,
            parked_left_ns: 0,
            busy_ns: 0,
            suspends: 0,
            array: CellArray::Idle,
            array_slot: NONE,
            parked: NONE,
            output: NONE,
            input: NONE,
            front: 0,
            queued: 0,
            place,
            channel,
            index,
        }
    }

    #[inline]
    pub(super) fn slot(&self, slot: u8) -> &Slot {
        debug_assert!(slot <= SUSPENDER, "no slot {slot}");
        &self.slots[usize::from(slot) % SLOTS]
    }

    #[inline]
    pub(super) fn slot_mut(&mut self, slot: u8) -> &mut Slot {
        debug_assert!(slot <= SUSPENDER, "no slot {slot}");
        &mut self.slots[usize::from(slot) % SLOTS]
    }

    #[inline]
    pub(super) fn stage(&self, slot: u8) -> Stage {
        self.stages[usize::from(slot) % SLOTS]
    }

    #[inline]
    pub(super) fn set_stage(&mut self, slot: u8, stage: Stage) {
        self.stages[usize::from(slot) % SLOTS] = stage;
    }

    /// The slot of the oldest command in order, if there is one.
    #[inline]
    pub(super) fn front(&self) -> u8 {
        self.front
    }

    /// The slot of the command behind the oldest, if there is one.
    #[inline]
    pub(super) fn second(&self) -> u8 {
        self.front ^ 1
    }

    /// The index of a slot's data in the array's registers.
    #[inline]
    pub(super) fn register(&self, slot: u8) -> usize {
        self.index.index() * SLOTS + usize::from(slot)
    }

    /// The number of commands on the die.
    pub(super) fn load(&self) -> u8 {
        self.queued + u8::from(self.stage(SUSPENDER) != Stage::Free)
    }

    /// The slot for a new command of this kind, if there is room. If the die can suspend, a read
    /// behind a program or erase gets the suspender's slot.
    #[inline]
    pub(super) fn room(&self, kind: CommandKind, depth: u8, suspends: bool) -> Option<u8> {
        if suspends && kind == CommandKind::Read && self.must_be_passed() {
            (self.stage(SUSPENDER) == Stage::Free).then_some(SUSPENDER)
        } else {
            (self.queued < depth).then_some(self.front ^ self.queued)
        }
    }

    /// Whether a program or erase is in the queue.
    fn must_be_passed(&self) -> bool {
        let passable = |slot: &u8| {
            self.stage(*slot) == Stage::Free || self.slot(*slot).kind == CommandKind::Read
        };
        ![0, 1].iter().all(passable)
    }

    /// Assigns a slot to a command of this kind.
    #[inline]
    pub(super) fn enqueue(&mut self, slot: u8, kind: CommandKind) {
        assert!(self.stage(slot) == Stage::Free, "the slot is taken");
        self.set_stage(slot, Stage::first(kind));
        self.queued += u8::from(slot != SUSPENDER);
    }

    /// Frees the slot of a command that has ended.
    #[inline]
    pub(super) fn release(&mut self, slot: u8) {
        self.set_stage(slot, Stage::Free);
        if slot != SUSPENDER {
            assert_eq!(self.front, slot, "commands in order end in order");
            self.front ^= 1;
            self.queued -= 1;
        }
    }

    /// Parks the suspended operation; the array is free.
    pub(super) fn suspended(&mut self) {
        self.parked = self.array_slot;
        self.array = CellArray::Idle;
    }

    /// Whether the waiting read touches a block that `slot` works on.
    pub(super) fn suspender_conflicts(&self, slot: u8) -> bool {
        let (read, other) = (self.slot(SUSPENDER), self.slot(slot));
        let blocks = &other.blocks[..usize::from(other.planes)];
        read.blocks[..usize::from(read.planes)].iter().any(|block| blocks.contains(block))
    }

    /// Drops all commands.
    pub(super) fn power_cut(&mut self) {
        *self = Die { busy_ns: self.busy_ns, ..Die::new(self.index, self.channel, self.place) };
    }
}
