//! Units that join the domain of a set and leave it, on the thread of its shard.

use softflash_base::UnitSet;
use softflash_device::Device;
use softflash_volume::{Domain, UnitSlots, VolumeError};
use std::sync::Arc;

/// A step of a change of the units of a set.
pub(crate) enum UnitChange {
    /// They move what they hold to the others, and take no data any more.
    Drain(UnitSet),
    /// Drained units stay after all.
    Keep(UnitSet),
    /// Drained units leave, as the table of sets says.
    Leave(UnitSet, UnitSlots),
    /// Erased units join, as the table of sets says.
    Join(UnitSet, UnitSlots, Arc<dyn Device>),
}

/// Carries out a step.
pub(super) async fn apply(change: UnitChange, domain: &Domain) -> Result<(), VolumeError> {
    match change {
        UnitChange::Drain(units) => domain.drain(&units).await,
        UnitChange::Keep(units) => domain.keep(&units),
        UnitChange::Leave(units, table) => domain.leave(&units, &table).await,
        UnitChange::Join(units, table, device) => {
            let queue = device.open_queue_pair(&units).map_err(|error| {
                VolumeError::Unsupported { reason: format!("units {units}: {error}") }
            })?;
            domain.join(queue, &table).await
        }
    }
}
