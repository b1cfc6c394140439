//! The mounted domains of a data directory without a server: all its volumes.

use crate::error::DataDirError;
use crate::mounting::{MountError, form_pairs, take_guests_away};
use crate::open::{OpenDir, block_on};
use crate::volume_placement::{DomainLoad, most_free};
use crate::volume_units::ShardDomain;
use softflash_device::Device;
use softflash_flash::FlashSource;
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, VolumeError};
use std::fmt;
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
///
/// # Errors
/// Those of `work`; [`DataDirError::NoVolumeUnits`]; [`DataDirError::Domain`] where none can be
/// mounted.
pub fn with_domains<T, E: From<DataDirError>>(
    directory: &OpenDir,
    work: impl AsyncFnOnce(&Domains) -> Result<T, E>,
) -> Result<T, E> {
    if directory.domains.is_empty() {
        return Err(DataDirError::NoVolumeUnits { path: directory.path.clone() }.into());
    }
    block_on(|runtime| async move {
        let OpenDir { path, device, domains, .. } = directory;
        let domains = Domains::mount(device, domains, &runtime).await?;
        if domains.all.is_empty() {
            domains.check_all(path)?;
        }
        let outcome = match device.mend_label() {
            Ok(()) => work(&domains).await,
            Err(error) => Err(DataDirError::from(error).into()),
        };
        let flushed = domains.flush().await.map_err(DataDirError::volume(path));
        domains.stop();
        // The first error is the cause.
        outcome.and_then(|value| Ok(flushed.map(|()| value)?))
    })
}

impl Domains {
    /// Mounts the domains on these parts of a device, as many as can be mounted.
    ///
    /// # Errors
    /// Errors of the device.
    pub async fn mount(
        device: &Arc<dyn Device>,
        domains: &[ShardDomain],
        runtime: &RuntimeHandle,
    ) -> Result<Domains, DataDirError> {
        let mut tried = Vec::new();
        for domain in domains {
            let source = FlashSource::Device(Arc::clone(device));
            tried.push((domain.clone(), domain.mount(source, runtime).await));
        }
        form_pairs(&mut tried, false).await;
        take_guests_away(&mut tried).await;
        let mut mounted = Domains { all: Vec::new(), not_mounted: Vec::new() };
        for (domain, result) in tried {
            match result {
                Ok(new) => mounted.all.push((domain.clone(), new)),
                Err(MountError::Domain(error)) => {
                    mounted.not_mounted.push((domain.clone(), error));
                }
                Err(MountError::Device(error)) => {
                    mounted.stop();
                    return Err(error.into());
                }
            }
        }
        Ok(mounted)
    }

    /// Fails if some of the domains in the directory at `path` are not mounted.
    ///
    /// # Errors
    /// [`DataDirError::Domain`].
    pub fn check_all(&self, path: &Path) -> Result<(), DataDirError> {
        match self.not_mounted.first() {
            Some((domain, error)) => Err(domain.failed(path)(error.clone())),
            None => Ok(()),
        }
    }

    /// The domain that holds the volume of this name.
    ///
    /// # Errors
    /// [`VolumeError::NoVolume`], or [`VolumeError::NotMounted`] where one that is not mounted may
    /// hold it.
    pub fn holder(&self, volume: &str) -> Result<&Domain, VolumeError> {
        let holds = |domain: &&Domain| domain.volume(volume).is_ok();
        let found = self.all.iter().map(|(_, domain)| domain).find(holds);
        let missing = || VolumeError::NoVolume { name: volume.to_owned() };
        found.ok_or_else(|| self.unknown().unwrap_or_else(missing))
    }

    /// Refuses a name that a volume of any domain has, or may have.
    ///
    /// # Errors
    /// [`VolumeError::Exists`] or [`VolumeError::MayExist`].
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
        Some(domain.not_mounted(error))
    }

    /// The domain for a new volume.
    pub fn most_free(&self) -> Option<&Domain> {
        self.most_free_with(1)
    }

    /// The domain for a new volume with so many copies.
    pub fn most_free_with(&self, copies: u8) -> Option<&Domain> {
        let load = |domain: &&Domain| DomainLoad::of(domain.space(), &domain.list());
        let is_able = |domain: &&Domain| !domain.is_second() && has_copies(domain, copies);
        let able: Vec<&Domain> =
            self.all.iter().map(|(_, domain)| domain).filter(is_able).collect();
        let place = most_free(able.iter().map(load))?;
        able.get(place).copied()
    }

    /// The domain of a set of this name, or why it cannot be mounted; `None` without such a set.
    pub fn of_set(&self, name: &str) -> Option<Result<&Domain, VolumeError>> {
        let mounted = self.all.iter().find(|(of, _)| of.name == name);
        let not_mounted = || {
            let (of, error) = self.not_mounted.iter().find(|(of, _)| of.name == name)?;
            Some(Err(of.not_mounted(error)))
        };
        mounted.map(|(_, domain)| Ok(domain)).or_else(not_mounted)
    }

    pub(crate) async fn flush(&self) -> Result<(), VolumeError> {
        for (_, domain) in &self.all {
            domain.flush().await?;
            domain.prove().await?;
        }
        Ok(())
    }

    /// Ends their tasks.
    pub fn stop(&self) {
        self.all.iter().for_each(|(_, domain)| domain.stop());
    }
}

/// Whether volumes of a domain have so many copies.
pub fn has_copies(domain: &Domain, copies: u8) -> bool {
    copies <= if domain.is_paired() { 2 } else { 1 }
}

impl ShardDomain {
    /// An error of this domain, of the directory at `path`.
    pub fn failed(&self, path: &Path) -> impl FnOnce(VolumeError) -> DataDirError {
        let (path, place) = (path.to_owned(), self.place());
        move |error| DataDirError::Domain { path, place, error }
    }

    /// The answer to a request for a domain that could not be mounted.
    pub fn not_mounted(&self, error: &impl fmt::Display) -> VolumeError {
        let reason = match self.config.slots {
            None => error.to_string(),
            Some(_) => format!("{}: {error}", self.place()),
        };
        VolumeError::NotMounted { shard: self.shard.0, reason }
    }
}
