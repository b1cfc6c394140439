//! The state of each unit, for placement, users and tests.

use crate::policy::bad_block;
use crate::program_bytes::ProgramBytes;
use crate::service::Service;
use serde::Serialize;
use softflash_base::UnitId;

/// Number of superblocks of a unit in each state. The sum is the number of superblocks of the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SpaceAccount {
    /// Erased, with an erase header; ready to be written. Serialized as `prepared`.
    #[serde(rename = "prepared")]
    pub erased: u32,
    /// Free, to be erased before use (never written, or released). Serialized as `reclaimable`.
    #[serde(rename = "reclaimable")]
    pub erase_pending: u32,
    /// Open for appends.
    pub open: u32,
    /// Full or sealed, with data of their owner.
    pub live: u32,
    /// Out of service: too many of their blocks are bad.
    pub bad: u32,
}

impl SpaceAccount {
    /// Superblocks without data.
    pub fn free(&self) -> u32 {
        self.erased + self.erase_pending
    }

    /// Superblocks that can be allocated; none if the unit is worn out.
    pub fn allocatable(&self) -> u32 {
        if self.is_worn_out() { 0 } else { self.free() }
    }

    /// Whether the unit is read-only because too many superblocks are bad.
    pub fn is_worn_out(&self) -> bool {
        bad_block::worn_out(self.bad, self.total())
    }

    /// All superblocks of the unit.
    pub fn total(&self) -> u32 {
        self.free() + self.open + self.live + self.bad
    }
}

/// Whether a unit takes reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitState {
    /// It takes reads and writes.
    #[default]
    Online,
    /// It takes reads and has no free superblock.
    Full,
    /// It is read-only: too many blocks are bad.
    ReadOnly,
}

/// The state and the counters of one unit.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct UnitTelemetry {
    /// The unit.
    pub unit: UnitId,
    /// Whether it takes reads and writes.
    pub state: UnitState,
    /// Commands waiting or in the device.
    pub queue: u32,
    /// Time since the mount with at least one command in the device, in nanoseconds, as a mean over
    /// the dies.
    pub busy_ns: u64,
    /// Superblocks by state.
    pub space: SpaceAccount,
    /// Bytes of a superblock that its owner can write.
    pub superblock_payload_bytes: u64,
    /// Least erase count of a good block, counting the erases that headers on the flash record.
    pub erase_count_min: u32,
    /// Mean erase count.
    pub erase_count_mean: f64,
    /// Greatest erase count.
    pub erase_count_max: u32,
    /// Blocks marked bad.
    pub bad_blocks: u32,
    /// Header pages that the mount found damaged: torn by a power cut, or lost. Erase counts that
    /// only such a header recorded are lost.
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
    /// The same by origin.
    pub programmed: ProgramBytes,
    /// Commands that failed.
    pub errors: u64,
    /// How fast the device serves its commands, of late.
    pub service: Service,
}
