//! The state of a die: one piece of work in the cell array, one in the register that faces the bus.

use super::work::{Work, WorkKind};

/// The cell array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellArray {
    Idle,
    /// At work until the die's event, on anything but what is next.
    Working,
    /// At work until the die's event: programming what came from the bus.
    Programming,
    /// Kept by pages that wait for the register, or are in it while there is no other.
    Holding,
}

/// The register that faces the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Register {
    Free,
    /// Pages that go out, or wait to.
    Out,
    /// Pages that come in, or wait to.
    In,
    /// Pages that wait for the cell array.
    Loaded,
}

/// A die: a line of the processor's cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct DieLine {
    /// The work in the cell array.
    pub(super) at_work: Work,
    /// The work in the register.
    pub(super) in_register: Work,
    pub(super) busy_ns: u64,
    /// When the copy-back at work began.
    pub(super) began_at: u64,
    /// Its number in the array.
    pub(super) die: u32,
    pub(super) channel: u32,
    /// Its number in the channel.
    pub(super) place: u8,
    pub(super) array: CellArray,
    pub(super) register: Register,
    /// The cell array programs what a move has sensed.
    pub(super) moving: bool,
}

impl DieLine {
    pub(super) fn new(die: u32, per_channel: u32) -> DieLine {
        let none = Work { tag: 0, page: 0, pages: 0, kind: WorkKind::Read };
        DieLine {
            at_work: none,
            in_register: none,
            busy_ns: 0,
            began_at: 0,
            die,
            channel: die / per_channel,
            place: (die % per_channel) as u8,
            array: CellArray::Idle,
            register: Register::Free,
            moving: false,
        }
    }
}

/// The kinds of work that a die takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted(u8);

impl Accepted {
    const NONE: Accepted = Accepted(0);
    const READS: Accepted = Accepted(1);
    const PROGRAMS: Accepted = Accepted(2);
    const ALL: Accepted = Accepted(7);

    /// Whether there is any.
    #[inline]
    pub fn any(self) -> bool {
        self != Accepted::NONE
    }

    /// Whether this is one of them.
    #[inline]
    pub fn has(self, kind: WorkKind) -> bool {
        let bit = match kind {
            WorkKind::Read => 1,
            WorkKind::Program => 2,
            WorkKind::Erase | WorkKind::Move | WorkKind::CopyBack => 4,
        };
        self.0 & bit != 0
    }
}

/// The kinds of work that dies accept, by the state of their cell array and register.
#[derive(Debug)]
pub(super) struct Acceptance([Accepted; 16]);

impl Acceptance {
    /// Where a die has a cache register, it senses the next page while one goes out, and loads the
    /// next while it programs one.
    pub(super) fn new(cache_read: bool, cache_program: bool) -> Acceptance {
        let mut taken = [Accepted::NONE; 16];
        let mut takes = |array, register, accepted| taken[place(array, register)] = accepted;
        takes(CellArray::Idle, Register::Free, Accepted::ALL);
        if cache_read {
            takes(CellArray::Idle, Register::Out, Accepted::READS);
        }
        if cache_program {
            takes(CellArray::Programming, Register::Free, Accepted::PROGRAMS);
        }
        Acceptance(taken)
    }

    #[inline]
    pub(super) fn of(&self, line: &DieLine) -> Accepted {
        self.0[place(line.array, line.register)]
    }
}

#[inline]
fn place(array: CellArray, register: Register) -> usize {
    array as usize * 4 + register as usize
}
