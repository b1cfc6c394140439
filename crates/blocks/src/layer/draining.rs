//! Units leave a block layer: they take no blocks, those that they have are rewritten on others,
//! and then the layer is without them.

use super::BlockLayer;
use crate::error::Result;
use crate::tag::BlockId;
use softflash_base::UnitSet;

impl BlockLayer {
    /// Whether these units take blocks. Those that are draining do not, and their free superblocks
    /// do not count.
    pub fn set_draining(&self, units: &UnitSet, is_draining: bool) {
        self.parts.pools.set_draining(units, is_draining);
        if !is_draining {
            // Blocks that lack a copy may find a unit for it.
            self.degraded_bell().notify_one();
        }
    }

    /// The units that are draining, or have been drained.
    pub fn draining_units(&self) -> UnitSet {
        self.parts.pools.main().draining()
    }

    /// The blocks with a copy on these units, in order; not those of a log with units of its own.
    pub fn ids_on(&self, units: &UnitSet) -> Vec<BlockId> {
        let mut ids: Vec<BlockId> =
            units.iter().flat_map(|unit| self.parts.directory.ids_on(unit, false)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Requests that the block is rewritten, on a unit that takes blocks.
    pub fn note_moving(&self, id: BlockId) {
        self.parts.damage.note_moving(id);
    }

    /// Withdraws the request, where the block stays on its unit.
    pub fn note_staying(&self, id: BlockId) {
        self.parts.health.note_staying(id);
    }

    /// Drained units, which have no blocks, leave the layer.
    ///
    /// # Errors
    /// A unit that has superblocks in use, or is none of the layer's: it stays, and so do those
    /// behind it.
    pub async fn leave(&self, units: &UnitSet) -> Result<()> {
        self.parts.pools.leave(units).await
    }
}
