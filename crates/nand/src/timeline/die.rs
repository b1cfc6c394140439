//! The state of a die: one piece of work in the cell array, one in the register that faces the bus,
//! and one read that passes them.

use super::work::{Work, WorkKind};
use crate::timing::Timing;

/// The cell array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellArray {
    Idle,
    /// Busy until the die's event, with work that is never suspended.
    Working,
    /// Busy until the die's event, with the program of data from the bus.
    Programming,
    /// Busy until the die's event, with an erase, or with the program of pages that crossed the bus
    /// in a move.
    Rewriting,
    /// Being suspended until the die's event.
    Suspending,
    /// Being resumed until the die's event.
    Resuming,
    /// Sensing the page of the passing read until the die's event.
    Passing,
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

/// The progress of a read that passes a program or an erase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    /// No read passes, and nothing is suspended.
    None,
    /// The read waits for the cell array, and may suspend its work.
    Waits,
    /// The read waits for the end of the work in the cell array.
    WaitsForEnd,
    /// Its page is being sensed.
    Senses,
    /// Its page is transferred, or waits for the bus.
    Unloads,
    /// The read has ended, and the suspended work is being resumed.
    Resumes,
}

/// A die, in one line of the processor's cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct DieLine {
    /// The work in the cell array.
    pub(super) at_work: Work,
    /// The work whose pages come from the bus into the register, or came last.
    pub(super) incoming: Work,
    /// The read whose pages leave the register, or the one that passes.
    pub(super) outgoing: Work,
    pub(super) busy_ns: u64,
    /// When the work in the cell array began, or continued after its last suspension.
    pub(super) began_at: u64,
    /// The time that this work had left at its last suspension.
    pub(super) left_ns: u64,
    /// Its number in the array.
    pub(super) die: u32,
    pub(super) channel: u16,
    /// The number of suspensions of the work in the cell array.
    pub(super) suspensions: u16,
    /// Its number in the channel.
    pub(super) place: u8,
    pub(super) array: CellArray,
    pub(super) register: Register,
    pub(super) passing: Passing,
    /// The cell array programs the pages of a move.
    pub(super) moving: bool,
    /// The work at hand has left the cell array to the passing read.
    pub(super) suspended: bool,
    /// It accepts no other work than this: less while a read passes.
    accepts_at_most: WorkKinds,
}

const _: () = assert!(size_of::<DieLine>() == 64, "one line of the cache");

impl DieLine {
    pub(super) fn new(die: u32, per_channel: u32) -> DieLine {
        let none = Work { tag: 0, page: 0, pages: 0, kind: WorkKind::Read };
        DieLine {
            at_work: none,
            incoming: none,
            outgoing: none,
            busy_ns: 0,
            began_at: 0,
            left_ns: 0,
            die,
            channel: (die / per_channel) as u16,
            suspensions: 0,
            place: (die % per_channel) as u8,
            array: CellArray::Idle,
            register: Register::Free,
            passing: Passing::None,
            moving: false,
            suspended: false,
            accepts_at_most: WorkKinds::EVERYTHING,
        }
    }

    /// Sets the progress of the passing read, and what the die accepts beside it.
    pub(super) fn set_passing(&mut self, passing: Passing) {
        self.passing = passing;
        // A move or an erase takes nothing behind it; before its begin, no read passes it.
        let programs = self.register != Register::Free || self.at_work.kind == WorkKind::Program;
        self.accepts_at_most = match (passing, programs) {
            (Passing::None, _) => WorkKinds::EVERYTHING,
            (Passing::Resumes, true) => WorkKinds::PROGRAMS.and(WorkKinds::PASSING_READS),
            (Passing::Resumes, false) => WorkKinds::PASSING_READS,
            (_, true) => WorkKinds::PROGRAMS,
            (_, false) => WorkKinds::NONE,
        };
    }
}

/// The kinds of work that a die takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkKinds(u8);

impl WorkKinds {
    const NONE: WorkKinds = WorkKinds(0);
    const READS: WorkKinds = WorkKinds(1);
    const PROGRAMS: WorkKinds = WorkKinds(2);
    const ALL: WorkKinds = WorkKinds(7);
    const PASSING_READS: WorkKinds = WorkKinds(9);
    const EVERYTHING: WorkKinds = WorkKinds(15);

    /// Whether the die takes any work.
    #[inline]
    pub fn any(self) -> bool {
        self != WorkKinds::NONE
    }

    /// Whether the die takes this kind of work.
    #[inline]
    pub fn has(self, kind: WorkKind) -> bool {
        let bit = match kind {
            WorkKind::Read => 1,
            WorkKind::Program => 2,
            WorkKind::Erase | WorkKind::Move | WorkKind::CopyBack | WorkKind::Pack => 4,
        };
        self.0 & bit != 0
    }

    /// Whether a read would pass a program or an erase of the die: if the die can suspend, it takes
    /// one such read. Where the read is of the block under work, the caller must say so: see
    /// [`Timeline::start_behind`](super::Timeline::start_behind).
    #[inline]
    pub fn read_passes(self) -> bool {
        self.0 & 8 != 0
    }

    const fn and(self, other: WorkKinds) -> WorkKinds {
        WorkKinds(self.0 | other.0)
    }
}

/// The kinds of work that dies accept, by the state of their cell array and register.
#[derive(Debug)]
pub(super) struct Acceptance([WorkKinds; 32]);

impl Acceptance {
    /// With a cache register, a die senses the next page during the transfer of one, and loads the
    /// next page during the program of one. A die that suspends takes a read whenever there is a
    /// program or an erase to pass; beside that read, it takes what it takes without.
    pub(super) fn new(timing: &Timing) -> Acceptance {
        let mut taken = [WorkKinds::NONE; 32];
        let mut takes = |array, register, accepted: WorkKinds| {
            let known = &mut taken[place(array, register)];
            *known = known.and(accepted);
        };
        takes(CellArray::Idle, Register::Free, WorkKinds::ALL);
        if timing.cache_read {
            takes(CellArray::Idle, Register::Out, WorkKinds::READS);
        }
        // In these states the program or erase has begun. Pages of reads in order that the cell
        // array holds wait for the register, so that it is not free.
        let suspended = [CellArray::Suspending, CellArray::Passing, CellArray::Holding];
        let begun = [CellArray::Programming, CellArray::Resuming].into_iter().chain(suspended);
        for array in begun.filter(|_| timing.cache_program) {
            takes(array, Register::Free, WorkKinds::PROGRAMS);
        }
        if timing.suspends {
            takes(CellArray::Idle, Register::In, WorkKinds::PASSING_READS);
            takes(CellArray::Rewriting, Register::Free, WorkKinds::PASSING_READS);
            for register in [Register::Free, Register::In, Register::Loaded] {
                takes(CellArray::Programming, register, WorkKinds::PASSING_READS);
                takes(CellArray::Resuming, register, WorkKinds::PASSING_READS);
            }
        }
        Acceptance(taken)
    }

    #[inline]
    pub(super) fn of(&self, line: &DieLine) -> WorkKinds {
        WorkKinds(self.0[place(line.array, line.register)].0 & line.accepts_at_most.0)
    }
}

#[inline]
fn place(array: CellArray, register: Register) -> usize {
    array as usize * 4 + register as usize
}
