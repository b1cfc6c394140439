//! The geometry of a device, as the layers above need it.

use serde::{Deserialize, Serialize};
use softflash_base::UnitSet;

/// The geometry of one unit. All units of a device have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitGeometry {
    /// Dies that work in parallel inside the unit.
    pub dies: u8,
    /// Planes per die that one multi-plane operation can cover (at most [`MAX_PLANES`]).
    pub planes: u8,
    /// Erase blocks per plane, bad ones included.
    pub blocks_per_plane: u32,
    /// Pages per erase block.
    pub pages_per_block: u32,
    /// Bytes per page, spare area not included; a power of two, at least 4096.
    pub page_bytes: u32,
    /// Commands that a die accepts before its oldest completes: 1 or 2 for real dies (2 with a
    /// cache register), more where a "die" is an extent of a device with a queue of its own.
    pub die_queue_depth: u16,
}

/// The most planes that a multi-plane command covers.
pub const MAX_PLANES: usize = 4;

impl UnitGeometry {
    /// Pages in one row: the same page of one block in every plane of every die of the unit.
    pub fn row_pages(&self) -> u32 {
        u32::from(self.dies) * u32::from(self.planes)
    }

    /// Pages in a superblock: one block of every plane of every die.
    pub fn superblock_pages(&self) -> u32 {
        self.row_pages() * self.pages_per_block
    }

    /// Bytes in a superblock.
    pub fn superblock_bytes(&self) -> u64 {
        u64::from(self.superblock_pages()) * u64::from(self.page_bytes)
    }

    /// Bytes in the unit, bad blocks included.
    pub fn unit_bytes(&self) -> u64 {
        self.superblock_bytes() * u64::from(self.blocks_per_plane)
    }
}

/// The description of a device in lists for users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The backend: `file` or `model`.
    pub backend: String,
    /// Made when the device was formatted; part of the identity of everything written to it.
    pub uuid: u128,
    /// Number of units.
    pub units: u16,
    /// The geometry of each unit.
    pub geometry: UnitGeometry,
    /// Notes of the backend, such as `io_uring, O_DIRECT` or why it fell back.
    pub detail: String,
}

impl DeviceInfo {
    /// All units of the device.
    pub fn all_units(&self) -> UnitSet {
        UnitSet::from(0..self.units)
    }
}
