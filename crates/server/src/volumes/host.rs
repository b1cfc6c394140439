//! The domain of a shard on its thread: answers requests until the shard closes.

use super::requests::{Request, ShardCounters, ShardVolumes, apply, exports, taken_away};
use crate::data_dir::{DataDirError, ShardDomain};
use crate::error::ServerError;
use crate::nbd::sessions::Sessions;
use softflash_device::Device;
use softflash_protocol::shared::recording::volume::VolumeRecordings;
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, VolumeError};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// What a thread needs to host its domain.
pub(crate) struct HostSpec {
    pub domain: ShardDomain,
    pub requests: UnboundedReceiver<Request>,
    pub recordings: Arc<VolumeRecordings>,
}

/// A mounted domain with the NBD connections to it.
pub(crate) struct VolumeHost {
    domain: Domain,
    sessions: Rc<Sessions>,
}

impl VolumeHost {
    /// Mounts the domain on its units of the device, and answers requests from then on.
    pub async fn mount(
        spec: HostSpec,
        device: &Arc<dyn Device>,
        runtime: &RuntimeHandle,
    ) -> Result<VolumeHost, ServerError> {
        let ShardDomain { shard, units, config } = spec.domain;
        let queue = Arc::clone(device).open_queue_pair(units).map_err(DataDirError::from)?;
        let mounted = Domain::mount(queue, config, runtime.clone()).await;
        let (domain, report) = mounted.map_err(|error| ServerError::Mount { shard, error })?;
        tracing::debug!(%shard, ?report, "volumes are mounted");
        let sessions = Rc::new(Sessions::new(runtime.clone(), spec.recordings));
        let answering =
            answer(domain.clone(), Rc::clone(&sessions), spec.requests, runtime.clone());
        runtime.spawn(Box::pin(answering));
        Ok(VolumeHost { domain, sessions })
    }

    /// Ends the NBD connections: requests under way complete, within this time.
    pub async fn drain(&self, within: Duration) {
        self.sessions.drain(within).await;
    }

    /// Makes everything durable with a checkpoint, so that the next start is fast, and ends.
    pub async fn close(self) -> Result<(), VolumeError> {
        let closed = match self.domain.flush().await {
            Ok(()) => self.domain.checkpoint().await,
            Err(error) => Err(error),
        };
        self.domain.stop();
        closed
    }

    /// Ends without making anything durable.
    pub fn stop(self) {
        self.domain.stop();
    }
}

async fn answer(
    domain: Domain,
    sessions: Rc<Sessions>,
    mut requests: UnboundedReceiver<Request>,
    runtime: RuntimeHandle,
) {
    while let Some(request) = requests.recv().await {
        // A caller that has stopped waiting does not need the answer.
        match request {
            Request::Describe(answer) => {
                let (volumes, space) = (domain.list(), domain.space());
                let _ = answer.send(ShardVolumes { volumes, space });
            }
            Request::Stats(answer) => {
                let (space, counters) = (domain.space(), domain.counters());
                let volumes = domain.figures();
                let _ = answer.send(ShardCounters { space, counters, volumes });
            }
            Request::Exports(answer) => {
                let _ = answer.send(exports(&domain));
            }
            Request::Change(change, answer) => {
                let used = taken_away(&change).map(|name| (sessions.clients_of(&name), name));
                if let Some((clients, name)) = used.filter(|(clients, _)| *clients > 0) {
                    let _ = answer.send(Err(VolumeError::InUse { name, clients }));
                    continue;
                }
                let domain = domain.clone();
                runtime.spawn(Box::pin(async move {
                    let _ = answer.send(apply(change, &domain).await);
                }));
            }
            Request::Serve(client) => sessions.begin(*client, &domain),
        }
    }
}
