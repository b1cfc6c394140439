//! Moves of volumes between domains, as the main thread sees them.

use super::moving::{Coming, Leaving, Verdict};
use super::registry::{ChangeError, Volumes};
use super::requests::Request;
use softflash_datadir::{Family, MoveError, MoveProgress};
use softflash_volume::VolumeError;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// Pieces between the two threads.
const PIECES: usize = 8;

/// Volumes that are moving.
#[derive(Clone)]
pub(crate) struct UnderWay {
    /// Their names.
    pub names: Vec<String>,
    /// The set to which they go.
    pub set: String,
    pub progress: Arc<MoveProgress>,
}

/// A move that can be.
pub(crate) struct PlannedMove {
    pub family: Family,
    /// The numbers of the domains in the handle.
    from: usize,
    to: usize,
    /// The numbers of their sets.
    pub sets: [u16; 2],
    pub progress: Arc<MoveProgress>,
    _under_way: UnderWayGuard,
}

/// Takes the mark of the move away on drop.
struct UnderWayGuard(Volumes);

impl Drop for UnderWayGuard {
    fn drop(&mut self) {
        self.0.set_under_way(None);
    }
}

/// Volumes of which both domains have everything; their clients wait.
pub(crate) struct CopiedMove {
    target: UnboundedSender<Request>,
    leaving: oneshot::Sender<Verdict>,
    coming: oneshot::Sender<Verdict>,
}

impl Volumes {
    /// Plans the move of a volume, with all that share data with it, to a set. Nobody changes their
    /// names, snapshots or settings until the plan is dropped.
    pub async fn plan_move(&self, name: &str, set: &str) -> Result<PlannedMove, ChangeError> {
        let _naming = self.naming().await;
        let all = self.describe().await?;
        let to = self.of_set(set, &all)?;
        let holds = |(_, of): &&(usize, super::requests::ShardVolumes)| {
            of.volumes.iter().any(|volume| volume.name == name)
        };
        let missing = || VolumeError::NoVolume { name: name.to_owned() };
        let unknown = || all.not_mounted.first().map_or_else(missing, |it| it.error.clone());
        let (from, source) = all.mounted.iter().find(holds).ok_or_else(unknown)?;
        let target = all.mounted.iter().find(|(number, _)| *number == to);
        let (_, target) = target.ok_or(VolumeError::Stopped)?;
        let (source_set, target_set) = (self.domain_of(*from)?, self.domain_of(to)?);
        if let Some(of) = [&source_set, &target_set].into_iter().find(|of| of.pair.is_some()) {
            return Err(MoveError::OfPair { set: of.name.clone() }.into());
        }
        if *from == to {
            let (volume, set) = (name.to_owned(), set.to_owned());
            return Err(MoveError::AlreadyThere { volume, set }.into());
        }
        let family = Family::of(name, &source.volumes).ok_or_else(missing)?;
        family.check_room(set, target.space)?;
        let progress = Arc::new(MoveProgress::begin(family.used_bytes()));
        self.set_under_way(Some(UnderWay {
            names: family.names(),
            set: set.to_owned(),
            progress: Arc::clone(&progress),
        }));
        Ok(PlannedMove {
            family,
            from: *from,
            to,
            sets: [source_set.config.domain, target_set.config.domain],
            progress,
            _under_way: UnderWayGuard(self.clone()),
        })
    }

    /// Copies everything. If it fails, the volumes are where they were; `Err` has, too, whether
    /// nothing is left of the copies.
    pub async fn copy(&self, planned: &PlannedMove) -> Result<CopiedMove, (MoveError, bool)> {
        let (pieces, received) = async_channel::bounded(PIECES);
        let (sent, was_sent) = oneshot::channel();
        let (came, has_come) = oneshot::channel();
        let (leaving, verdict_of_source) = oneshot::channel();
        let (coming, verdict_of_target) = oneshot::channel();
        let family = || planned.family.clone();
        let order = Coming { family: family(), pieces: received, came, verdict: verdict_of_target };
        let target = self.send(planned.to, Request::Come(Box::new(order)));
        let (family, progress) = (family(), Arc::clone(&planned.progress));
        let order = Leaving { family, progress, pieces, sent, verdict: verdict_of_source };
        let source = self.send(planned.from, Request::Leave(Box::new(order)));
        let (sent, came) = futures_util::future::join(was_sent, has_come).await;
        let stopped = |_| Err(MoveError::Interrupted);
        let both = [came.unwrap_or_else(stopped), sent.unwrap_or_else(stopped)];
        // Where one of them fails, the other one is interrupted.
        let is_cause = |error: &MoveError| *error != MoveError::Interrupted;
        let errors: Vec<MoveError> = both.into_iter().filter_map(Result::err).collect();
        let error = errors.iter().find(|error| is_cause(error)).or(errors.first()).cloned();
        match (error, target, source) {
            (None, Some(target), Some(_)) => Ok(CopiedMove { target, leaving, coming }),
            (error, _, _) => {
                // The clients go on at once: to delete the copy takes longer.
                let _ = tell(leaving, None).await;
                let is_undone = tell(coming, None).await.is_ok();
                Err((error.unwrap_or(MoveError::Interrupted), is_undone))
            }
        }
    }
}

impl CopiedMove {
    /// The target has the volumes: it shows them, the clients go on there, and the source deletes
    /// what it holds of them.
    pub async fn complete(self) -> Result<(), VolumeError> {
        let CopiedMove { target, leaving, coming } = self;
        tell(coming, Some(target.clone())).await?;
        tell(leaving, Some(target)).await
    }

    /// The source keeps the volumes, and the clients go on there. Fails if the target cannot delete
    /// what it holds of them.
    pub async fn give_up(self) -> Result<(), VolumeError> {
        let CopiedMove { leaving, coming, .. } = self;
        let stays = tell(leaving, None).await;
        tell(coming, None).await.and(stays)
    }
}

/// Tells a domain the verdict, and waits until it has acted on it.
async fn tell(
    domain: oneshot::Sender<Verdict>,
    moved: Option<UnboundedSender<Request>>,
) -> Result<(), VolumeError> {
    let (done, acted) = oneshot::channel();
    let stopped = || VolumeError::Stopped;
    domain.send(Verdict { moved, done }).map_err(|_| stopped())?;
    acted.await.map_err(|_| stopped())?
}
