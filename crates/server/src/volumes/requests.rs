//! Messages to a domain on the thread of its shard.

use super::moving::{Coming, Leaving};
use super::unit_changes::UnitChange;
use crate::nbd::client::Client;
use softflash_ftl::{ProgramBytes, UnitTelemetry};
use softflash_protocol::volumes::{SettingText, VolumeChange};
use softflash_volume::{
    Domain, DomainCounters, DomainSpace, PairFigures, Setting, VolumeError, VolumeFigures,
    VolumeInfo, WindowState,
};
use std::time::Duration;
use tokio::sync::oneshot;

/// The answer to a message. A caller that has stopped waiting gets none.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, VolumeError>>;

/// A message to the thread of a domain.
pub(crate) enum Request {
    /// Describe the domain and its volumes.
    Describe(Answer<ShardVolumes>),
    /// Tell the space and the counters; unlike a description, this does not walk the volumes.
    Stats(Answer<ShardCounters>),
    /// Tell the state of each unit.
    Units(Answer<Vec<UnitTelemetry>>),
    /// Tell what can be exported.
    Exports(Answer<Vec<ExportInfo>>),
    /// Change volumes or snapshots.
    Change(VolumeChange, Answer<()>),
    /// Change the units of the domain.
    ChangeUnits(UnitChange, Answer<()>),
    /// Change the pair that the domain is one of.
    ChangePair(PairChange, Answer<()>),
    /// End the domain, whose set is deleted, and give its units up.
    End(Answer<()>),
    /// Let volumes go to another domain.
    Leave(Box<Leaving>),
    /// Take volumes of another domain.
    Come(Box<Coming>),
    /// Serve an NBD client that has chosen an export of the domain.
    Serve(Box<Client>),
}

/// A change of a pair.
pub(crate) enum PairChange {
    /// Other windows, or none.
    Window(Option<Duration>),
    /// The pair ends, and the domain keeps the volumes.
    End,
}

/// The counters of a domain, and the figures of its volumes.
#[derive(Debug, Clone)]
pub(crate) struct ShardCounters {
    pub space: DomainSpace,
    /// Bytes of data in units that leave the domain.
    pub draining_bytes: u64,
    pub counters: DomainCounters,
    pub programmed: ProgramBytes,
    pub volumes: Vec<VolumeFigures>,
    pub pair: Option<PairFigures>,
    pub window: Option<WindowState>,
}

/// The state of a domain.
#[derive(Debug, Clone)]
pub(crate) struct ShardVolumes {
    pub volumes: Vec<VolumeInfo>,
    pub space: DomainSpace,
    /// Whether the other domain of a pair has its volumes.
    pub is_second: bool,
    /// Whether its volumes have two copies.
    pub is_paired: bool,
}

impl ShardVolumes {
    /// Whether volumes of the domain have so many copies.
    pub fn has_copies(&self, copies: u8) -> bool {
        copies <= if self.is_paired { 2 } else { 1 }
    }
}

/// What NBD can export: a volume, or a snapshot as `VOLUME@SNAPSHOT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExportInfo {
    pub name: String,
    pub size_bytes: u64,
    pub read_only: bool,
}

/// The character between a volume and its snapshot, which no name has.
pub(crate) const SNAPSHOT_MARK: char = '@';

/// Carries a change out; durable when it returns.
pub(super) async fn apply(change: VolumeChange, domain: &Domain) -> Result<(), VolumeError> {
    match &change {
        VolumeChange::Create { name, size_bytes, settings, .. } => {
            domain.create_with(name, *size_bytes, &parse(settings)?).await?;
            warn_if_larger_than_its_domain(name, domain)
        }
        VolumeChange::Set { name, settings } => domain.set(name, &parse(settings)?).await,
        VolumeChange::Resize { name, size_bytes, shrink: true } => {
            domain.shrink(name, *size_bytes).await?;
            warn_if_larger_than_its_domain(name, domain)
        }
        VolumeChange::Resize { name, size_bytes, shrink: false } => {
            domain.resize(name, *size_bytes).await?;
            warn_if_larger_than_its_domain(name, domain)
        }
        VolumeChange::Rename { name, new } => domain.rename(name, new).await,
        VolumeChange::RollBack { volume, snapshot } => domain.roll_back(volume, snapshot).await,
        VolumeChange::Promote { name } => domain.promote(name).await,
        VolumeChange::Delete { name } => domain.delete(name).await,
        // One domain cannot do it: the sets do.
        VolumeChange::Move { set, .. } => Err(VolumeError::Unsupported {
            reason: format!("a volume moves to the set `{set}` by FLASH.VOLUME MOVE only"),
        }),
        VolumeChange::Snapshot { volume, name } => domain.snapshot(volume, name).await,
        VolumeChange::DeleteSnapshot { volume, name } => domain.delete_snapshot(volume, name).await,
        VolumeChange::Clone { volume, snapshot, name } => {
            domain.clone_snapshot(volume, snapshot, name).await?;
            warn_if_larger_than_its_domain(name, domain)
        }
    }
}

/// Volumes are thin, so this is no error; but one that cannot be filled may surprise.
fn warn_if_larger_than_its_domain(name: &str, domain: &Domain) -> Result<(), VolumeError> {
    let size_bytes = domain.volume(name)?.size_bytes()?;
    let usable_bytes = domain.space().usable_bytes;
    if size_bytes > usable_bytes {
        tracing::warn!(
            volume = name,
            size_bytes,
            usable_bytes,
            "the volume is larger than the space that it shares with the volumes of its set: \
             writes fail once that is full"
        );
    }
    Ok(())
}

/// The exports that a change would take away, or whose contents it would change.
pub(super) fn taken_away(change: &VolumeChange, domain: &Domain) -> Vec<String> {
    let export = |volume: &str, snapshot: &str| format!("{volume}{SNAPSHOT_MARK}{snapshot}");
    match change {
        VolumeChange::Delete { name } | VolumeChange::RollBack { volume: name, .. } => {
            vec![name.clone()]
        }
        VolumeChange::DeleteSnapshot { volume, name } => vec![export(volume, name)],
        VolumeChange::Rename { name, .. } => {
            let volume = domain.list().into_iter().find(|volume| volume.name == *name);
            let snapshots = volume.map(|volume| volume.snapshots).unwrap_or_default();
            let snapshots = snapshots.iter().map(|snapshot| export(name, snapshot));
            [name.clone()].into_iter().chain(snapshots).collect()
        }
        VolumeChange::Promote { name } => {
            let moved = domain.to_promote(name).into_iter();
            moved.map(|(volume, snapshot)| export(&volume, &snapshot)).collect()
        }
        VolumeChange::Create { .. }
        | VolumeChange::Move { .. }
        | VolumeChange::Set { .. }
        | VolumeChange::Resize { .. }
        | VolumeChange::Snapshot { .. }
        | VolumeChange::Clone { .. } => Vec::new(),
    }
}

/// Whether no client may begin until the change is made: it would have an export under a name, or
/// with contents, that are others afterwards.
pub(super) fn is_exclusive(change: &VolumeChange) -> bool {
    matches!(
        change,
        VolumeChange::Rename { .. } | VolumeChange::RollBack { .. } | VolumeChange::Promote { .. }
    )
}

fn parse(settings: &[SettingText]) -> Result<Vec<Setting>, VolumeError> {
    settings.iter().map(|(name, value)| Setting::parse(name, value)).collect()
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
