//! The end of a domain whose set is deleted: its units hold nothing for it, and another queue pair
//! can open them.

use crate::core::Core;
use crate::draining::set_draining;
use crate::error::VolumeError;

/// Releases everything that the domain has, and gives its units up. Nothing of it is served any
/// more, and its tasks end.
pub(crate) async fn end(core: &Core) -> Result<(), VolumeError> {
    let units: Vec<u32> = core.geometry.numbers().collect();
    // No frame begins from here on.
    set_draining(core, &units, true);
    core.tasks.stop();
    core.order.resume();
    core.order.all_ended().await;
    let blocks = units.iter().flat_map(|&unit| core.geometry.blocks_of(unit));
    for superblock in blocks.filter_map(|block| core.superblocks.take(block)) {
        core.flash.release(&superblock);
    }
    for unit in &core.geometry.units() {
        core.flash.leave(unit).await?;
    }
    Ok(())
}
