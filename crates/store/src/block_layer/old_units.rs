//! Units that come back as an image of an earlier time, as a drive or a volume that was restored does.
//!
//! The generation of a unit's superblocks rises with every erase, and the FTL keeps the greatest one on the flash. The log,
//! which lies on other units too, says how great it was.

use super::BlockLayer;
use super::shelf::Shelf;
use crate::format::log::event::UnitMark;

/// A unit as the mount found it, before anything on it was erased.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mounted {
    unit: u16,
    newest_generation: u64,
}

/// A unit that has come back older than it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldUnit {
    /// The unit.
    pub unit: u16,
    /// The greatest generation found on it.
    pub found: u64,
    /// The greatest generation that it had.
    pub was: u64,
}

impl std::fmt::Display for OldUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let OldUnit { unit, found, was } = self;
        write!(
            f,
            "unit {unit} is older than it was: it has superblocks up to generation {found}, and had some of {was}; it came \
             back as an image of an earlier time, and is written anew from the other copies"
        )
    }
}

/// How far a unit is behind that has missed a session: each begins this much higher. Less is missing where a power cut came
/// between the erase of the newest superblock and its next header.
const MISSED_SESSION: u64 = 1 << 16;

/// Looks at the units before anything is erased.
pub(super) fn survey(shelf: &Shelf) -> Vec<Mounted> {
    let newest = |unit| shelf.flash.newest_generation(unit);
    let mounted = |unit| Mounted { unit, newest_generation: newest(unit) };
    shelf.flash.units().map(mounted).collect()
}

impl BlockLayer {
    /// How far the units have come, for the log.
    pub fn unit_marks(&self) -> Vec<UnitMark> {
        let flash = self.flash();
        let mark = |unit| UnitMark { unit, generation: flash.newest_generation(unit) };
        flash.units().filter(|unit| !self.inner.main.is_lost(*unit)).map(mark).collect()
    }

    /// The units that the mount found older than the log says. It matters only where something that is in use lacks a copy.
    pub fn old_units(&self, marks: &[UnitMark]) -> Vec<OldUnit> {
        let old = |mark: &UnitMark| {
            let mounted = self.inner.mounted.iter().find(|mounted| mounted.unit == mark.unit)?;
            let (found, was) = (mounted.newest_generation, mark.generation);
            let is_old = found + MISSED_SESSION <= was && !self.inner.main.is_lost(mark.unit);
            is_old.then_some(OldUnit { unit: mark.unit, found, was })
        };
        marks.iter().filter_map(old).collect()
    }
}
