//! FLASH.VOLUME: the requests of the protocol to the volumes, and to the sets between which they
//! move.

use crate::sets::Sets;
use crate::telemetry::DomainStats;
use crate::volumes::{ChangeError, MissingDomain, Volumes};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use softflash_ftl::{ProgramBytes, UnitTelemetry};
use softflash_protocol::volumes::{
    Moving, NotMounted, VolumeAdmin, VolumeChange, VolumeEntry, VolumeList, VolumeTotals,
};
use softflash_volume::VolumeError;

/// The volumes of a server with its sets.
pub(crate) struct Admin {
    pub volumes: Volumes,
    pub sets: Sets,
}

impl VolumeAdmin for Admin {
    fn list(&self) -> BoxFuture<'static, Result<VolumeList, String>> {
        let volumes = self.volumes.clone();
        async move {
            let domains = volumes.describe().await.map_err(|error| error.to_string())?;
            let under_way = volumes.under_way();
            let all = domains.mounted.into_iter().flat_map(|(number, domain)| {
                let set = volumes.name_of(number);
                domain.volumes.into_iter().map(move |volume| (set.clone(), volume))
            });
            let mut all: Vec<VolumeEntry> = all
                .map(|(set, volume)| VolumeEntry {
                    set,
                    moving: under_way.as_ref().filter(|it| it.names.contains(&volume.name)).map(
                        |it| Moving {
                            set: it.set.clone(),
                            copied_bytes: it.progress.copied_bytes(),
                            left_bytes: it.progress.left_bytes(),
                        },
                    ),
                    name: volume.name,
                    size_bytes: volume.size_bytes,
                    used_bytes: volume.used_bytes,
                    quota_bytes: volume.settings.quota_bytes,
                    iops: volume.settings.iops,
                    bandwidth_bytes_per_second: volume.settings.bandwidth_bytes_per_second,
                    weight: volume.settings.weight,
                    temperature: volume.settings.lifetime.temperature.to_string(),
                    stream: volume.settings.lifetime.stream,
                    snapshots: volume.snapshots,
                })
                .collect();
            all.sort_by(|a, b| a.name.cmp(&b.name));
            // At the moment of a switch both sets may tell of a volume.
            all.dedup_by(|a, b| a.name == b.name);
            let missing = |domain: MissingDomain| NotMounted {
                shard: volumes.shard_of(domain.domain),
                error: domain.error.to_string(),
            };
            let not_mounted = domains.not_mounted.into_iter().map(missing).collect();
            Ok(VolumeList { volumes: all, not_mounted })
        }
        .boxed()
    }

    fn totals(&self) -> BoxFuture<'static, VolumeTotals> {
        let volumes = self.volumes.clone();
        async move {
            let domains = volumes.stats().await;
            let sum = |of: fn(&DomainStats) -> u64| domains.iter().map(of).sum();
            let mut programmed = ProgramBytes::default();
            domains.iter().for_each(|domain| programmed.add(&domain.programmed));
            VolumeTotals {
                used_bytes: sum(|domain| domain.volume_used_bytes),
                usable_bytes: sum(|domain| domain.volume_usable_bytes),
                full_shards: sum(|domain| domain.volume_full),
                refused_writes: sum(|domain| domain.volume_refused_writes),
                program_bytes: programmed.fields(),
            }
        }
        .boxed()
    }

    fn units(&self) -> BoxFuture<'static, Vec<UnitTelemetry>> {
        let volumes = self.volumes.clone();
        async move { volumes.units().await }.boxed()
    }

    fn change(&self, change: VolumeChange) -> BoxFuture<'static, Result<(), String>> {
        let (volumes, sets) = (self.volumes.clone(), self.sets.clone());
        async move {
            match change {
                VolumeChange::Move { name, set } => sets.move_volume(name, set).await,
                change => volumes.change(change).await.map_err(refusal),
            }
        }
        .boxed()
    }
}

fn refusal(error: ChangeError) -> String {
    match &error {
        ChangeError::Volume(VolumeError::NoVolume { .. }) => {
            format!("{error}; FLASH.VOLUME LIST has all")
        }
        ChangeError::Volume(VolumeError::WouldLose { .. }) => {
            format!("{error}; add SHRINK to lose them")
        }
        _ => error.to_string(),
    }
}
