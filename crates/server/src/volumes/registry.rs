//! The handle of all domains, for any thread.

use super::requests::{Answer, ExportInfo, Request, ShardCounters, ShardVolumes};
use crate::nbd::client::Client;
use crate::telemetry::DomainStats;
use futures_util::future::join_all;
use softflash_datadir::{DomainLoad, most_free};
use softflash_ftl::UnitTelemetry;
use softflash_protocol::volumes::VolumeChange;
use softflash_volume::{MAPPING_UNIT_BYTES, VolumeError};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, oneshot};

/// The volumes of all shards. A clone is the same handle.
#[derive(Clone)]
pub(crate) struct Volumes {
    shared: Arc<Shared>,
}

struct Shared {
    /// The domains in the order of the shards. Callers wait for the answers, so the queues are as
    /// short as there are callers.
    domains: Vec<UnboundedSender<Request>>,
    /// Held while volumes come into being or go, because names are unique over all domains.
    naming: Mutex<()>,
}

impl Volumes {
    /// The handle for so many shards, and the receiver of each one's thread.
    pub fn new(shards: u16) -> (Volumes, Vec<UnboundedReceiver<Request>>) {
        let (domains, received) = (0..shards).map(|_| unbounded_channel()).unzip();
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
        let mounted = all.mounted.into_iter().map(|(shard, of)| domain_stats(shard as u64, of));
        let others = all.not_mounted.into_iter().map(|of| DomainStats {
            shard: of.shard as u64,
            not_mounted: Some(of.error.to_string()),
            ..DomainStats::default()
        });
        let mut stats: Vec<DomainStats> = mounted.chain(others).collect();
        stats.sort_by_key(|of| of.shard);
        stats
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
    pub async fn change(&self, change: VolumeChange) -> Result<(), VolumeError> {
        let naming = match &change {
            VolumeChange::Create { .. }
            | VolumeChange::Clone { .. }
            | VolumeChange::Rename { .. }
            | VolumeChange::Delete { .. } => Some(self.shared.naming.lock().await),
            _ => None,
        };
        let Answers { mounted, not_mounted } = self.describe().await?;
        let holder = |name: &str| {
            let holds = |domain: &ShardVolumes| domain.volumes.iter().any(|it| it.name == name);
            mounted.iter().find(|(_, domain)| holds(domain)).map(|(shard, _)| *shard)
        };
        let unknown = not_mounted.into_iter().next().map(|domain| domain.error);
        let domain = match change.existing().map(|name| (name, holder(name))) {
            Some((_, Some(holder))) => holder,
            Some((name, None)) => {
                return Err(unknown.unwrap_or(VolumeError::NoVolume { name: name.to_owned() }));
            }
            None => {
                let load = |domain: &ShardVolumes| DomainLoad::of(domain.space, &domain.volumes);
                let most_free = most_free(mounted.iter().map(|(_, domain)| load(domain)));
                let chosen = most_free.and_then(|place| mounted.get(place));
                chosen
                    .map(|(shard, _)| *shard)
                    .ok_or(unknown.clone().unwrap_or(VolumeError::Stopped))?
            }
        };
        if let Some(name) = change.new_name() {
            let name = name.to_owned();
            match (holder(&name), unknown) {
                (Some(_), _) => return Err(VolumeError::Exists { name }),
                (None, Some(error)) => {
                    return Err(VolumeError::MayExist { name, not_mounted: Box::new(error) });
                }
                (None, None) => {}
            }
        }
        let done = self.ask(domain, |answer| Request::Change(change, answer)).await;
        drop(naming);
        done
    }

    /// Hands a client to the thread of its export. If the thread has ended, the client is
    /// disconnected.
    pub fn serve(&self, shard: usize, client: Client) {
        if let Some(domain) = self.shared.domains.get(shard) {
            let _ = domain.send(Request::Serve(Box::new(client)));
        }
    }

    async fn ask_all<T>(
        &self,
        request: impl Fn(Answer<T>) -> Request,
    ) -> Result<Answers<T>, VolumeError> {
        let domains = 0..self.shared.domains.len();
        let asked = domains.map(|domain| self.ask(domain, &request));
        let mut answers = Answers::default();
        for (shard, answer) in join_all(asked).await.into_iter().enumerate() {
            match answer {
                Ok(answer) => answers.mounted.push((shard, answer)),
                Err(error @ VolumeError::NotMounted { .. }) => {
                    answers.not_mounted.push(NotMounted { shard, error });
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
        domain.send(request(answer)).map_err(|_| VolumeError::Stopped)?;
        answered.await.map_err(|_| VolumeError::Stopped)?
    }
}

/// The answers of all domains, in the order of the shards.
pub(crate) struct Answers<T> {
    /// Each with the number of its shard.
    pub mounted: Vec<(usize, T)>,
    /// The domains that could not be mounted.
    pub not_mounted: Vec<NotMounted>,
}

/// A domain that could not be mounted.
pub(crate) struct NotMounted {
    pub shard: usize,
    pub error: VolumeError,
}

impl<T> Default for Answers<T> {
    fn default() -> Answers<T> {
        Answers { mounted: Vec::new(), not_mounted: Vec::new() }
    }
}

fn domain_stats(shard: u64, of: ShardCounters) -> DomainStats {
    let bytes = |units: u64| units * MAPPING_UNIT_BYTES as u64;
    DomainStats {
        shard,
        not_mounted: None,
        volume_bytes_written: bytes(of.counters.written),
        volume_bytes_collected: bytes(of.counters.collected),
        volume_flushes: of.counters.flushes,
        volume_used_bytes: of.space.used_bytes,
        volume_usable_bytes: of.space.usable_bytes,
        volume_full: u64::from(of.space.is_full),
        volume_refused_writes: of.counters.refused,
        programmed: of.programmed,
        by_volume: of.volumes,
    }
}
