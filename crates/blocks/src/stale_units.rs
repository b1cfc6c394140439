//! Rollback detection: finds units that were restored from an old image, for example from a
//! snapshot of a volume.
//!
//! The generation of a unit's superblocks rises with every erase, and the FTL keeps the greatest
//! one on the flash. The log, whose copies are on other units, records it as a [`UnitMark`].

use crate::pool::{UnitMark, UnitPool};

/// A unit that was restored from an old image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleUnit {
    /// The unit.
    pub unit: u16,
    /// The greatest generation found on it.
    pub found: u64,
    /// The greatest generation that the log recorded.
    pub was: u64,
}

impl std::fmt::Display for StaleUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let StaleUnit { unit, found, was } = self;
        write!(
            f,
            "unit {unit} is stale: its superblocks end at generation {found}, and the log recorded {was}; it was restored \
             from an old image, and its blocks are rewritten from their other copies"
        )
    }
}

/// The lag in generations of a unit that missed a session: each session begins this much higher.
/// The lag is smaller where a power cut came between the erase of the newest superblock and its
/// next header.
const MISSED_SESSION: u64 = 1 << 16;

/// Units whose generations were behind the log's marks when they were `mounted`, without lost
/// units.
pub(crate) fn find(mounted: &[UnitMark], marks: &[UnitMark], pool: &UnitPool) -> Vec<StaleUnit> {
    let stale = |mark: &UnitMark| {
        let mounted = mounted.iter().find(|mounted| mounted.unit == mark.unit)?;
        let (found, was) = (mounted.generation, mark.generation);
        let is_stale = found + MISSED_SESSION <= was && !pool.is_lost(mark.unit);
        is_stale.then_some(StaleUnit { unit: mark.unit, found, was })
    };
    marks.iter().filter_map(stale).collect()
}
