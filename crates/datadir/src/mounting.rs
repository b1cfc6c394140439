//! The mount of domains, and of the pairs of them.

use crate::moves::take_away;
use crate::volume_units::ShardDomain;
use softflash_device::OpenError;
use softflash_flash::FlashSource;
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, VolumeError};
use thiserror::Error;

/// Why a domain cannot be mounted.
#[derive(Debug, Error)]
pub enum MountError {
    /// Its part of the device cannot be used.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// The domain.
    #[error(transparent)]
    Domain(#[from] VolumeError),
}

impl ShardDomain {
    /// Mounts the domain.
    ///
    /// # Errors
    /// [`MountError`].
    pub async fn mount(
        &self,
        flash: FlashSource,
        runtime: &RuntimeHandle,
    ) -> Result<Domain, MountError> {
        let (config, runtime) = (self.config.clone(), runtime.clone());
        let (domain, report) = match flash {
            FlashSource::Mounted(flash) => Domain::mount_on(flash, config, runtime).await?,
            FlashSource::Device(device) => {
                Domain::mount(device.open_queue_pair(&self.units)?, config, runtime).await?
            }
        };
        tracing::debug!(shard = %self.shard, set = %self.name, ?report, "volumes are mounted");
        Ok(domain)
    }
}

/// A domain that is mounted, or why it is not.
pub type MountResult = Result<Domain, MountError>;

/// Forms the pairs of the domains that are mounted, before anything uses their volumes. Where one
/// set of a pair is not mounted, the other one serves its volumes, if it has all. A domain that
/// cannot serve is stopped, and has an error instead.
///
/// With windows, their sets take turns; without, both take every write, as is right for a command:
/// its reads need no calm, and it leaves both sets with the same data.
pub async fn form_pairs(domains: &mut [(ShardDomain, MountResult)], with_windows: bool) {
    for place in 0..domains.len() {
        let partner = match &domains[place].0.pair {
            Some(pair) => {
                let other = pair.partner_of(domains[place].0.config.domain);
                domains.iter().position(|(of, _)| of.config.domain == other)
            }
            None => None,
        };
        let (of, mounted) = &domains[place];
        let Ok(domain) = mounted else { continue };
        let formed = match (&of.pair, partner) {
            (None, _) => domain.forget_pair().await,
            (Some(pair), Some(partner)) => match &domains[partner].1 {
                // The first one forms it, and the second one has it by then.
                Ok(second) if pair.first == of.config.domain => {
                    let window = pair.window().filter(|_| with_windows);
                    domain.pair(second, pair.number(), window).await
                }
                Ok(_) => Ok(()),
                Err(error) => {
                    let (name, partner) = (&of.name, &domains[partner].0.name);
                    tracing::error!(
                        "the set `{partner}` of a pair is not mounted ({error}); `{name}` serves \
                         its volumes alone"
                    );
                    domain.serve_alone(pair.number()).await
                }
            },
            (Some(pair), None) => domain.serve_alone(pair.number()).await,
        };
        if let Err(error) = formed {
            let both = [Some(place), partner.filter(|_| of.pair.is_some())];
            for place in both.into_iter().flatten() {
                refuse(&mut domains[place].1, error.clone());
            }
        }
    }
}

/// Takes away what domains hold of volumes that another one has, because a move was interrupted:
/// once the pairs are formed, before anything uses the volumes. A domain that cannot do it is
/// stopped, and has an error instead.
pub async fn take_guests_away(domains: &mut [(ShardDomain, MountResult)]) {
    for (of, mounted) in domains {
        let Ok(domain) = mounted else { continue };
        if of.guests.is_empty() {
            continue;
        }
        match take_away(domain, &of.guests).await {
            Ok(()) => tracing::info!(
                set = %of.name,
                volumes = ?of.guests,
                "a move was interrupted; its copies that count for nothing are deleted"
            ),
            Err(error) => refuse(mounted, error),
        }
    }
}

fn refuse(mounted: &mut MountResult, error: VolumeError) {
    if let Ok(domain) = mounted {
        domain.stop();
        *mounted = Err(error.into());
    }
}
