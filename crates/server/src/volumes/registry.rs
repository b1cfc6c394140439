//! The handle of all domains, for any thread.

use super::placement::{DomainLoad, roomiest};
use super::requests::{ExportInfo, Request, ShardCounters, ShardVolumes};
use crate::nbd::client::Client;
use crate::telemetry::{DomainStats, VolumeStats};
use softflash_protocol::volumes::VolumeChange;
use softflash_volume::{MAPPING_UNIT_BYTES, VolumeError, VolumeFigures};
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
    pub async fn describe(&self) -> Result<Vec<ShardVolumes>, VolumeError> {
        self.ask_all(Request::Describe).await
    }

    /// The counters of each domain; none at all if one of them has ended.
    pub async fn stats(&self) -> Vec<DomainStats> {
        let bytes = |units: u64| units * MAPPING_UNIT_BYTES as u64;
        let stats = |(shard, of): (u64, ShardCounters)| DomainStats {
            shard,
            volume_bytes_written: bytes(of.counters.written),
            volume_bytes_collected: bytes(of.counters.collected),
            volume_flushes: of.counters.flushes,
            volume_used_bytes: of.space.used_bytes,
            volume_usable_bytes: of.space.usable_bytes,
            volume_full: u64::from(of.space.is_full),
            volume_refused_writes: of.counters.refused,
            by_volume: of.volumes.into_iter().map(volume_stats).collect(),
        };
        let domains = self.ask_all(Request::Stats).await.unwrap_or_default();
        (0..).zip(domains).map(stats).collect()
    }

    /// All exports, each with the number of its shard.
    pub async fn exports(&self) -> Result<Vec<(usize, ExportInfo)>, VolumeError> {
        let all = self.ask_all(Request::Exports).await?.into_iter().enumerate();
        Ok(all.flat_map(|(shard, of)| of.into_iter().map(move |it| (shard, it))).collect())
    }

    /// Carries out a change in the domain that it concerns; durable when it returns.
    pub async fn change(&self, change: VolumeChange) -> Result<(), VolumeError> {
        let naming = match &change {
            VolumeChange::Create { .. }
            | VolumeChange::Clone { .. }
            | VolumeChange::Delete { .. } => Some(self.shared.naming.lock().await),
            _ => None,
        };
        let domains = self.describe().await?;
        let holder = |name: &str| {
            let holds = |domain: &ShardVolumes| domain.volumes.iter().any(|it| it.name == name);
            domains.iter().position(holds)
        };
        if let Some(name) = change.new_name().filter(|name| holder(name).is_some()) {
            return Err(VolumeError::Exists { name: name.to_owned() });
        }
        let domain = match change.existing() {
            Some(name) => {
                holder(name).ok_or_else(|| VolumeError::NoVolume { name: name.to_owned() })?
            }
            None => {
                let load = |domain: &ShardVolumes| DomainLoad::of(domain.space, &domain.volumes);
                roomiest(domains.iter().map(load)).ok_or(VolumeError::Stopped)?
            }
        };
        let done = self.ask(domain, |answer| Request::Change(change, answer)).await?;
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
        request: impl Fn(oneshot::Sender<T>) -> Request,
    ) -> Result<Vec<T>, VolumeError> {
        let domains = 0..self.shared.domains.len();
        futures_util::future::try_join_all(domains.map(|domain| self.ask(domain, &request))).await
    }

    async fn ask<T>(
        &self,
        domain: usize,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, VolumeError> {
        let (answer, answered) = oneshot::channel();
        let domain = self.shared.domains.get(domain).ok_or(VolumeError::Stopped)?;
        // A thread that has ended has stopped its domain.
        domain.send(request(answer)).map_err(|_| VolumeError::Stopped)?;
        answered.await.map_err(|_| VolumeError::Stopped)
    }
}

fn volume_stats(figures: VolumeFigures) -> VolumeStats {
    let VolumeFigures { name, size_bytes, used_bytes, quota_bytes, counters, latencies } = figures;
    VolumeStats {
        volume: name,
        size_bytes,
        used_bytes,
        quota_bytes,
        latencies,
        reads: counters.reads,
        writes: counters.writes,
        discards: counters.discards,
        read_bytes: counters.read_bytes,
        written_bytes: counters.written_bytes,
        iops_waits: counters.iops_waits,
        bandwidth_waits: counters.bandwidth_waits,
        weight_waits: counters.weight_waits,
        quota_refusals: counters.quota_refusals,
        full_refusals: counters.full_refusals,
    }
}
