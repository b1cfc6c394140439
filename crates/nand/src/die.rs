//! The state of a die: its commands and their stages. [`crate::array`] drives the transitions.

use crate::address::DieIndex;
use crate::command::{CommandKind, PageStatus};
use crate::geometry::MAX_PLANES;
use crate::timing::HEAD;

/// No slot.
pub(crate) const NONE: u8 = u8::MAX;

/// Slots of a die: two for commands in order, and one for a read that may suspend the others. The
/// fourth is never used; a power of two makes the look-up cheap.
pub(crate) const SLOTS: usize = 4;

/// The slot of the suspending read.
pub(crate) const SUSPENDER: u8 = 2;

/// The stage of a command: its kind and progress, which determine the operations that can start on
/// a die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
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
    pub(crate) fn first(kind: CommandKind) -> Stage {
        match kind {
            CommandKind::Read => Stage::ReadQueued,
            CommandKind::Program => Stage::ProgramQueued,
            CommandKind::Erase => Stage::EraseQueued,
        }
    }
}

/// The slot of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) tag: u64,
    pub(crate) submitted_at: u64,
    /// Flat block indexes.
    pub(crate) blocks: [u32; MAX_PLANES],
    pub(crate) status: [PageStatus; MAX_PLANES],
    pub(crate) page: u32,
    pub(crate) kind: CommandKind,
    pub(crate) planes: u8,
    pub(crate) retries: u8,
    /// Only the beginning of the page is transferred.
    pub(crate) head: bool,
}

impl Slot {
    /// Pages that cross the bus, or [`HEAD`].
    #[inline]
    pub(crate) fn transferred(&self) -> u8 {
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
pub(crate) enum CellArray {
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
pub(crate) struct Die {
    /// The stage of each slot's command.
    pub(crate) stages: [Stage; SLOTS],
    pub(crate) slots: [Slot; SLOTS],
    /// When the operation in the array ends, if it is not suspended before.
    pub(crate) work_ends: u64,
    /// The total duration of the operation of `array_slot` or `parked`.
    pub(crate) work_ns: u64,
    /// The remaining time of the suspended operation.
    pub(crate) parked_left_ns: u64,
    pub(crate) busy_ns: u64,
    /// The number of suspensions of the operation in the array, or parked.
    pub(crate) suspends: u16,
    pub(crate) array: CellArray,
    /// The slot of the operation in the array.
    pub(crate) array_slot: u8,
    /// The slot of the suspended operation.
    pub(crate) parked: u8,
    /// The slot whose data are on the bus to the host, or wait for it.
    pub(crate) output: u8,
    /// The slot whose data are on the bus to the die, or wait for it.
    pub(crate) input: u8,
    /// The slot of the oldest command in order. The first two slots alternate.
    front: u8,
    /// Commands in order.
    queued: u8,
    /// The die's number in its channel.
    pub(crate) place: u8,
    pub(crate) channel: u16,
    pub(crate) index: DieIndex,
}

impl Die {
    pub(crate) fn new(index: DieIndex, channel: u16, place: u8) -> Die {
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
    pub(crate) fn slot(&self, slot: u8) -> &Slot {
        debug_assert!(slot <= SUSPENDER, "no slot {slot}");
        &self.slots[usize::from(slot) % SLOTS]
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, slot: u8) -> &mut Slot {
        debug_assert!(slot <= SUSPENDER, "no slot {slot}");
        &mut self.slots[usize::from(slot) % SLOTS]
    }

    #[inline]
    pub(crate) fn stage(&self, slot: u8) -> Stage {
        self.stages[usize::from(slot) % SLOTS]
    }

    #[inline]
    pub(crate) fn set_stage(&mut self, slot: u8, stage: Stage) {
        self.stages[usize::from(slot) % SLOTS] = stage;
    }

    /// The slot of the oldest command in order, if there is one.
    #[inline]
    pub(crate) fn front(&self) -> u8 {
        self.front
    }

    /// The slot of the command behind the oldest, if there is one.
    #[inline]
    pub(crate) fn second(&self) -> u8 {
        self.front ^ 1
    }

    /// The index of a slot's data in the array's registers.
    #[inline]
    pub(crate) fn register(&self, slot: u8) -> usize {
        self.index.index() * SLOTS + usize::from(slot)
    }

    /// The number of commands on the die.
    pub(crate) fn load(&self) -> u8 {
        self.queued + u8::from(self.stage(SUSPENDER) != Stage::Free)
    }

    /// The slot for a new command of this kind, if there is room. If the die can suspend, a read
    /// behind a program or erase gets the suspender's slot.
    #[inline]
    pub(crate) fn room(&self, kind: CommandKind, depth: u8, suspends: bool) -> Option<u8> {
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
    pub(crate) fn enqueue(&mut self, slot: u8, kind: CommandKind) {
        assert!(self.stage(slot) == Stage::Free, "the slot is taken");
        self.set_stage(slot, Stage::first(kind));
        self.queued += u8::from(slot != SUSPENDER);
    }

    /// Frees the slot of a command that has ended.
    #[inline]
    pub(crate) fn release(&mut self, slot: u8) {
        self.set_stage(slot, Stage::Free);
        if slot != SUSPENDER {
            assert_eq!(self.front, slot, "commands in order end in order");
            self.front ^= 1;
            self.queued -= 1;
        }
    }

    /// Parks the suspended operation; the array is free.
    pub(crate) fn suspended(&mut self) {
        self.parked = self.array_slot;
        self.array = CellArray::Idle;
    }

    /// Whether the waiting read touches a block that `slot` works on.
    pub(crate) fn suspender_conflicts(&self, slot: u8) -> bool {
        let (read, other) = (self.slot(SUSPENDER), self.slot(slot));
        let blocks = &other.blocks[..usize::from(other.planes)];
        read.blocks[..usize::from(read.planes)].iter().any(|block| blocks.contains(block))
    }

    /// Drops all commands.
    pub(crate) fn power_cut(&mut self) {
        *self = Die { busy_ns: self.busy_ns, ..Die::new(self.index, self.channel, self.place) };
    }
}
