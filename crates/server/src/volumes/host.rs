//! A domain on the thread of its shard: answers requests until the shard closes.

use super::moving::{come, leave};
use super::requests::{
    PairChange, Request, ShardCounters, ShardVolumes, apply, exports, is_exclusive, taken_away,
};
use super::unit_changes;
use crate::error::ServerError;
use crate::nbd::connections::Connections;
use softflash_datadir::{MountResult, ShardDomain, form_pairs, take_guests_away};
use softflash_flash::FlashSource;
use softflash_protocol::shared::recording::volume::VolumeRecordings;
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, VolumeError};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// What a thread needs to host a domain.
pub(crate) struct HostSpec {
    pub domain: ShardDomain,
    pub requests: UnboundedReceiver<Request>,
    pub recordings: Arc<VolumeRecordings>,
}

/// A domain with the NBD connections to it; nothing if it could not be mounted.
pub(crate) struct VolumeHost {
    /// The name of its set.
    set: String,
    /// Where its volumes are, for messages.
    place: String,
    mounted: Option<Mounted>,
}

/// Mounts domains, each on its flash, and forms their pairs; then they answer requests. If one
/// cannot be mounted, its requests are answered with the reason: keys and other volumes do not
/// depend on it.
pub(crate) async fn mount_hosts(
    specs: Vec<(HostSpec, FlashSource)>,
    runtime: &RuntimeHandle,
) -> Vec<VolumeHost> {
    let (mut domains, mut rest) = (Vec::new(), Vec::new());
    for (HostSpec { domain, requests, recordings }, flash) in specs {
        let mounted = domain.mount(flash, runtime).await;
        domains.push((domain, mounted));
        rest.push((requests, recordings));
    }
    form_pairs(&mut domains, true).await;
    take_guests_away(&mut domains).await;
    let all = domains.into_iter().zip(rest);
    all.map(|(mounted, rest)| VolumeHost::serve(mounted, rest, runtime)).collect()
}

struct Mounted {
    domain: Domain,
    connections: Rc<Connections>,
    /// Its set was deleted.
    has_ended: Rc<Cell<bool>>,
}

impl VolumeHost {
    fn serve(
        (of, mounted): (ShardDomain, MountResult),
        (requests, recordings): (UnboundedReceiver<Request>, Arc<VolumeRecordings>),
        runtime: &RuntimeHandle,
    ) -> VolumeHost {
        let (set, place) = (of.name.clone(), of.place());
        match mounted {
            Ok(domain) => {
                let connections = Rc::new(Connections::new(runtime.clone(), recordings));
                let has_ended = Rc::default();
                let (shared, ended) = (Rc::clone(&connections), Rc::clone(&has_ended));
                let answering = answer(domain.clone(), shared, ended, requests, runtime.clone());
                runtime.spawn(Box::pin(answering));
                let mounted = Some(Mounted { domain, connections, has_ended });
                VolumeHost { set, place, mounted }
            }
            Err(error) => {
                let error = of.not_mounted(&error);
                tracing::error!("{error}; keys and all other volumes are served");
                runtime.spawn(Box::pin(refuse(error, requests)));
                VolumeHost { set, place, mounted: None }
            }
        }
    }

    /// The domain of a set, if it is mounted here.
    pub fn domain(&self, set: &str) -> Option<&Domain> {
        self.mounted.as_ref().filter(|_| self.set == set).map(|mounted| &mounted.domain)
    }

    /// Ends the NBD connections: requests under way complete, within this time.
    pub async fn drain(&self, within: Duration) {
        if let Some(Mounted { connections, .. }) = &self.mounted {
            connections.drain(within).await;
        }
    }

    /// Makes everything durable with a checkpoint, so that the next start is fast, and ends.
    pub async fn close(self) -> Result<(), ServerError> {
        let VolumeHost { place, mounted: Some(Mounted { domain, has_ended, .. }), .. } = self
        else {
            return Ok(());
        };
        if has_ended.get() {
            return Ok(());
        }
        let closed = match domain.flush().await {
            Ok(()) => domain.checkpoint().await,
            Err(error) => Err(error),
        };
        domain.stop();
        closed.map_err(|error| ServerError::CloseVolumes { place, error })
    }

