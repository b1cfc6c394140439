//! FLASH.SET and FLASH.GROW: the sets of units of the data directory, and more units.

mod changes;
mod directory;
mod growing;
mod moves;
mod of_store;
mod steps;

use crate::volumes::Volumes;
use changes::Changes;
use directory::{Directory, STOPPING};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use softflash_datadir::{DataDir, FlashSet, SetFigures, SetKind, SetState};
use softflash_device::Device;
use softflash_protocol::Reply;
use softflash_protocol::sets::{SetAdmin, SetChange};
use softflash_store::stats::{StoreStats, UnitTelemetry};
use std::sync::{Arc, OnceLock};

pub(crate) use steps::Hosts;

/// The sets of a server. A clone is the same.
#[derive(Clone)]
pub(crate) struct Sets {
    volumes: Option<Volumes>,
    open: Arc<OnceLock<Changes>>,
}

impl Sets {
    /// Without sets, until they are [served](Sets::serve).
    pub fn new(volumes: Option<Volumes>) -> Sets {
        Sets { volumes, open: Arc::default() }
    }

    /// The sets of a directory, whose device is open, are served by these threads from now on.
    pub fn serve(&self, data: DataDir, device: Arc<dyn Device>, hosts: Hosts) {
        let directory = Directory::new(data, device);
        let _ = self.open.set(Changes::new(directory, self.volumes.clone(), hosts));
    }

    /// Moves a volume to another set. It goes on where the client leaves.
    pub async fn move_volume(&self, name: String, set: String) -> Result<(), String> {
        let open = Arc::clone(&self.open);
        let moved = tokio::spawn(async move {
            let changes = open.get().ok_or_else(|| "the server is starting".to_owned())?;
            let moved = changes.move_volume(&name, &set).await;
            end_later(&open);
            moved
        });
        moved.await.unwrap_or_else(|_| Err(STOPPING.to_owned()))
    }

    /// Ends what is left of a move that was interrupted, once the sets are mounted.
    pub async fn finish_move(&self) {
        if let Some(open) = self.open.get() {
            open.finish_move().await;
            end_later(&self.open);
        }
    }

    /// Lets the directory go, so that others can open it.
    pub fn close(&self) {
        if let Some(open) = self.open.get() {
            open.directory().close();
        }
    }
}

/// Records the end of a move in the background, where that has failed.
fn end_later(open: &Arc<OnceLock<Changes>>) {
    let open = Arc::clone(open);
    tokio::spawn(async move {
        if let Some(changes) = open.get() {
            changes.end_later().await;
        }
    });
}

impl SetAdmin for Sets {
    fn change(&self, change: SetChange) -> BoxFuture<'static, Result<(), String>> {
        let open = Arc::clone(&self.open);
        let change = async move {
            let changes = open.get().ok_or_else(|| "the server is starting".to_owned())?;
            changes.make(change).await.map_err(|error| error.to_string())
        };
        // It goes on where the client leaves.
        let change = tokio::spawn(change);
        async move { change.await.unwrap_or_else(|_| Err(STOPPING.to_owned())) }.boxed()
    }

    fn list(&self, store: Vec<(StoreStats, Vec<UnitTelemetry>)>) -> BoxFuture<'static, Vec<Reply>> {
        let sets = self.open.get().map(|open| open.directory().sets()).unwrap_or_default();
        let volumes = self.volumes.clone();
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
                        draining_bytes: stats.draining_bytes,
                        ..SetFigures::default()
                    });
                    set.state(figures, units.unwrap_or_default())
                }
                SetKind::Mapped => {
                    let domain = domains.iter().find(|domain| domain.set == set.name);
                    let mounted = domain.filter(|domain| domain.not_mounted.is_none());
                    let figures = mounted.map(|domain| SetFigures {
                        mapped_bytes: Some((domain.volume_used_bytes, domain.volume_usable_bytes)),
                        client_bytes_written: domain.volume_bytes_written,
                        draining_bytes: domain.draining_bytes,
                        pair: domain.pair,
                        window: domain.window,
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
        (Reply::Text("draining_bytes"), or_null(set.draining_bytes.map(number))),
        (Reply::Text("pair_state"), or_null(set.pair_state.map(|it| Reply::Text(it.name())))),
        (Reply::Text("behind_bytes"), or_null(set.behind_bytes.map(number))),
        (Reply::Text("window_state"), or_null(set.window_state.map(|it| Reply::Text(it.name())))),
        (Reply::Text("window_left_ms"), or_null(set.window_left_ms.map(number))),
        (
            Reply::Text("window_writes_left_bytes"),
            or_null(set.window_writes_left_bytes.map(number)),
        ),
    ])
}
