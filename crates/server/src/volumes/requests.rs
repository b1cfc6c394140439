//! Messages to the domain of a shard.

use crate::nbd::client::Client;
use softflash_volume::{Domain, DomainCounters, DomainSpace, VolumeError, VolumeInfo};
use tokio::sync::oneshot;

/// A message to the thread of a domain. Who has stopped waiting for the answer does not get it.
pub(crate) enum Request {
    /// Describe the domain and its volumes.
    Describe(oneshot::Sender<ShardVolumes>),
    /// Tell what can be exported.
    Exports(oneshot::Sender<Vec<ExportInfo>>),
    /// Change volumes or snapshots.
    Change(Change, oneshot::Sender<Result<(), VolumeError>>),
    /// Serve an NBD client that has chosen an export of the domain.
    Serve(Box<Client>),
}

/// The state of a domain.
#[derive(Debug, Clone)]
pub(crate) struct ShardVolumes {
    pub volumes: Vec<VolumeInfo>,
    pub space: DomainSpace,
    pub counters: DomainCounters,
}

/// What NBD can export: a volume, or a snapshot as `VOLUME@SNAPSHOT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExportInfo {
    pub name: String,
    pub size_bytes: u64,
    pub read_only: bool,
}

/// A change of volumes or snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Create { name: String, size_bytes: u64 },
    Resize { name: String, size_bytes: u64 },
    Delete { name: String },
    Snapshot { volume: String, name: String },
    DeleteSnapshot { volume: String, name: String },
    Clone { volume: String, snapshot: String, name: String },
}

/// The character between a volume and its snapshot, which no name has.
pub(crate) const SNAPSHOT_MARK: char = '@';

impl Change {
    /// The volume that has to exist.
    pub fn existing(&self) -> Option<&str> {
        match self {
            Change::Create { .. } => None,
            Change::Resize { name, .. } | Change::Delete { name } => Some(name),
            Change::Snapshot { volume, .. }
            | Change::DeleteSnapshot { volume, .. }
            | Change::Clone { volume, .. } => Some(volume),
        }
    }

    /// The name of the volume that comes into being.
    pub fn new_name(&self) -> Option<&str> {
        match self {
            Change::Create { name, .. } | Change::Clone { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Carries it out; durable when it returns.
    pub async fn apply(&self, domain: &Domain) -> Result<(), VolumeError> {
        match self {
            Change::Create { name, size_bytes } => domain.create(name, *size_bytes).await,
            Change::Resize { name, size_bytes } => domain.resize(name, *size_bytes).await,
            Change::Delete { name } => domain.delete(name).await,
            Change::Snapshot { volume, name } => domain.snapshot(volume, name).await,
            Change::DeleteSnapshot { volume, name } => domain.delete_snapshot(volume, name).await,
            Change::Clone { volume, snapshot, name } => {
                domain.clone_snapshot(volume, snapshot, name).await
            }
        }
    }
}

/// All exports of a domain.
pub(super) fn exports(domain: &Domain) -> Vec<ExportInfo> {
    let mut all = Vec::new();
    for volume in domain.list() {
        for snapshot in &volume.snapshots {
            // Nothing can delete it in between, because there is only this thread.
            let opened = domain.open_snapshot(&volume.name, snapshot);
            if let Ok(size_bytes) = opened.and_then(|opened| opened.size_bytes()) {
                let name = format!("{}{SNAPSHOT_MARK}{snapshot}", volume.name);
                all.push(ExportInfo { name, size_bytes, read_only: true });
            }
        }
        let VolumeInfo { name, size_bytes, .. } = volume;
        all.push(ExportInfo { name, size_bytes, read_only: false });
    }
    all
}
