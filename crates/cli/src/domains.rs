//! The mounted domains of a data directory without a server: all its volumes.

use crate::embedded::{OpenDir, block_on};
use crate::error::CliError;
use softflash_device::Device;
use softflash_runtime::RuntimeHandle;
use softflash_server::{DomainLoad, ShardDomain, roomiest};
use softflash_volume::{Domain, VolumeError};
use std::path::Path;
use std::sync::Arc;

/// The domains of all shards.
pub struct Domains {
    /// Each with its place on the device.
    pub all: Vec<(ShardDomain, Domain)>,
}

/// Mounts the domains of a directory, calls `work` with them, and stops them whether or not `work`
/// succeeded.
pub fn with_domains<T>(
    directory: &OpenDir,
    work: impl AsyncFnOnce(&Domains) -> Result<T, CliError>,
) -> Result<T, CliError> {
    if directory.domains.is_empty() {
        return Err(CliError::Failed(format!(
            "{}: formatted without volume units, so it can hold no volumes; create a directory that \
             can with `softflash format DIR --size SIZE --volume-units M`",
            directory.path.display()
        )));
    }
    block_on(|runtime| async move {
        let OpenDir { path, device, domains, .. } = directory;
        let domains = Domains::mount(path, device, domains, &runtime).await?;
        let outcome = work(&domains).await;
        let flushed = domains.flush().await.map_err(CliError::volume(path));
        domains.stop();
        // The first error is the cause.
        outcome.and_then(|value| flushed.map(|()| value))
    })
}

impl Domains {
    /// Mounts the domains on these parts of the device in the directory at `path`.
    pub async fn mount(
        path: &Path,
        device: &Arc<dyn Device>,
        domains: &[ShardDomain],
        runtime: &RuntimeHandle,
    ) -> Result<Domains, CliError> {
        let mut mounted = Domains { all: Vec::new() };
        for domain in domains {
            match mount(path, device, domain, runtime).await {
                Ok(new) => mounted.all.push((domain.clone(), new)),
                Err(error) => {
                    mounted.stop();
                    return Err(error);
                }
            }
        }
        Ok(mounted)
    }

    /// The domain that holds the volume of this name.
    pub fn holder(&self, volume: &str) -> Result<&Domain, VolumeError> {
        let holds = |domain: &&Domain| domain.volume(volume).is_ok();
        let found = self.all.iter().map(|(_, domain)| domain).find(holds);
        found.ok_or_else(|| VolumeError::NoVolume { name: volume.to_owned() })
    }

    /// Refuses a name that a volume of any domain has.
    pub fn check_unused(&self, name: &str) -> Result<(), VolumeError> {
        match self.holder(name) {
            Ok(_) => Err(VolumeError::Exists { name: name.to_owned() }),
            Err(_) => Ok(()),
        }
    }

    /// The domain for a new volume.
    pub fn roomiest(&self) -> Option<&Domain> {
        let load = |domain: &Domain| DomainLoad::of(domain.space(), &domain.list());
        let place = roomiest(self.all.iter().map(|(_, domain)| load(domain)))?;
        self.all.get(place).map(|(_, domain)| domain)
    }

    async fn flush(&self) -> Result<(), VolumeError> {
        for (_, domain) in &self.all {
            domain.flush().await?;
        }
        Ok(())
    }

    /// Ends their tasks.
    pub fn stop(&self) {
        self.all.iter().for_each(|(_, domain)| domain.stop());
    }
}

async fn mount(
    path: &Path,
    device: &Arc<dyn Device>,
    domain: &ShardDomain,
    runtime: &RuntimeHandle,
) -> Result<Domain, CliError> {
    let queue = Arc::clone(device).open_queue_pair(domain.units.clone())?;
    let mounted = Domain::mount(queue, domain.config.clone(), runtime.clone()).await;
    let (mounted, report) = mounted.map_err(|error| {
        let (path, shard) = (path.to_owned(), domain.shard);
        CliError::Domain { path, shard, error }
    })?;
    tracing::debug!(shard = %domain.shard, ?report, "a domain is mounted");
    Ok(mounted)
}
