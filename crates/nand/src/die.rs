//! The commands on a die and the stages they go through. What happens when is decided in
//! [`crate::array`]; this is what a die remembers.

use crate::address::DieIndex;
use crate::command::{CommandKind, PageStatus};
use crate::geometry::MAX_PLANES;

/// No slot.
pub(crate) const NONE: u8 = u8::MAX;

/// Slots of a die: two for commands in order, and one for a read that may suspend the others. The
/// fourth is never used; a power of two makes looking one up cheap.
pub(crate) const SLOTS: usize = 4;

/// The slot of the suspending read.
pub(crate) const SUSPENDER: u8 = 2;

/// How far a command has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// There is none.
    Free,
    /// Not begun.
    Queued,
    /// A program waiting for the bus or using it.
    Loading,
    /// A program with its data in a register, waiting for the array.
    Loaded,
    /// Sensing, programming or erasing, or suspended in that.
    InArray,
    /// A read in the array again, with shifted thresholds.
    Retrying,
    /// A read whose page waits in the page register for the cache register to become free.
    Sensed,
    /// A read waiting for the bus or using it.
    Unloading,
}

/// A place for a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) tag: u64,
    pub(crate) submitted_at: u64,
    /// Flat block indexes.
    pub(crate) blocks: [u32; MAX_PLANES],
    pub(crate) status: [PageStatus; MAX_PLANES],
    pub(crate) page: u32,
    pub(crate) stage: Stage,
    pub(crate) kind: CommandKind,
    pub(crate) planes: u8,
    pub(crate) retries: u8,
}

const EMPTY: Slot = Slot {
    tag: 0,
    submitted_at: 0,
    blocks: [0; MAX_PLANES],
    status: [PageStatus::Good; MAX_PLANES],
    page: 0,
    stage: Stage::Free,
    kind: CommandKind::Read,
    planes: 0,
    retries: 0,
};

/// What the cell array of a die does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellArray {
    Idle,
    /// At work until the die's event.
    Working,
    /// Being suspended until the die's event.
    Suspending,
    /// Being resumed until the die's event.
    Resuming,
    /// Kept by a read whose page is still in the page register.
    Holding,
}

/// A die.
#[derive(Debug, Clone)]
pub(crate) struct Die {
    pub(crate) slots: [Slot; SLOTS],
    /// When the operation in the array ends, if it is not suspended before.
    pub(crate) work_ends: u64,
    /// How long the operation that `array_slot` or `parked` is at takes in all.
    pub(crate) work_ns: u64,
    /// What the suspended operation has left.
    pub(crate) parked_left_ns: u64,
    pub(crate) busy_ns: u64,
    /// How often the operation in the array, or parked, was suspended.
    pub(crate) suspends: u16,
    pub(crate) array: CellArray,
    /// The slot that the array works for.
    pub(crate) array_slot: u8,
    /// The slot of the suspended operation.
    pub(crate) parked: u8,
    /// The slot whose data go out, or wait to.
    pub(crate) output: u8,
    /// The slot whose data come in, or wait to.
    pub(crate) input: u8,
    /// The slots of commands in order, oldest first.
    queue: [u8; 2],
    queued: u8,
    /// The die's number in its channel.
    pub(crate) place: u8,
    pub(crate) channel: u16,
    pub(crate) index: DieIndex,
}

impl Die {
    pub(crate) fn new(index: DieIndex, channel: u16, place: u8) -> Die {
        Die {
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
            queue: [NONE; 2],
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

    /// The oldest command in order.
    #[inline]
    pub(crate) fn front(&self) -> Option<u8> {
        (self.queued > 0).then_some(self.queue[0])
    }

    /// The command behind the oldest.
    #[inline]
    pub(crate) fn second(&self) -> Option<u8> {
        (self.queued > 1).then_some(self.queue[1])
    }

    /// Where in the array's registers a slot's data lie.
    #[inline]
    pub(crate) fn register(&self, slot: u8) -> usize {
        self.index.index() * SLOTS + usize::from(slot)
    }

    /// Commands on the die.
    pub(crate) fn load(&self) -> u8 {
        self.queued + u8::from(self.slot(SUSPENDER).stage != Stage::Free)
    }

    /// The slot that a new command of this kind gets, if there is room. A read gets past programs
    /// and erases through the suspender's slot where the die can suspend.
    #[inline]
    pub(crate) fn room(&self, kind: CommandKind, depth: u8, suspends: bool) -> Option<u8> {
        if suspends && kind == CommandKind::Read && self.must_be_passed() {
            (self.slot(SUSPENDER).stage == Stage::Free).then_some(SUSPENDER)
        } else if self.queued < depth {
            Some(u8::from(self.slots[0].stage != Stage::Free))
        } else {
            None
        }
    }

    /// Whether a program or erase is in the queue.
    fn must_be_passed(&self) -> bool {
        let queue = &self.queue[..usize::from(self.queued)];
        queue.iter().any(|&slot| self.slot(slot).kind != CommandKind::Read)
    }

    /// Puts the command of a slot at the end of the order, where it has one.
    #[inline]
    pub(crate) fn enqueue(&mut self, slot: u8) {
        if slot != SUSPENDER {
            self.queue[usize::from(self.queued)] = slot;
            self.queued += 1;
        }
    }

    /// Frees the slot of a command that has ended.
    #[inline]
    pub(crate) fn release(&mut self, slot: u8) {
        self.slot_mut(slot).stage = Stage::Free;
        if slot != SUSPENDER {
            assert_eq!(self.queue[0], slot, "commands in order end in order");
            self.queue[0] = self.queue[1];
            self.queued -= 1;
        }
    }

    /// Whether the waiting read touches a block that `slot` works on.
    pub(crate) fn suspender_conflicts(&self, slot: u8) -> bool {
        let (read, other) = (self.slot(SUSPENDER), self.slot(slot));
        let blocks = &other.blocks[..usize::from(other.planes)];
        read.blocks[..usize::from(read.planes)].iter().any(|block| blocks.contains(block))
    }

    /// Forgets all commands.
    pub(crate) fn power_cut(&mut self) {
        *self = Die { busy_ns: self.busy_ns, ..Die::new(self.index, self.channel, self.place) };
    }
}
