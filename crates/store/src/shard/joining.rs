//! Units join a shard while it is in use: new blocks may be placed there from the next one on. The
//! table of sets has them by then, and they are erased. Sizes that follow the flash, of memtables,
//! log and runs, stay until the next start.

use super::Shard;
use crate::error::{Result, StoreError};
use softflash_device::QueuePair;
use softflash_flash::Flash;
use softflash_ftl::{Owners, Ownership};

impl Shard {
    /// Adds the units of a queue pair of the same device, by a table of sets of this epoch.
    ///
    /// # Errors
    /// [`StoreError::Closed`], and those of a mount of the units. The shard is as before then.
    pub(crate) async fn join_units(&self, queue: Box<dyn QueuePair>, epoch: u32) -> Result<()> {
        let owners = Owners::one(queue.units().clone(), Ownership::BLOCKS).at_epoch(epoch);
        let (config, runtime) = (self.options.ftl, self.runtime.clone());
        let (flash, inventory) = Flash::mount_one(queue, config, owners, runtime).await?;
        if self.tasks.is_closing() {
            flash.stop();
            return Err(StoreError::Closed);
        }
        // What the erase could not reach is nobody's.
        inventory.all().for_each(|superblock| flash.release(superblock));
        self.blocks.join(flash)?;
        self.tasks.announce_room();
        Ok(())
    }
}
