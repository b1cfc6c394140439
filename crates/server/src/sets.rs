//! FLASH.SET: the sets of units of the data directory.

use crate::volumes::Volumes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use softflash_datadir::{FlashSet, SetFigures, SetKind, SetState};
use softflash_protocol::Reply;
use softflash_protocol::sets::SetAdmin;
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
    fn list(&self, store: Vec<(StoreStats, Vec<UnitTelemetry>)>) -> BoxFuture<'static, Vec<Reply>> {
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
                    let domain = domains.iter().find(|domain| domain.set == set.name);
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

fn entry(set: SetState) -> Reply {
    let text = |text: String| Reply::Bulk(text.into());
    let number = |number: u64| Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let or_null = |field: Option<Reply>| field.unwrap_or(Reply::Null);
    let units = set.units.into_iter().map(|unit| number(unit.into())).collect();
    Reply::Map(vec![
        (Reply::Text("id"), number(set.id.into())),
        (Reply::Text("name"), text(set.name)),
        (Reply::Text("shard"), number(set.shard.into())),
        (Reply::Text("kind"), Reply::Text(set.kind.name())),
        (Reply::Text("units"), Reply::Array(units)),
        (Reply::Text("op_percent"), or_null(set.op_percent.map(u64::from).map(number))),
        (Reply::Text("used_bytes"), or_null(set.used_bytes.map(number))),
        (Reply::Text("usable_bytes"), number(set.usable_bytes)),
        (Reply::Text("erases_mean"), or_null(set.erases_mean.map(Reply::Double))),
        (Reply::Text("waf"), or_null(set.waf.map(Reply::Double))),
        (Reply::Text("pair"), or_null(set.pair.map(text))),
        (Reply::Text("window"), or_null(set.window.map(number))),
    ])
}
