//! The mount of the flash of a domain: the core of an empty domain, and what is on its flash.

use crate::config::DomainConfig;
use crate::core::Core;
use crate::error::VolumeError;
use softflash_device::QueuePair;
use softflash_flash::{Flash, MountedFlash};
use softflash_ftl::{FtlConfig, Inventory, Owner, Owners, Ownership};
use softflash_runtime::RuntimeHandle;

/// The layer of mapped domains in the headers of superblocks.
const LAYER: u8 = 1;

/// The owner of a domain's superblocks.
pub(crate) fn owner(domain: u16) -> Owner {
    Owner { layer: LAYER, domain }
}

/// How a domain has its units.
pub(crate) fn ownership(domain: u16) -> Ownership {
    Ownership { owner: owner(domain), asks_about_unclaimed: true }
}

/// Mounts the flash of a domain. Nothing is written before the core is used.
pub(crate) async fn open(
    queue: Box<dyn QueuePair>,
    ftl: FtlConfig,
    config: DomainConfig,
    runtime: RuntimeHandle,
) -> Result<(Core, Inventory), VolumeError> {
    let (units, ownership) = (queue.units().clone(), ownership(config.domain));
    let owners = Owners::one(units, ownership).at_epoch(config.epoch());
    let (flash, inventory) = Flash::mount_one(queue, ftl, owners, runtime.clone()).await?;
    on_flash(MountedFlash { flash, inventory }, config, runtime)
}

/// As [`open`], on flash that has been mounted.
pub(crate) fn on_flash(
    mounted: MountedFlash,
    config: DomainConfig,
    runtime: RuntimeHandle,
) -> Result<(Core, Inventory), VolumeError> {
    let MountedFlash { flash, inventory } = mounted;
    let device_uuid = flash.device_uuid();
    match Core::new(flash.clone(), device_uuid, config, runtime) {
        Ok(core) => Ok((core, inventory)),
        Err(error) => {
            flash.stop();
            Err(error)
        }
    }
}
