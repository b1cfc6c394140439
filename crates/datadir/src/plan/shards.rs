//! The numbers of shards and slices of a new data directory.

use super::{NewDevice, Plan};
use crate::error::DataDirError;
use softflash_device::model::UnitKind;

/// Default limits of the slices per shard. A merge frees the space of one slice at its end, so more
/// slices need less free space; each fills memtables of its own, so on a small device more of them
/// would write partly filled superblocks.
const FEWEST_SLICES: u64 = 2;
const MOST_SLICES: u64 = 8;
/// Superblocks per slice.
const SUPERBLOCKS_PER_SLICE: u64 = 32;

impl Plan {
    /// The requested number of shards, or one per core, `most` at most. Units that share a channel
    /// belong to one shard, and each shard has as many units for volumes.
    pub(super) fn number_of_shards(&self, most: u16) -> Result<u16, DataDirError> {
        let default = self.cores.min(most).max(1);
        let volumes = self.volume_units();
        let (channels, each) = match &self.device {
            NewDevice::Model(config) if config.unit == UnitKind::Chip => {
                let geometry = &config.array.geometry;
                (geometry.channels, u16::from(geometry.chips_per_channel))
            }
            _ => (0, 0),
        };
        if each == 0 {
            return Ok(self.shards.unwrap_or_else(|| greatest(default, &[volumes])));
        }
        if !volumes.is_multiple_of(each) {
            return Err(DataDirError::Options(format!(
                "--volume-units {volumes}: the {each} units of a channel are all for volumes or none of them is; use \
                 a multiple of {each}"
            )));
        }
        let of_volumes = volumes / each;
        let of_store = channels.saturating_sub(of_volumes);
        match self.shards {
            None => Ok(greatest(default, &[of_store, of_volumes])),
            Some(shards) if divides(shards, &[of_store, of_volumes]) => Ok(shards),
            Some(shards) => Err(DataDirError::Options(match of_volumes {
                0 => format!(
                    "--shards {shards}: the units of a channel belong to one shard, and {of_store} channels cannot be \
                     divided by {shards}; use a divisor of {of_store}"
                ),
                _ => format!(
                    "--shards {shards}: the units of a channel belong to one shard, and {of_store} channels of the \
                     store and {of_volumes} for volumes cannot both be divided by {shards}; use a divisor of both"
                ),
            })),
        }
    }

    pub(super) fn slices_per_shard(&self, shards: u16) -> u16 {
        let store_units = u64::from(self.units.saturating_sub(self.volume_units()));
        let superblocks = self.device.superblocks() * store_units / u64::from(self.units.max(1));
        let superblocks = superblocks / u64::from(shards.max(1));
        (superblocks / SUPERBLOCKS_PER_SLICE).clamp(FEWEST_SLICES, MOST_SLICES) as u16
    }
}

/// Whether each count can be divided by this number of shards.
fn divides(shards: u16, counts: &[u16]) -> bool {
    shards > 0 && counts.iter().all(|count| count.is_multiple_of(shards))
}

/// The greatest number of shards up to `most` that divides each count.
fn greatest(most: u16, counts: &[u16]) -> u16 {
    (1..=most).rev().find(|shards| divides(*shards, counts)).unwrap_or(1)
}
