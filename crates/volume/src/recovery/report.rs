//! The result of a recovery.

/// The result of a recovery, for logs and tests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// Superblocks of the domain.
    pub superblocks: u32,
    /// The number of the root; 0 if there was none.
    pub root: u64,
    /// Leaves that were read.
    pub leaves: u32,
    /// Frames behind the root.
    pub frames: u64,
    /// Mapping units of frames that were never durable, and that the power cut destroyed.
    pub torn: u64,
    /// Frames that were durable and cannot be found any more.
    pub lost_frames: u32,
    /// Mapping units of volumes and snapshots whose data are lost, with those of earlier mounts:
    /// reads of them fail.
    pub lost_units: u64,
    /// Units that were restored from an older image.
    pub stale_units: Vec<StaleUnit>,
    /// Older roots that were taken because newer ones could not be read.
    pub lost_roots: u32,
    /// Copies of parts of the root that cannot be read, or whose frame has lost its head.
    pub damaged_root_copies: u32,
    /// Halves of leaves of which one copy could not be read.
    pub copied_halves: u32,
    /// Halves of leaves that could not be read and were rebuilt from frames.
    pub rebuilt_halves: u32,
    /// Halves of leaves that could not be rebuilt: their mapping units are lost.
    pub lost_halves: u32,
}

impl RecoveryReport {
    /// Whether leaves of the map could not be read.
    pub fn has_damaged_leaves(&self) -> bool {
        self.copied_halves + self.rebuilt_halves + self.lost_halves > 0
    }
}

/// A unit that was restored from an older image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleUnit {
    /// The unit.
    pub unit: u16,
    /// The greatest generation on it.
    pub found: u64,
    /// The greatest generation that the root recorded.
    pub was: u64,
}
