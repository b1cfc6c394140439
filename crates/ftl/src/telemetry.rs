//! What comes up: the state of each unit, for placement, users and tests.

use crate::policy::bad_block;
use serde::Serialize;
use softflash_base::UnitId;

/// Where the superblocks of a unit are. The sum is the number of superblocks that the unit has, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SpaceAccount {
    /// Erased, ready to be written.
    pub prepared: u32,
    /// Free, to be erased before use (never written, or released).
    pub reclaimable: u32,
    /// Open for appends.
    pub open: u32,
    /// Full or sealed, holding data of their owner.
    pub live: u32,
    /// Out of service: too many of their blocks are bad.
    pub bad: u32,
}

impl SpaceAccount {
    /// Superblocks that hold nothing.
    pub fn free(&self) -> u32 {
        self.prepared + self.reclaimable
    }

    /// Superblocks that can be allocated: of a unit that is worn out, none.
    pub fn allocatable(&self) -> u32 {
        if self.is_worn_out() { 0 } else { self.free() }
    }

    /// Whether it can be read and no more written.
    pub fn is_worn_out(&self) -> bool {
        bad_block::worn_out(self.bad, self.total())
    }

    /// All superblocks of the unit.
    pub fn total(&self) -> u32 {
        self.free() + self.open + self.live + self.bad
    }
}

/// Whether a unit serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitState {
    /// It works.
    #[default]
    Online,
    /// It works and has no free superblock.
    Full,
    /// It can be read and no more written: too many bad blocks.
    ReadOnly,
}

/// One unit, now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnitTelemetry {
    /// The unit.
    pub unit: UnitId,
    /// Whether it serves.
    pub state: UnitState,
    /// Requests waiting or under way.
    pub queue: u32,
    /// Time with at least one command under way since the mount, in nanoseconds, averaged over dies.
    pub busy_ns: u64,
    /// Superblocks by state.
    pub space: SpaceAccount,
    /// Bytes of a superblock that its owner can write.
    pub superblock_payload_bytes: u64,
    /// The least erase count of a good block, as the headers on the flash tell it.
    pub erase_count_min: u32,
    /// Mean erase count.
    pub erase_count_mean: f64,
    /// Greatest erase count.
    pub erase_count_max: u32,
    /// Blocks marked bad.
    pub bad_blocks: u32,
    /// Header pages that the mount found damaged: cut off, or lost. What lost ones told of erases may stand nowhere else; erase
    /// counts are those that are left.
    pub damaged_headers: u32,
    /// Commands since the mount: reads.
    pub reads: u64,
    /// Programs.
    pub programs: u64,
    /// Erases.
    pub erases: u64,
    /// Bytes read from the device.
    pub bytes_read: u64,
    /// Bytes programmed, headers included.
    pub bytes_programmed: u64,
    /// Commands that failed.
    pub errors: u64,
}
