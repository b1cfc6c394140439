//! Invariants of the flash's space accounting, checked whenever a store has opened.

use crate::scenario::{Scenario, StoreShape};
use softflash_blocks::BlockId;
use softflash_ftl::UnitTelemetry;
use softflash_store::stats::StoreStats;
use softflash_store::{Store, StoreError};
use std::collections::BTreeSet;

/// Space accounting at one moment.
#[derive(Debug, Clone, Default)]
pub struct SpaceAccounting {
    units: Vec<UnitTelemetry>,
    stats: StoreStats,
}

impl SpaceAccounting {
    /// Reads the space accounting of a store.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn of(store: &Store) -> Result<SpaceAccounting, StoreError> {
        Ok(SpaceAccounting { units: store.units().await?, stats: store.stats().await? })
    }

    /// Number of superblocks that hold data.
    fn used(&self) -> u32 {
        self.units.iter().map(|unit| unit.space.open + unit.space.live).sum()
    }

    /// Whether these accounts can follow the earlier ones. Where the flash may lose data, the
    /// header of the most worn block may be lost, if telemetry reports damaged headers.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn follow(&self, before: &SpaceAccounting, scenario: &Scenario) -> Result<(), String> {
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
                return Err(format!("unit {}: wear decreased from {was} to {now}", unit.unit));
            }
        }
        Ok(())
    }

    /// Working units in the shard that has the fewest.
    pub fn units_left(&self, scenario: &Scenario, dead: &BTreeSet<u16>) -> usize {
        let serves =
            |unit: &&UnitTelemetry| !unit.space.is_worn_out() && !dead.contains(&unit.unit.0);
        let left = |units: &[UnitTelemetry]| units.iter().filter(serves).count();
        self.units.chunks(scenario.units_of_a_shard()).map(left).min().unwrap_or(0)
    }

    /// Whether all data have full redundancy, unless a shard has a single unit left that is neither
    /// dead nor worn out, and no deleted patch is pinned for the parity of others.
    ///
    /// # Errors
    /// How many blocks lack redundancy.
    pub fn have_all_copies(&self, scenario: &Scenario, dead: &BTreeSet<u16>) -> Result<(), String> {
        let StoreStats { degraded_blocks, lost_units, pinned_blocks, .. } = self.stats;
        let left = self.units_left(scenario, dead);
        if pinned_blocks > 0 {
            return Err(format!(
                "{pinned_blocks} deleted patches are pinned for the parity of others"
            ));
        }
        match degraded_blocks {
            0 => Ok(()),
            _ if left < 2 => Ok(()),
            count => Err(format!(
                "{count} blocks lack a copy, with {lost_units} units lost and at least {left} working units in each shard"
            )),
        }
    }

    /// Whether all superblocks in use are known to the store, as patches, value blocks or log
    /// segments. A shard with worn-out flash is read-only and releases nothing.
    ///
    /// # Errors
    /// The number of superblocks in use and the number known.
    pub fn have_no_leak(&self, scenario: &Scenario) -> Result<(), String> {
        let StoreShape { shards, copies, parity, .. } = scenario.store;
        let mut of_shards = self.units.chunks(scenario.units_of_a_shard());
        if of_shards.any(|units| units.iter().all(|unit| unit.space.is_worn_out())) {
            return Ok(());
        }
        let StoreStats { patches, value_blocks, parity_blocks, pinned_blocks, .. } = self.stats;
        let payload = self.units.first().map_or(1, |unit| unit.superblock_payload_bytes.max(1));
        // The first and the last segment of a log may be partly full, and one may be in
        // preparation.
        let segments = self.stats.log_live_bytes / payload + 3 * u64::from(shards);
        let log_copies = if parity > 0 { 2 } else { u64::from(copies) };
        let known = u64::from(copies) * (patches + value_blocks)
            + log_copies * segments
            + parity_blocks
            + pinned_blocks;
        let used = u64::from(self.used());
        if used > known {
            return Err(format!(
                "{used} superblocks are in use; {patches} patches with {parity_blocks} of parity, {value_blocks} value \
                 blocks and at most {segments} segments are known"
            ));
        }
        Ok(())
    }
}

/// Whether no two blocks of a parity group are on one unit: if that unit is lost, neither can be
/// reconstructed.
///
/// # Errors
/// The blocks that share a unit.
pub fn groups_are_on_different_units(stores: &[Store]) -> Result<(), String> {
    for store in stores {
        let shard = store.local_id();
        let blocks = store.blocks();
        for group in blocks.groups() {
            let mut units = BTreeSet::new();
            for member in group.blocks() {
                for place in blocks.superblocks(BlockId(member.block)) {
                    if !units.insert(place.unit) {
                        let (block, unit) = (member.block, place.unit);
                        return Err(format!(
                            "shard {shard}: block {block} is on unit {unit}, like another block of its parity group"
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}
