//! The handle of all domains, for any thread.

use super::moves::UnderWay;
use super::requests::{Answer, ExportInfo, PairChange, Request, ShardCounters, ShardVolumes};
use super::unit_changes::UnitChange;
use crate::nbd::client::Client;
use crate::telemetry::DomainStats;
use futures_util::future::join_all;
use softflash_datadir::{DomainLoad, MoveError, SetError, ShardDomain, most_free};
use softflash_ftl::UnitTelemetry;
use softflash_protocol::volumes::VolumeChange;
use softflash_volume::{MAPPING_UNIT_BYTES, VolumeError};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, MutexGuard, oneshot};

/// The volumes of all domains. A clone is the same handle.
#[derive(Clone)]
pub(crate) struct Volumes {
    shared: Arc<Shared>,
}

struct Shared {
    /// By number; `None` once its set was deleted.
    domains: RwLock<Vec<Option<Arc<Addressed>>>>,
    /// Held while volumes come into being or go, because names are unique over all domains.
    naming: Mutex<()>,
    /// The volumes that are moving.
    under_way: RwLock<Option<UnderWay>>,
    /// The names of volumes in the record of a move.
    recorded: RwLock<Vec<String>>,
}

/// A domain, which messages reach by its number in [`Shared::domains`].
struct Addressed {
    domain: ShardDomain,
    /// Callers wait for the answers, so the queue is as short as there are callers.
    requests: UnboundedSender<Request>,
}

