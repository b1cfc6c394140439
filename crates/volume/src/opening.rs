//! The mount of the flash of a domain: the core of an empty domain, and what is on its flash.

use crate::config::DomainConfig;
use crate::core::Core;
use crate::error::VolumeError;
use softflash_device::QueuePair;
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Inventory, Owner};
use softflash_runtime::RuntimeHandle;

/// The layer of mapped domains in the headers of superblocks.
const LAYER: u8 = 1;

/// The owner of a domain's superblocks.
pub(crate) fn owner(domain: u16) -> Owner {
    Owner { layer: LAYER, domain }
}

/// Mounts the flash of a domain. Nothing is written before the core is used.
pub(crate) async fn open(
    queue: Box<dyn QueuePair>,
    ftl: FtlConfig,
    config: DomainConfig,
    runtime: RuntimeHandle,
) -> Result<(Core, Inventory), VolumeError> {
    let device_uuid = queue.device_uuid();
    let ftl = FtlConfig { owner: owner(config.domain), asks_about_unclaimed: true, ..ftl };
    let (flash, inventory) = Flash::mount(queue, ftl, runtime.clone()).await?;
    match Core::new(flash.clone(), device_uuid, config, runtime) {
        Ok(core) => Ok((core, inventory)),
        Err(error) => {
            flash.stop();
            Err(error)
        }
    }
}
