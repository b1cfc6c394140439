//! What a die is at: one piece of work in the cell array, one in the register that faces the bus.

use super::{Work, WorkKind};

/// The cell array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellArray {
    Idle,
    /// At work until the die's event.
    Working,
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

/// A die.
#[derive(Debug, Clone, Copy)]
pub(super) struct DieLine {
    /// What the cell array works at, or holds.
    pub(super) at_work: Work,
    /// What the register is taken for.
    pub(super) in_register: Work,
    pub(super) busy_ns: u64,
    /// When the copy-back at work began.
    pub(super) began_at: u64,
    pub(super) channel: u32,
    /// Its number in the channel.
    pub(super) place: u8,
    pub(super) array: CellArray,
    pub(super) register: Register,
    /// The cell array programs what a move has sensed.
    pub(super) moving: bool,
}

impl DieLine {
    pub(super) fn new(channel: u32, place: u32) -> DieLine {
        let none = Work { tag: 0, page: 0, pages: 0, kind: WorkKind::Read };
        DieLine {
            at_work: none,
            in_register: none,
            busy_ns: 0,
            began_at: 0,
            channel,
            place: place as u8,
            array: CellArray::Idle,
            register: Register::Free,
            moving: false,
        }
    }

    /// Whether it takes work of this kind. Where a die has a cache register, it senses the next page while
    /// one goes out, and loads the next while it programs one.
    #[inline]
    pub(super) fn accepts(&self, kind: WorkKind, cache_read: bool, cache_program: bool) -> bool {
        let idle = self.array == CellArray::Idle;
        let free = self.register == Register::Free;
        match kind {
            WorkKind::Read => idle & (free | (cache_read & (self.register == Register::Out))),
            WorkKind::Program => free & (idle | (cache_program & self.programs())),
            WorkKind::Erase | WorkKind::Move | WorkKind::CopyBack => idle & free,
        }
    }

    /// Whether it takes any work.
    #[inline]
    pub(super) fn accepts_any(&self, cache_read: bool, cache_program: bool) -> bool {
        let idle = self.array == CellArray::Idle;
        match self.register {
            Register::Free => idle | (cache_program & self.programs()),
            Register::Out => idle & cache_read,
            Register::In | Register::Loaded => false,
        }
    }

    #[inline]
    fn programs(&self) -> bool {
        self.array == CellArray::Working && self.at_work.kind == WorkKind::Program
    }
}
