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
    /// Those that cannot be mounted.
    pub not_mounted: Vec<(ShardDomain, VolumeError)>,
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
        let domains = Domains::mount(device, domains, &runtime).await?;
        if domains.all.is_empty() {
            domains.check_all(path)?;
        }
        let outcome = work(&domains).await;
        let flushed = domains.flush().await.map_err(CliError::volume(path));
        domains.stop();
        // The first error is the cause.
        outcome.and_then(|value| flushed.map(|()| value))
    })
}

impl Domains {
    /// Mounts the domains on these parts of a device, as many as can be mounted.
    pub async fn mount(
        device: &Arc<dyn Device>,
        domains: &[ShardDomain],
        runtime: &RuntimeHandle,
    ) -> Result<Domains, CliError> {
        let mut mounted = Domains { all: Vec::new(), not_mounted: Vec::new() };
        for domain in domains {
            match mount(device, domain, runtime).await {
                Ok(Ok(new)) => mounted.all.push((domain.clone(), new)),
                Ok(Err(error)) => mounted.not_mounted.push((domain.clone(), error)),
                Err(error) => {
                    mounted.stop();
                    return Err(error);
                }
            }
        }
        Ok(mounted)
    }

    /// Fails if some of the domains in the directory at `path` are not mounted.
    pub fn check_all(&self, path: &Path) -> Result<(), CliError> {
        match self.not_mounted.first() {
            Some((domain, error)) => Err(CliError::Domain {
                path: path.to_owned(),
                shard: domain.shard,
                error: error.clone(),
            }),
            None => Ok(()),
        }
    }

    /// The domain that holds the volume of this name.
    pub fn holder(&self, volume: &str) -> Result<&Domain, VolumeError> {
        let holds = |domain: &&Domain| domain.volume(volume).is_ok();
        let found = self.all.iter().map(|(_, domain)| domain).find(holds);
        let missing = || VolumeError::NoVolume { name: volume.to_owned() };
        found.ok_or_else(|| self.unknown().unwrap_or_else(missing))
    }

    /// Refuses a name that a volume of any domain has, or may have.
    pub fn check_unused(&self, name: &str) -> Result<(), VolumeError> {
        let name = name.to_owned();
        match (self.holder(&name), self.unknown()) {
            (Ok(_), _) => Err(VolumeError::Exists { name }),
            (Err(_), Some(error)) => {
                Err(VolumeError::MayExist { name, not_mounted: Box::new(error) })
            }
            (Err(_), None) => Ok(()),
        }
    }

    /// Why not all volumes are known.
    fn unknown(&self) -> Option<VolumeError> {
        let (domain, error) = self.not_mounted.first()?;
        Some(VolumeError::NotMounted { shard: domain.shard.0, reason: error.to_string() })
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
            domain.prove().await;
        }
        Ok(())
    }

    /// Ends their tasks.
    pub fn stop(&self) {
        self.all.iter().for_each(|(_, domain)| domain.stop());
    }
}

async fn mount(
    device: &Arc<dyn Device>,
    domain: &ShardDomain,
    runtime: &RuntimeHandle,
) -> Result<Result<Domain, VolumeError>, CliError> {
    let queue = Arc::clone(device).open_queue_pair(domain.units.clone())?;
    let mounted = Domain::mount(queue, domain.config.clone(), runtime.clone()).await;
    Ok(mounted.map(|(mounted, report)| {
        tracing::debug!(shard = %domain.shard, ?report, "a domain is mounted");
        mounted
    }))
}
