//! The handle of all domains, for any thread.

use super::requests::{Answer, ExportInfo, Request, ShardCounters, ShardVolumes};
use crate::nbd::client::Client;
use crate::telemetry::DomainStats;
use futures_util::future::join_all;
use softflash_datadir::{DomainLoad, SetError, ShardDomain, most_free};
use softflash_ftl::UnitTelemetry;
use softflash_protocol::volumes::VolumeChange;
use softflash_volume::{MAPPING_UNIT_BYTES, VolumeError};
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, oneshot};

/// The volumes of all domains. A clone is the same handle.
#[derive(Clone)]
pub(crate) struct Volumes {
    shared: Arc<Shared>,
}

struct Shared {
    domains: Vec<Addressed>,
    /// Held while volumes come into being or go, because names are unique over all domains.
    naming: Mutex<()>,
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
    /// The volumes.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

impl Volumes {
    /// The handle for these domains, and the receiver for the thread of each.
    pub fn new(domains: &[ShardDomain]) -> (Volumes, Vec<UnboundedReceiver<Request>>) {
        let addressed = |domain: &ShardDomain| {
            let (requests, received) = unbounded_channel();
            (Addressed { domain: domain.clone(), requests }, received)
        };
        let (domains, received) = domains.iter().map(addressed).unzip();
        let shared = Arc::new(Shared { domains, naming: Mutex::new(()) });
        (Volumes { shared }, received)
    }

    /// The state of each domain.
    pub async fn describe(&self) -> Result<Answers<ShardVolumes>, VolumeError> {
        self.ask_all(Request::Describe).await
    }

    /// The counters of each domain; none at all if one of them has ended.
    pub async fn stats(&self) -> Vec<DomainStats> {
        let all = self.ask_all(Request::Stats).await.unwrap_or_default();
        let domain = |number: usize| &self.shared.domains[number].domain;
        let mounted = all.mounted.into_iter();
        let mounted = mounted.map(|(number, of)| (number, domain_stats(domain(number), of)));
        let others = all.not_mounted.into_iter().map(|of| {
            let not_mounted = Some(of.error.to_string());
            (of.domain, DomainStats { not_mounted, ..DomainStats::of(domain(of.domain)) })
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
        let all = self.describe().await?;
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
            (None, Some(set)) => self.of_set(set, &all)?,
            (None, None) => {
                let load = |domain: &ShardVolumes| DomainLoad::of(domain.space, &domain.volumes);
                let most_free = most_free(all.mounted.iter().map(|(_, domain)| load(domain)));
                let chosen = most_free.and_then(|place| all.mounted.get(place));
                chosen
                    .map(|(number, _)| *number)
                    .ok_or(unknown.clone().unwrap_or(VolumeError::Stopped))?
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
                (None, None) => {}
            }
        }
        let done = self.ask(domain, |answer| Request::Change(change, answer)).await;
        drop(naming);
        Ok(done?)
    }

    /// The mounted domain of a set.
    fn of_set<T>(&self, set: &str, all: &Answers<T>) -> Result<usize, ChangeError> {
        let domains = || self.shared.domains.iter().map(|it| &it.domain.name);
        let Some(number) = domains().position(|name| name == set) else {
            let (name, sets) = (set.to_owned(), domains().cloned().collect());
            return Err(SetError::NoSet { name, sets }.into());
        };
        match all.not_mounted.iter().find(|it| it.domain == number) {
            Some(not_mounted) => Err(not_mounted.error.clone().into()),
            None => Ok(number),
        }
    }

    /// The number of the shard whose thread has a domain.
    pub fn shard_of(&self, domain: usize) -> u64 {
        self.shared.domains[domain].domain.shard.0.into()
    }

    /// Hands a client to the domain of its export. If its thread has ended, the client is
    /// disconnected.
    pub fn serve(&self, domain: usize, client: Client) {
        if let Some(domain) = self.shared.domains.get(domain) {
            let _ = domain.requests.send(Request::Serve(Box::new(client)));
        }
    }

    async fn ask_all<T>(
        &self,
        request: impl Fn(Answer<T>) -> Request,
    ) -> Result<Answers<T>, VolumeError> {
        let domains = 0..self.shared.domains.len();
        let asked = domains.map(|domain| self.ask(domain, &request));
        let mut answers = Answers::default();
        for (domain, answer) in join_all(asked).await.into_iter().enumerate() {
            match answer {
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
        let (answer, answered) = oneshot::channel();
        let domain = self.shared.domains.get(domain).ok_or(VolumeError::Stopped)?;
        // A thread that has ended has stopped its domain.
        domain.requests.send(request(answer)).map_err(|_| VolumeError::Stopped)?;
        answered.await.map_err(|_| VolumeError::Stopped)?
    }
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

fn domain_stats(domain: &ShardDomain, of: ShardCounters) -> DomainStats {
    let bytes = |units: u64| units * MAPPING_UNIT_BYTES as u64;
    DomainStats {
        volume_bytes_written: bytes(of.counters.written),
        volume_bytes_collected: bytes(of.counters.collected),
        volume_flushes: of.counters.flushes,
        volume_used_bytes: of.space.used_bytes,
        volume_usable_bytes: of.space.usable_bytes,
        volume_full: u64::from(of.space.is_full),
        volume_refused_writes: of.counters.refused,
        programmed: of.programmed,
        by_volume: of.volumes,
        ..DomainStats::of(domain)
    }
}
