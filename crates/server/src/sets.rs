//! FLASH.SET: the sets of units of the data directory.

use crate::volumes::Volumes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use softflash_datadir::{FlashSet, SetFigures, SetKind, SetState};
use softflash_protocol::sets::{SetAdmin, SetEntry};
use softflash_store::stats::{StoreStats, UnitTelemetry};
use std::sync::Arc;

/// The sets of a server.
pub(crate) struct Sets {
    sets: Arc<[FlashSet]>,
    volumes: Option<Volumes>,
}

impl Sets {
    pub fn new(sets: Vec<FlashSet>, volumes: Option<Volumes>) -> Sets {
        Sets { sets: sets.into(), volumes }
    }
}

impl SetAdmin for Sets {
    fn list(
        &self,
        store: Vec<(StoreStats, Vec<UnitTelemetry>)>,
    ) -> BoxFuture<'static, Vec<SetEntry>> {
        let (sets, volumes) = (Arc::clone(&self.sets), self.volumes.clone());
        async move {
            let (domains, units) = match &volumes {
                Some(volumes) => (volumes.stats().await, volumes.units().await),
                None => (Vec::new(), Vec::new()),
            };
            let state = |set: &FlashSet| match set.kind {
                SetKind::Store => {
                    let shard = store.get(usize::from(set.shard.0));
                    let (stats, units) = shard.map(|(stats, units)| (stats, &units[..])).unzip();
                    let figures = stats.map(|stats| SetFigures {
                        mapped_bytes: None,
                        client_bytes_written: stats.host_bytes_written,
                    });
                    set.state(figures, units.unwrap_or_default())
                }
                SetKind::Mapped => {
                    let is_its = |shard: u64| shard == u64::from(set.shard.0);
                    let domain = domains.iter().find(|domain| is_its(domain.shard));
                    let mounted = domain.filter(|domain| domain.not_mounted.is_none());
                    let figures = mounted.map(|domain| SetFigures {
                        mapped_bytes: Some((domain.volume_used_bytes, domain.volume_usable_bytes)),
                        client_bytes_written: domain.volume_bytes_written,
                    });
                    set.state(figures, &units)
                }
            };
            sets.iter().map(state).map(entry).collect()
        }
        .boxed()
    }
}

fn entry(state: SetState) -> SetEntry {
    let SetState { id, name, shard, kind, units, op_percent, .. } = state;
    let SetState { used_bytes, usable_bytes, erases_mean, waf, pair, window, .. } = state;
    SetEntry {
        id,
        name,
        shard,
        kind: kind.name(),
        units,
        op_percent,
        used_bytes,
        usable_bytes,
        erases_mean,
        waf,
        pair,
        window,
    }
}
