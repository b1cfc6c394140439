//! What FLASH.VOLUME needs of a server with volumes. This crate knows no volumes itself.

use futures_util::future::BoxFuture;
use softflash_store::stats::UnitTelemetry;

/// A volume, as FLASH.VOLUME LIST shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeEntry {
    /// Its name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Bytes that it and its snapshots hold.
    pub used_bytes: u64,
    /// The most bytes that it and its snapshots may hold.
    pub quota_bytes: Option<u64>,
    /// The most requests a second.
    pub iops: Option<u32>,
    /// The most bytes a second.
    pub bandwidth_bytes_per_second: Option<u64>,
    /// Its share where volumes compete.
    pub weight: u16,
    /// How soon its data are overwritten.
    pub temperature: String,
    /// The stream of its data.
    pub stream: u8,
    /// Its snapshots, the oldest first.
    pub snapshots: Vec<String>,
    /// The set of units that holds it.
    pub set: String,
    /// Where it is moving to.
    pub moving: Option<Moving>,
}

/// A volume on its way to another set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moving {
    /// The set to which it goes.
    pub set: String,
    /// Bytes of data that were copied, of all volumes that go with it.
    pub copied_bytes: u64,
    /// Bytes of data that are left, as far as is known.
    pub left_bytes: u64,
}

/// All volumes together, as FLASH.STATS shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VolumeTotals {
    /// Bytes that volumes and snapshots hold.
    pub used_bytes: u64,
    /// Bytes that they may hold.
    pub usable_bytes: u64,
    /// Shards whose volumes refuse writes that take more space.
    pub full_shards: u64,
    /// Writes refused because there was no space, since the start.
    pub refused_writes: u64,
    /// Bytes programmed on the units of volumes by origin, with the names of the store's counters.
    pub program_bytes: [(&'static str, u64); 11],
}

/// All volumes, as FLASH.VOLUME LIST shows them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VolumeList {
    /// The volumes that are served, by name.
    pub volumes: Vec<VolumeEntry>,
    /// The shards whose volumes are not served.
    pub not_mounted: Vec<NotMounted>,
}

/// A shard whose volumes are not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotMounted {
    /// The number of the shard.
    pub shard: u64,
    /// Why, and the remedy.
    pub error: String,
}

/// A setting of a volume: its name and its value, which the volumes check.
pub type SettingText = (String, String);

/// A change that FLASH.VOLUME asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeChange {
    /// A new volume.
    Create {
        /// Its name.
        name: String,
        /// Its size.
        size_bytes: u64,
        /// Its settings.
        settings: Vec<SettingText>,
        /// The set of units that holds it; without one, that with the most unused space.
        set: Option<String>,
        /// The copies that it has at least.
        copies: u8,
    },
    /// Other settings.
    Set {
        /// The volume.
        name: String,
        /// Those that change.
        settings: Vec<SettingText>,
    },
    /// Another size.
    Resize {
        /// The volume.
        name: String,
        /// Its size from now on.
        size_bytes: u64,
        /// Whether data beyond it may be lost.
        shrink: bool,
    },
    /// Another name.
    Rename {
        /// The volume.
        name: String,
        /// Its name from now on.
        new: String,
    },
    /// The contents and the size of the newest snapshot.
    RollBack {
        /// The volume.
        volume: String,
        /// The snapshot.
        snapshot: String,
    },
    /// The snapshot of a clone and the older ones become those of the clone.
    Promote {
        /// The clone.
        name: String,
    },
    /// Another set of units, with all volumes that share data with it.
    Move {
        /// The volume.
        name: String,
        /// The set.
        set: String,
    },
    /// The end of a volume.
    Delete {
        /// The volume.
        name: String,
    },
    /// A snapshot.
    Snapshot {
        /// The volume.
        volume: String,
        /// The name of the snapshot.
        name: String,
    },
    /// The end of a snapshot.
    DeleteSnapshot {
        /// The volume.
        volume: String,
        /// The snapshot.
        name: String,
    },
    /// A new volume with the contents of a snapshot.
    Clone {
        /// The volume of the snapshot.
        volume: String,
        /// The snapshot.
        snapshot: String,
        /// The name of the new volume.
        name: String,
    },
}

impl VolumeChange {
    /// The volume that has to exist.
    pub fn existing(&self) -> Option<&str> {
        match self {
            VolumeChange::Create { .. } => None,
            VolumeChange::Set { name, .. }
            | VolumeChange::Resize { name, .. }
            | VolumeChange::Rename { name, .. }
            | VolumeChange::Promote { name }
            | VolumeChange::Move { name, .. }
            | VolumeChange::Delete { name } => Some(name),
            VolumeChange::Snapshot { volume, .. }
            | VolumeChange::RollBack { volume, .. }
            | VolumeChange::DeleteSnapshot { volume, .. }
            | VolumeChange::Clone { volume, .. } => Some(volume),
        }
    }

    /// The copies that a new volume has at least.
    pub fn copies(&self) -> u8 {
        match self {
            VolumeChange::Create { copies, .. } => *copies,
            _ => 1,
        }
    }

    /// The set that is chosen for a new volume.
    pub fn set(&self) -> Option<&str> {
        match self {
            VolumeChange::Create { set, .. } => set.as_deref(),
            _ => None,
        }
    }

    /// The name of a volume that there was not before.
    pub fn new_name(&self) -> Option<&str> {
        match self {
            VolumeChange::Create { name, .. }
            | VolumeChange::Clone { name, .. }
            | VolumeChange::Rename { new: name, .. } => Some(name),
            _ => None,
        }
    }
}

/// The volumes of a server. Errors are texts for people, which name the remedy.
pub trait VolumeAdmin: Send + Sync {
    /// All volumes.
    fn list(&self) -> BoxFuture<'static, Result<VolumeList, String>>;

    /// The figures of all volumes together.
    fn totals(&self) -> BoxFuture<'static, VolumeTotals>;

    /// The state of their units, by number.
    fn units(&self) -> BoxFuture<'static, Vec<UnitTelemetry>>;

    /// Carries out a change, which is durable when the future is ready.
    fn change(&self, change: VolumeChange) -> BoxFuture<'static, Result<(), String>>;
}
