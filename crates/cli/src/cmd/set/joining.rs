//! Erases spare units before they join a set: a set that had them may have left data there.

use super::watching::watched;
use crate::directories::block_on;
use softflash_base::UnitSet;
use softflash_console::{CliError, output};
use softflash_datadir::{DataDirError, OpenDir};
use softflash_flash::erase_units;
use std::sync::Arc;

/// Erases all of these units, at the epoch of the table by which they are spare.
pub fn erase(directory: &OpenDir, units: &UnitSet) -> Result<(), CliError> {
    let OpenDir { path, device, layout, .. } = directory;
    device.mend_label().map_err(DataDirError::from)?;
    block_on(|runtime| async move {
        let queue = Arc::clone(device).open_queue_pair(units)?;
        let bar = output::progress(0, "units to erase");
        bar.set_position(units.len() as u64);
        let erasing = erase_units(queue, layout.epoch, runtime.clone());
        let erased = watched(path, erasing, || bar.tick(), &runtime).await;
        bar.finish_and_clear();
        erased?.map_err(|error| {
            let path = path.display();
            CliError::Failed(format!("{path}: units {units} cannot be erased: {error}"))
        })
    })
}