/// A change of volumes that was refused.
#[derive(Debug, Error)]
pub(crate) enum ChangeError {
    /// There is no such set for a new volume.
    #[error(transparent)]
    Set(#[from] SetError),
    /// There is no set for volumes at all.
    #[error("no set of units is for volumes; FLASH.SET CREATE makes one of spare units")]
    NoSets,
    /// The volume is on its way to another set.
    #[error(
        "volume `{name}` is moving to the set `{set}`, and has no other changes meanwhile; \
         FLASH.VOLUME LIST shows how far it is"
    )]
    Moving {
        /// The volume.
        name: String,
        /// The set.
        set: String,
    },
    /// The name is one of a move whose record is not gone yet.
    #[error(
        "`{name}` is a name of a move of volumes whose record is still there: a new volume of this name \
         would not outlive the next start; use another name, or try again later, at the latest after \
         the next start"
    )]
    Recorded {
        /// The name.
        name: String,
    },
    /// The move of a volume.
    #[error(transparent)]
    Move(#[from] MoveError),
    /// The volumes.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

impl Volumes {
    /// The handle for these domains, and the receiver for the thread of each.
    pub fn new(domains: &[ShardDomain]) -> (Volumes, Vec<UnboundedReceiver<Request>>) {
        let shared = Arc::new(Shared {
            domains: RwLock::default(),
            naming: Mutex::new(()),
            under_way: RwLock::default(),
            recorded: RwLock::default(),
        });
        let volumes = Volumes { shared };
        let received = domains.iter().map(|domain| volumes.add(domain)).collect();
        (volumes, received)
    }

    /// Adds a domain; returns the receiver for its thread.
    pub fn add(&self, domain: &ShardDomain) -> UnboundedReceiver<Request> {
        let (requests, received) = unbounded_channel();
        let addressed = Arc::new(Addressed { domain: domain.clone(), requests });
        self.write().push(Some(addressed));
        received
    }

    /// The table of sets has changed: these domains are all.
    pub fn update(&self, domains: &[ShardDomain]) {
        for place in self.write().iter_mut() {
            let Some(before) = place.take() else { continue };
            let same = |now: &&ShardDomain| now.config.domain == before.domain.config.domain;
            *place = domains.iter().find(same).map(|now| {
                let requests = before.requests.clone();
                Arc::new(Addressed { domain: now.clone(), requests })
            });
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Option<Arc<Addressed>>>> {
        self.shared.domains.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// All domains, with their numbers.
    fn all(&self) -> Vec<(usize, Arc<Addressed>)> {
        let domains = self.shared.domains.read().unwrap_or_else(PoisonError::into_inner);
        let domains = domains.iter().enumerate();
        domains
            .filter_map(|(number, domain)| Some((number, Arc::clone(domain.as_ref()?))))
            .collect()
    }

    fn addressed(&self, number: usize) -> Option<Arc<Addressed>> {
        let domains = self.shared.domains.read().unwrap_or_else(PoisonError::into_inner);
        domains.get(number)?.clone()
    }

    /// Held while volumes come into being, go, or begin to move.
    pub(super) async fn naming(&self) -> MutexGuard<'_, ()> {
        self.shared.naming.lock().await
    }

    /// The volumes that are moving.
    pub fn under_way(&self) -> Option<UnderWay> {
        self.shared.under_way.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fails for a change of a volume that is moving, or to the name of one.
    fn refuse_moving(&self, change: &VolumeChange) -> Result<(), ChangeError> {
        let Some(moving) = self.under_way() else { return Ok(()) };
        let mut names = change.new_name().into_iter().chain(change.existing());
        match names.find(|name| moving.names.iter().any(|it| it == name)) {
            Some(name) => {
                Err(ChangeError::Moving { name: name.to_owned(), set: moving.set.clone() })
            }
            None => Ok(()),
        }
    }

    pub(super) fn set_under_way(&self, now: Option<UnderWay>) {
        *self.shared.under_way.write().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// The record of a move names these volumes: the next start deletes what one of its sets has of
    /// them, so that no other volume may have their names.
    pub fn set_recorded(&self, names: Vec<String>) {
        *self.shared.recorded.write().unwrap_or_else(PoisonError::into_inner) = names;
    }

    fn is_recorded(&self, name: &str) -> bool {
        let recorded = self.shared.recorded.read().unwrap_or_else(PoisonError::into_inner);
        recorded.iter().any(|it| it == name)
    }

    /// The description of a domain.
    pub(super) fn domain_of(&self, number: usize) -> Result<ShardDomain, VolumeError> {
        Ok(self.addressed(number).ok_or(VolumeError::Stopped)?.domain.clone())
    }

    /// The name of the set of a domain.
    pub fn name_of(&self, number: usize) -> String {
        self.addressed(number).map(|it| it.domain.name.clone()).unwrap_or_default()
    }

    /// Sends a message to a domain; returns the way to it, if it is there.
    pub(super) fn send(&self, number: usize, request: Request) -> Option<UnboundedSender<Request>> {
        let addressed = self.addressed(number)?;
        addressed.requests.send(request).ok()?;
        Some(addressed.requests.clone())
    }

    /// Completes when a set is mounted.
    pub async fn ready(&self, set: &str) -> Result<(), ChangeError> {
        let number = self.of_name(set)?;
        Ok(self.ask(number, Request::Describe).await.map(|_| ())?)
    }

    /// Changes the units of a set.
    pub async fn change_units(&self, set: &str, change: UnitChange) -> Result<(), ChangeError> {
        let number = self.of_name(set)?;
        Ok(self.ask(number, |answer| Request::ChangeUnits(change, answer)).await?)
    }

    /// Fails if two sets cannot become a pair: both hold volumes.
    pub async fn check_pair(&self, sets: [&str; 2]) -> Result<(), ChangeError> {
        let mut holding = Vec::new();
        for set in sets {
            let number = self.of_name(set)?;
            let described = self.ask(number, Request::Describe).await?;
            holding.extend(described.volumes.first().map(|_| set.to_owned()));
        }
        match <[String; 2]>::try_from(holding) {
            Ok(names) => Err(SetError::BothHoldVolumes { names }.into()),
            Err(_) => Ok(()),
        }
    }

    /// Fails unless a set is the second of its pair: clients use the volumes by the first one.
    pub async fn check_second(&self, set: &str) -> Result<(), ChangeError> {
        let number = self.of_name(set)?;
        match self.ask(number, Request::Describe).await {
            Ok(described) if !described.is_second && described.is_paired => {
                Err(SetError::FirstOfPair { name: set.to_owned() }.into())
            }
            // Nobody uses one that is not mounted.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Changes the pair of a set.
    pub async fn change_pair(&self, set: &str, change: PairChange) -> Result<(), ChangeError> {
        let number = self.of_name(set)?;
        Ok(self.ask(number, |answer| Request::ChangePair(change, answer)).await?)
    }

    /// As [`end`](Volumes::end), of a set whose volumes another one has, too.
    pub async fn end_copy(
        &self,
        set: &str,
        forget: impl Future<Output = Result<(), String>>,
    ) -> Result<(), String> {
        let _naming = self.shared.naming.lock().await;
        let number = self.of_name(set).map_err(|error| error.to_string())?;
        let addressed = self.addressed(number).ok_or_else(|| VolumeError::Stopped.to_string())?;
        forget.await?;
        ask(&addressed, Request::End).await.map_err(|error| error.to_string())
    }

    /// Calls `forget`, which takes a set without volumes out of the table of sets, and ends its
    /// domain then. No volume comes into being meanwhile.
    pub async fn end(
        &self,
        set: &str,
        forget: impl Future<Output = Result<(), String>>,
    ) -> Result<(), String> {
        let _naming = self.shared.naming.lock().await;
        let told = |error: VolumeError| error.to_string();
        let number = self.of_name(set).map_err(|error| error.to_string())?;
        let described = self.ask(number, Request::Describe).await.map_err(told)?;
        if let Some(volume) = described.volumes.first() {
            let (name, volume) = (set.to_owned(), volume.name.clone());
            let holds = SetError::HoldsVolumes { name, volumes: described.volumes.len(), volume };
            return Err(holds.to_string());
        }
        let addressed = self.addressed(number).ok_or(VolumeError::Stopped).map_err(told)?;
        forget.await?;
        ask(&addressed, Request::End).await.map_err(told)
    }

    /// The state of each domain.
    pub async fn describe(&self) -> Result<Answers<ShardVolumes>, VolumeError> {
        self.ask_all(Request::Describe).await
    }

    /// The counters of each domain; none at all if one of them has ended.
    pub async fn stats(&self) -> Vec<DomainStats> {
        let all = self.ask_all(Request::Stats).await.unwrap_or_default();
        let named = |number: usize| Some(DomainStats::of(&self.addressed(number)?.domain));
        let mounted = all.mounted.into_iter();
        let mounted =
            mounted.filter_map(|(number, of)| Some((number, domain_stats(named(number)?, of))));
        let others = all.not_mounted.into_iter().filter_map(|of| {
            let not_mounted = Some(of.error.to_string());
            Some((of.domain, DomainStats { not_mounted, ..named(of.domain)? }))
        });
        let mut stats: Vec<(usize, DomainStats)> = mounted.chain(others).collect();
        stats.sort_by_key(|(number, _)| *number);
        stats.into_iter().map(|(_, of)| of).collect()
    }

    /// The state of each unit of the domains that are mounted, by number; none at all if a domain
    /// has ended.
    pub async fn units(&self) -> Vec<UnitTelemetry> {
        let all = self.ask_all(Request::Units).await.unwrap_or_default();
        let mut units: Vec<_> = all.mounted.into_iter().flat_map(|(_, units)| units).collect();
        units.sort_by_key(|unit| unit.unit);
        units
    }

    /// The exports of each domain.
    pub async fn exports(&self) -> Result<Answers<Vec<ExportInfo>>, VolumeError> {
        self.ask_all(Request::Exports).await
    }

    /// Carries out a change in the domain that it concerns; durable when it returns.
    pub async fn change(&self, change: VolumeChange) -> Result<(), ChangeError> {
        let naming = match &change {
            VolumeChange::Create { .. }
            | VolumeChange::Clone { .. }
            | VolumeChange::Rename { .. }
            | VolumeChange::Delete { .. } => Some(self.shared.naming.lock().await),
            _ => None,
        };
        // At the switch of a move neither set may show a volume, and it may end or begin meanwhile.
        self.refuse_moving(&change)?;
        let all = self.describe().await?;
        self.refuse_moving(&change)?;
        let holder = |name: &str| {
            let holds = |domain: &ShardVolumes| domain.volumes.iter().any(|it| it.name == name);
            all.mounted.iter().find(|(_, domain)| holds(domain)).map(|(number, _)| *number)
        };
        let unknown = all.not_mounted.first().map(|domain| domain.error.clone());
        let domain = match (change.existing(), change.set()) {
            (Some(name), _) => holder(name).ok_or_else(|| {
                let missing = || VolumeError::NoVolume { name: name.to_owned() };
                unknown.clone().unwrap_or_else(missing)
            })?,
            (None, Some(set)) => {
                let number = self.of_set(set, &all)?;
                let of = all.mounted.iter().find(|(it, _)| *it == number);
                if of.is_some_and(|(_, of)| !of.has_copies(change.copies())) {
                    return Err(SetError::OneCopy { name: set.to_owned() }.into());
                }
                number
            }
            (None, None) => {
                let load = |domain: &ShardVolumes| DomainLoad::of(domain.space, &domain.volumes);
                let able = |(_, of): &&(usize, ShardVolumes)| {
                    !of.is_second && of.has_copies(change.copies())
                };
                let able: Vec<_> = all.mounted.iter().filter(able).collect();
                let most_free = most_free(able.iter().map(|(_, domain)| load(domain)));
                let chosen = most_free.and_then(|place| able.get(place));
                let no_pair = change.copies() > 1 && !all.mounted.is_empty();
                let none = || match (&unknown, no_pair) {
                    (Some(error), _) => ChangeError::Volume(error.clone()),
                    (None, true) => SetError::NoPair.into(),
                    (None, false) => ChangeError::NoSets,
                };
                chosen.map(|(number, _)| *number).ok_or_else(none)?
            }
        };
        if let Some(name) = change.new_name() {
            let name = name.to_owned();
            match (holder(&name), unknown) {
                (Some(_), _) => return Err(VolumeError::Exists { name }.into()),
                (None, Some(error)) => {
                    let not_mounted = Box::new(error);
                    return Err(VolumeError::MayExist { name, not_mounted }.into());
                }
                (None, None) if self.is_recorded(&name) => {
                    return Err(ChangeError::Recorded { name });
                }
                (None, None) => {}
            }
        }
        let done = self.ask(domain, |answer| Request::Change(change, answer)).await;
        drop(naming);
        Ok(done?)
    }

    /// The mounted domain of a set.
    pub(super) fn of_set<T>(&self, set: &str, all: &Answers<T>) -> Result<usize, ChangeError> {
        let number = self.of_name(set)?;
        match all.not_mounted.iter().find(|it| it.domain == number) {
            Some(not_mounted) => Err(not_mounted.error.clone().into()),
            None => Ok(number),
        }
    }

    fn of_name(&self, set: &str) -> Result<usize, ChangeError> {
        let all = self.all();
        if let Some((number, _)) = all.iter().find(|(_, it)| it.domain.name == set) {
            return Ok(*number);
        }
        let sets = all.iter().map(|(_, it)| it.domain.name.clone()).collect();
        Err(SetError::NoSet { name: set.to_owned(), sets }.into())
    }

    /// The number of the shard whose thread has a domain.
    pub fn shard_of(&self, domain: usize) -> u64 {
        self.addressed(domain).map_or(0, |it| it.domain.shard.0.into())
    }

    /// Hands a client to the domain of its export. If its thread has ended, the client is
    /// disconnected.
    pub fn serve(&self, domain: usize, client: Client) {
        if let Some(domain) = self.addressed(domain) {
            let _ = domain.requests.send(Request::Serve(Box::new(client)));
        }
    }

    async fn ask_all<T>(
        &self,
        request: impl Fn(Answer<T>) -> Request,
    ) -> Result<Answers<T>, VolumeError> {
        let all = self.all();
        let asked = all.iter().map(|(_, domain)| ask(domain, &request));
        let mut answers = Answers::default();
        let answered = join_all(asked).await;
        for (domain, answer) in all.iter().map(|(number, _)| *number).zip(answered) {
            match answer {
                // Its set was deleted meanwhile.
                Err(VolumeError::Stopped) if self.addressed(domain).is_none() => {}
                Ok(answer) => answers.mounted.push((domain, answer)),
                Err(error @ VolumeError::NotMounted { .. }) => {
                    answers.not_mounted.push(NotMounted { domain, error });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    async fn ask<T>(
        &self,
        domain: usize,
        request: impl FnOnce(Answer<T>) -> Request,
    ) -> Result<T, VolumeError> {
        ask(&*self.addressed(domain).ok_or(VolumeError::Stopped)?, request).await
    }
}

async fn ask<T>(
    domain: &Addressed,
    request: impl FnOnce(Answer<T>) -> Request,
) -> Result<T, VolumeError> {
    let (answer, answered) = oneshot::channel();
    // A thread that has ended has stopped its domain.
    domain.requests.send(request(answer)).map_err(|_| VolumeError::Stopped)?;
    answered.await.map_err(|_| VolumeError::Stopped)?
}

/// The answers of all domains, in their order.
pub(crate) struct Answers<T> {
    /// Each with the number of its domain.
    pub mounted: Vec<(usize, T)>,
    /// The domains that could not be mounted.
    pub not_mounted: Vec<NotMounted>,
}

/// A domain that could not be mounted.
pub(crate) struct NotMounted {
    pub domain: usize,
    pub error: VolumeError,
}

impl<T> Default for Answers<T> {
    fn default() -> Answers<T> {
        Answers { mounted: Vec::new(), not_mounted: Vec::new() }
    }
}

fn domain_stats(named: DomainStats, of: ShardCounters) -> DomainStats {
    let bytes = |units: u64| units * MAPPING_UNIT_BYTES as u64;
    DomainStats {
        volume_bytes_written: bytes(of.counters.written),
        volume_bytes_collected: bytes(of.counters.collected),
        volume_flushes: of.counters.flushes,
        volume_used_bytes: of.space.used_bytes,
        volume_usable_bytes: of.space.usable_bytes,
        pair: of.pair,
        window: of.window,
        volume_full: u64::from(of.space.is_full),
        volume_refused_writes: of.counters.refused,
        programmed: of.programmed,
        by_volume: of.volumes,
        draining_bytes: of.draining_bytes,
        ..named
    }
}