    /// Ends without making anything durable.
    pub fn stop(self) {
        if let Some(Mounted { domain, .. }) = self.mounted {
            domain.stop();
        }
    }
}

/// Answers requests to a domain that is not mounted. Clients of its exports are disconnected.
async fn refuse(error: VolumeError, mut requests: UnboundedReceiver<Request>) {
    while let Some(request) = requests.recv().await {
        // A caller that has stopped waiting does not need the answer.
        match request {
            Request::Describe(answer) => drop(answer.send(Err(error.clone()))),
            Request::Stats(answer) => drop(answer.send(Err(error.clone()))),
            Request::Units(answer) => drop(answer.send(Err(error.clone()))),
            Request::Exports(answer) => drop(answer.send(Err(error.clone()))),
            Request::Change(_, answer)
            | Request::ChangeUnits(_, answer)
            | Request::ChangePair(_, answer)
            | Request::End(answer) => drop(answer.send(Err(error.clone()))),
            // Whoever waits for them sees that nobody answers.
            Request::Serve(_) | Request::Leave(_) | Request::Come(_) => {}
        }
    }
}

async fn answer(
    domain: Domain,
    connections: Rc<Connections>,
    has_ended: Rc<Cell<bool>>,
    mut requests: UnboundedReceiver<Request>,
    runtime: RuntimeHandle,
) {
    while let Some(request) = requests.recv().await {
        // A caller that has stopped waiting does not need the answer.
        match request {
            Request::Describe(answer) => {
                let (volumes, space) = (domain.list(), domain.space());
                let (is_second, is_paired) = (domain.is_second(), domain.is_paired());
                let _ = answer.send(Ok(ShardVolumes { volumes, space, is_second, is_paired }));
            }
            Request::Stats(answer) => {
                let (space, counters) = (domain.space(), domain.counters());
                let programmed = domain.programmed();
                let (volumes, draining_bytes) = (domain.figures(), domain.draining_bytes());
                let (pair, window) = (domain.pair_figures(), domain.window());
                let counters = ShardCounters {
                    space,
                    draining_bytes,
                    counters,
                    programmed,
                    volumes,
                    pair,
                    window,
                };
                let _ = answer.send(Ok(counters));
            }
            Request::Units(answer) => {
                let _ = answer.send(Ok(domain.units()));
            }
            Request::Exports(answer) => {
                let _ = answer.send(Ok(exports(&domain)));
            }
            Request::Change(change, answer) => {
                let taken = taken_away(&change, &domain).into_iter();
                let mut used = taken.map(|name| (connections.clients_of(&name), name));
                if let Some((clients, name)) = used.find(|(clients, _)| *clients > 0) {
                    let _ = answer.send(Err(VolumeError::InUse { name, clients }));
                    continue;
                }
                if is_exclusive(&change) {
                    // A client that began meanwhile would use an export that is another one then.
                    let _ = answer.send(apply(change, &domain).await);
                    continue;
                }
                let domain = domain.clone();
                runtime.spawn(Box::pin(async move {
                    let _ = answer.send(apply(change, &domain).await);
                }));
            }
            Request::ChangeUnits(change, answer) => {
                let domain = domain.clone();
                runtime.spawn(Box::pin(async move {
                    let _ = answer.send(unit_changes::apply(change, &domain).await);
                }));
            }
            Request::ChangePair(change, answer) => {
                let domain = domain.clone();
                runtime.spawn(Box::pin(async move {
                    let _ = answer.send(match change {
                        PairChange::Window(window) => domain.set_window(window).await,
                        PairChange::End => domain.unpair().await,
                    });
                }));
            }
            Request::End(answer) => {
                has_ended.set(true);
                let _ = answer.send(domain.end().await);
                return;
            }
            Request::Leave(order) => {
                let (domain, connections) = (domain.clone(), Rc::clone(&connections));
                runtime.spawn(Box::pin(leave(domain, connections, *order)));
            }
            Request::Come(order) => {
                let (domain, connections) = (domain.clone(), Rc::clone(&connections));
                runtime.spawn(Box::pin(come(domain, connections, *order)));
            }
            Request::Serve(client) => connections.begin(*client, &domain),
        }
    }
}
