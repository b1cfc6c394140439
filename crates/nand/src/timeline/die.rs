//! The state of a die: one piece of work in the cell array, one in the register that faces the bus.

use super::work::{Work, WorkKind};

/// The cell array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellArray {
    Idle,
    /// Busy until the die's event, with other work than `Programming`.
    Working,
    /// Busy until the die's event, with the program of data from the bus.
    Programming,
    /// Occupied by pages that wait for the register, or that are in it if the die has no cache
    /// register.
    Holding,
}

/// The register that faces the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Register {
    Free,
    /// Pages that are transferred out, or wait for the bus.
    Out,
    /// Pages that are transferred in, or wait for the bus.
    In,
    /// Pages that wait for the cell array.
    Loaded,
}

/// A die, in one line of the processor's cache.
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
    /// The cell array programs the pages of a move.
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

    /// Whether the die takes any work.
    #[inline]
    pub fn any(self) -> bool {
        self != Accepted::NONE
    }

    /// Whether the die takes this kind of work.
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
    /// With a cache register, a die senses the next page during the transfer of one, and loads the
    /// next page during the program of one.
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
