//! What must hold of the flash's books whenever a store has opened, whatever happened before.

use crate::scenario::{Scenario, StoreShape};
use softflash_ftl::UnitTelemetry;
use softflash_store::block_layer::BlockId;
use softflash_store::stats::StoreStats;
use softflash_store::{Store, StoreError};
use std::collections::BTreeSet;

/// The books of one look.
#[derive(Debug, Clone, Default)]
pub struct Books {
    units: Vec<UnitTelemetry>,
    stats: StoreStats,
}

impl Books {
    /// Reads the books of a store.
    ///
    /// # Errors
    /// The store's.
    pub async fn of(store: &Store) -> Result<Books, StoreError> {
        Ok(Books { units: store.units().await?, stats: store.stats().await? })
    }

    /// Superblocks that hold something.
    fn used(&self) -> u32 {
        self.units.iter().map(|unit| unit.space.open + unit.space.live).sum()
    }

    /// Whether they can follow the books of before. Where the flash may lose what it has, the most worn block's header may be
    /// among that, if telemetry says that headers are damaged.
    ///
    /// # Errors
    /// Which rule is broken.
    pub fn follow(&self, before: &Books, scenario: &Scenario) -> Result<(), String> {
        for (unit, earlier) in self.units.iter().zip(&before.units) {
            let (total, was) = (unit.space.total(), earlier.space.total());
            if total != was {
                return Err(format!("unit {}: {total} superblocks, {was} before", unit.unit));
            }
            if unit.bad_blocks < earlier.bad_blocks {
                let (now, was) = (unit.bad_blocks, earlier.bad_blocks);
                return Err(format!("unit {}: {now} bad blocks, {was} before", unit.unit));
            }
            let same = unit.bad_blocks == earlier.bad_blocks;
            let is_lost = scenario.may_lose() && unit.damaged_headers > 0;
            if same && !is_lost && unit.erase_count_max < earlier.erase_count_max {
                let (now, was) = (unit.erase_count_max, earlier.erase_count_max);
                return Err(format!("unit {}: wear ran back from {was} to {now}", unit.unit));
            }
        }
        Ok(())
    }

    /// Units that serve, in the shard that has the fewest.
    pub fn units_left(&self, scenario: &Scenario, dead: &BTreeSet<u16>) -> usize {
        let serves =
            |unit: &&UnitTelemetry| !unit.space.is_worn_out() && !dead.contains(&unit.unit.0);
        let left = |units: &[UnitTelemetry]| units.iter().filter(serves).count();
        self.units.chunks(scenario.units_of_a_shard()).map(left).min().unwrap_or(0)
    }

    /// Whether everything is there as often as it should be, unless a shard has a single unit left that is neither dead nor
    /// worn out, and nothing is kept for the sake of other patches' parity.
    ///
    /// # Errors
    /// How much is not.
    pub fn have_all_copies(&self, scenario: &Scenario, dead: &BTreeSet<u16>) -> Result<(), String> {
        let StoreStats { degraded_blocks, lost_units, pinned_blocks, .. } = self.stats;
        let left = self.units_left(scenario, dead);
        if pinned_blocks > 0 {
            return Err(format!("{pinned_blocks} patches are kept for the parity of others"));
        }
        match degraded_blocks {
            0 => Ok(()),
            _ if left < 2 => Ok(()),
            count => Err(format!(
                "{count} blocks lack a copy, with {lost_units} units lost and at least {left} that serve in each shard"
            )),
        }
    }

    /// Whether what the flash holds is what the store knows of: patches, and segments of logs. A shard whose flash is worn out
    /// is read as it was found, and gives nothing back.
    ///
    /// # Errors
    /// How much more it is.
    pub fn have_no_leak(&self, scenario: &Scenario) -> Result<(), String> {
        let StoreShape { shards, copies, parity, .. } = scenario.store;
        let mut of_shards = self.units.chunks(scenario.units_of_a_shard());
        if of_shards.any(|units| units.iter().all(|unit| unit.space.is_worn_out())) {
            return Ok(());
        }
        let StoreStats { patches, parity_blocks, pinned_blocks, .. } = self.stats;
        let payload = self.units.first().map_or(1, |unit| unit.superblock_payload_bytes.max(1));
        // A log's first and last segment may be full in part, and one may be on its way.
        let segments = self.stats.log_live_bytes / payload + 3 * u64::from(shards);
        let log_copies = if parity > 0 { 2 } else { u64::from(copies) };
        let known =
            u64::from(copies) * patches + log_copies * segments + parity_blocks + pinned_blocks;
        let used = u64::from(self.used());
        if used > known {
            return Err(format!(
                "{used} superblocks are in use, and {patches} patches with {parity_blocks} of parity and at most {segments} \
                 segments are known"
            ));
        }
        Ok(())
    }
}

/// Whether no two blocks of a parity group are on one unit: when that is lost, neither can be reconstructed.
///
/// # Errors
/// Which blocks are.
pub fn groups_are_apart(stores: &[Store]) -> Result<(), String> {
    for store in stores {
        let shard = store.local_id();
        let blocks = store.local().blocks();
        for group in blocks.groups() {
            let mut units = BTreeSet::new();
            for member in group.blocks() {
                for place in blocks.superblocks(BlockId(member.block)) {
                    if !units.insert(place.unit) {
                        let (block, unit) = (member.block, place.unit);
                        return Err(format!(
                            "shard {shard}: block {block} is on unit {unit}, as another of its parity group is"
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}
