//! The errors of volumes.

use softflash_ftl::FtlError;
use thiserror::Error;

/// An error of a volume or of its domain.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// No volume has this name.
    #[error("there is no volume `{name}`")]
    NoVolume {
        /// The name.
        name: String,
    },
    /// No snapshot of the volume has this name.
    #[error("volume `{volume}` has no snapshot `{name}`")]
    NoSnapshot {
        /// The volume.
        volume: String,
        /// The name.
        name: String,
    },
    /// The name is taken.
    #[error("`{name}` exists; choose another name, or delete it first")]
    Exists {
        /// The name.
        name: String,
    },
    /// The name cannot be one.
    #[error("a volume or snapshot cannot be named `{name}`: {reason}")]
    BadName {
        /// The name.
        name: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The size cannot be one.
    #[error("a volume cannot have {bytes} bytes: {reason}")]
    BadSize {
        /// The size.
        bytes: u64,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// No setting of a volume has this name.
    #[error(
        "there is no setting `{name}`; a volume has quota, iops, bandwidth, weight, temperature and \
         stream"
    )]
    NoSetting {
        /// The name.
        name: String,
    },
    /// The value of a setting cannot be one.
    #[error("the {name} of a volume cannot be `{value}`: {rule}")]
    BadSetting {
        /// The setting.
        name: String,
        /// The value.
        value: String,
        /// The values that it may have.
        rule: String,
    },
    /// A volume with snapshots cannot be deleted.
    #[error("volume `{name}` has the snapshot `{snapshot}`; delete its snapshots first")]
    HasSnapshots {
        /// The volume.
        name: String,
        /// Its newest snapshot.
        snapshot: String,
    },
    /// A snapshot with clones cannot be deleted.
    #[error("snapshot `{name}` is the parent of the clone `{clone}`; delete the clone first")]
    HasClones {
        /// The snapshot.
        name: String,
        /// One of its clones.
        clone: String,
    },
    /// A volume goes back to its newest snapshot only.
    #[error(
        "snapshot `{name}` is not the newest one of its volume; delete the newer ones (the newest is \
         `{newest}`), or clone `{name}`, promote the clone and rename it"
    )]
    NotNewest {
        /// The snapshot.
        name: String,
        /// The newest snapshot of the volume.
        newest: String,
    },
    /// Only a clone can be promoted.
    #[error("volume `{name}` is not a clone; only clones are promoted")]
    NotClone {
        /// The volume.
        name: String,
    },
    /// No set has as many copies of its volumes as were asked for.
    #[error(
        "{} has one copy of its volumes; `softflash set pair` (on a server FLASH.SET PAIR) makes a pair \
         of two sets", set.as_ref().map_or("each set".to_owned(), |set| format!("the set `{set}`"))
    )]
    TooFewCopies {
        /// The set, if one was named.
        set: Option<String>,
    },
    /// All numbers of images are used.
    #[error("the domain has numbered {most} volumes and snapshots, and can number no more")]
    TooManyImages {
        /// The greatest number.
        most: u32,
    },
    /// A smaller size would lose data.
    #[error(
        "volume `{name}` holds {lost} bytes beyond {size} bytes, up to byte {end}; a size of {size} \
         bytes would lose them"
    )]
    WouldLose {
        /// The volume.
        name: String,
        /// The size that was asked for.
        size: u64,
        /// Bytes of data beyond it.
        lost: u64,
        /// The end of the last of them.
        end: u64,
    },
    /// Clients use the volume or the snapshot.
    #[error("`{name}` is in use by {clients} NBD clients; disconnect them first")]
    InUse {
        /// The volume or the snapshot.
        name: String,
        /// How many they are.
        clients: usize,
    },
    /// A request beyond the end of a volume.
    #[error("bytes {offset}..{end} are beyond the end of the volume, which has {size} bytes")]
    BeyondEnd {
        /// The start.
        offset: u64,
        /// The end.
        end: u64,
        /// The size.
        size: u64,
    },
    /// A request that is not aligned to mapping units.
    #[error("offset {offset} and length {bytes} are not multiples of 4096 bytes")]
    Unaligned {
        /// The start.
        offset: u64,
        /// The length.
        bytes: u64,
    },
    /// A write to a snapshot.
    #[error("a snapshot is read-only; clone it to write")]
    ReadOnly,
    /// The volume was deleted.
    #[error("the volume was deleted")]
    Deleted,
    /// The domain is full.
    #[error(
        "the volumes' space is full ({used} of {usable} bytes in use); discard, or delete volumes or \
         snapshots"
    )]
    OutOfSpace {
        /// Bytes in use.
        used: u64,
        /// Bytes that can be used.
        usable: u64,
    },
    /// The data do not fit the units that would be left.
    #[error(
        "the volumes need {needed} bytes, and the units that are left have room for {usable}; discard, \
         or delete volumes or snapshots, or leave them more units"
    )]
    UnitsNeeded {
        /// Bytes of the data, with room to move them.
        needed: u64,
        /// Bytes that the units have room for.
        usable: u64,
    },
    /// Data of a unit that is to leave cannot be read, or moved.
    #[error(
        "unit {unit} stays, since not all of its data can be moved: {reason}; run `softflash check DIR`, \
         which names what is lost"
    )]
    NotDrained {
        /// The unit.
        unit: u16,
        /// What went wrong.
        reason: String,
    },
    /// The volume holds as much as its quota allows.
    #[error(
        "the quota of the volume is {quota} bytes, and it holds {used} with its snapshots; discard \
         data, delete snapshots, or raise the quota"
    )]
    QuotaExceeded {
        /// The quota in bytes.
        quota: u64,
        /// Bytes that the volume and its snapshots hold.
        used: u64,
    },
    /// Data was lost by the flash.
    #[error("data loss: bytes {offset}..{end} cannot be read: {reason}")]
    DataLoss {
        /// The start.
        offset: u64,
        /// The end.
        end: u64,
        /// The damage.
        reason: String,
    },
    /// The device cannot hold a mapped domain.
    #[error("the device cannot hold volumes: {reason}")]
    Unsupported {
        /// The reason.
        reason: String,
    },
    /// The domain of a shard could not be mounted.
    #[error(
        "the volumes of shard {shard} are not served: {reason}; stop the server and run `softflash \
         check DIR`, which names the damage and what can be done"
    )]
    NotMounted {
        /// The shard.
        shard: u16,
        /// The error of the mount.
        reason: String,
    },
    /// A new volume could have the name of one that is not known: its domain is not mounted.
    #[error("`{name}` may be the name of another volume: {not_mounted}")]
    MayExist {
        /// The name.
        name: String,
        /// Why that is not known.
        not_mounted: Box<VolumeError>,
    },
    /// The metadata on the flash is inconsistent.
    #[error("the volumes' metadata is damaged: {reason}")]
    Damaged {
        /// The inconsistency.
        reason: String,
    },
    /// Too many blocks of the flash are bad, or its dies are dead.
    #[error(
        "the flash of the volumes is worn out: it takes no more writes; copy the data elsewhere"
    )]
    WornOut,
    /// The domain was stopped.
    #[error("the volumes are shut down")]
    Stopped,
    /// The flash failed.
    #[error(transparent)]
    Flash(#[from] FtlError),
}
