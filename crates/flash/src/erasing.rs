//! The erase of whole units that nobody owns, before a set gets them.

use crate::flash::Flash;
use futures_util::future::try_join_all;
use softflash_base::planted::{self, Bug};
use softflash_device::QueuePair;
use softflash_ftl::{FtlConfig, FtlError, Hint, Inventory, Owners, Ownership};
use softflash_runtime::RuntimeHandle;

/// Erases all superblocks of the units of a queue pair, whoever wrote them. A mount finds nothing
/// there afterwards, also after a power cut. `epoch` is that of the table of sets; 0 without one.
///
/// # Errors
/// Those of a mount of the FTL, and of the device.
pub async fn erase_units(
    queue: Box<dyn QueuePair>,
    epoch: u32,
    runtime: RuntimeHandle,
) -> Result<(), FtlError> {
    let owners = Owners::one(queue.units().clone(), Ownership::BLOCKS).at_epoch(epoch);
    let config = FtlConfig::default();
    let (flash, inventory) = Flash::mount_one(queue, config, owners, runtime).await?;
    let erased = match planted::bug(Bug::JoinedUnitNotErased) {
        true => Ok(()),
        false => erase_all(&flash, &inventory).await,
    };
    flash.stop();
    erased
}

async fn erase_all(flash: &Flash, inventory: &Inventory) -> Result<(), FtlError> {
    inventory.all().for_each(|superblock| flash.release(superblock));
    try_join_all(flash.units().iter().map(|unit| flash.erase_free(unit))).await?;
    flash.flush(Hint::HEADER).await
}
