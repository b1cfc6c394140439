//! The space of an empty store, and the part of it that keys and values can take.

use crate::layout::StoreLayout;
use crate::options::StoreOptions;
use crate::shard::resources::budget::Budget;
use softflash_base::{ShardId, cast};

/// Bytes of a patch for each record of a small value beside its key and value: the head of the
/// record, and its part of the filter and of the index.
pub(crate) const BYTES_OF_RECORD: u64 = 28;

/// The record by which capacity is stated: a key and a value of 1 KiB together.
const RECORD_BYTES: u64 = 1 << 10;

/// Blocks of a slice that the last ones of its runs leave empty when its shard is full: half of
/// each, of about two runs.
const PARTLY_FILLED: u32 = 1;

/// Blocks of the log of a full shard.
const LOG_BLOCKS: u32 = 4;

/// The flash below a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlashSize {
    /// Superblocks of a unit, without bad ones.
    pub superblocks_of_unit: u32,
    /// Bytes of a superblock that the store can use: without the headers of the FTL.
    pub payload_bytes: u64,
}

/// The division of an empty store's space, in bytes; an estimate for keys and values of 1 KiB
/// together, without compression. Larger ones need less, smaller ones more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    /// Keys and values that fit.
    pub usable_bytes: u64,
    /// Superblocks that stay free, so that flushes, the log and merges have space.
    pub kept_bytes: u64,
    /// The log, and blocks that are not full.
    pub partly_filled_bytes: u64,
    /// Second copies, or parity.
    pub redundancy_bytes: u64,
    /// Heads of records, filters and indexes.
    pub metadata_bytes: u64,
}

impl Capacity {
    /// Of a store on empty flash.
    pub fn of(layout: &StoreLayout, options: &StoreOptions, flash: FlashSize) -> Capacity {
        let shards = (0..layout.shards).map(ShardId);
        shards.map(|shard| Capacity::of_shard(layout, options, flash, shard)).fold(
            Capacity::default(),
            |all, one| Capacity {
                usable_bytes: all.usable_bytes + one.usable_bytes,
                kept_bytes: all.kept_bytes + one.kept_bytes,
                partly_filled_bytes: all.partly_filled_bytes + one.partly_filled_bytes,
                redundancy_bytes: all.redundancy_bytes + one.redundancy_bytes,
                metadata_bytes: all.metadata_bytes + one.metadata_bytes,
            },
        )
    }

    /// All of the space.
    pub fn total_bytes(&self) -> u64 {
        self.usable_bytes
            + self.kept_bytes
            + self.partly_filled_bytes
            + self.redundancy_bytes
            + self.metadata_bytes
    }

    /// Of one shard of a store on empty flash.
    pub fn of_shard(
        layout: &StoreLayout,
        options: &StoreOptions,
        flash: FlashSize,
        shard: ShardId,
    ) -> Capacity {
        let units = cast::saturating_u32(layout.units_of(shard).len());
        let slices = cast::saturating_u32(layout.slices_of(shard).len());
        let superblocks = units.saturating_mul(flash.superblocks_of_unit);
        let copies = if layout.redundancy().is_some() { 2 } else { 1 };
        let block_bytes = usize::try_from(flash.payload_bytes).unwrap_or(usize::MAX);
        let budget = Budget::new(options, layout, superblocks / copies, block_bytes);
        let kept = (copies * budget.limits(0).reserve_blocks()).min(superblocks);
        let left = superblocks - kept;
        let log = (copies * LOG_BLOCKS).min(left);
        let of_patches = left - log;
        // Of each superblock for patches, this part has patches; the rest is redundancy.
        let (members, group) = match layout.parity {
            0 => (1, copies),
            members => (u32::from(members), u32::from(members) + 1),
        };
        let patches = of_patches / group * members;
        let full = patches.saturating_sub(slices * PARTLY_FILLED);
        let bytes = |superblocks: u32| u64::from(superblocks) * flash.payload_bytes;
        let usable_bytes = bytes(full) / (RECORD_BYTES + BYTES_OF_RECORD) * RECORD_BYTES;
        Capacity {
            usable_bytes,
            kept_bytes: bytes(kept),
            partly_filled_bytes: bytes(log + patches - full),
            redundancy_bytes: bytes(of_patches - patches),
            metadata_bytes: bytes(full) - usable_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shards: u16, units: u16, copies: u8, parity: u8) -> StoreLayout {
        StoreLayout { copies, parity, ..StoreLayout::new(shards, 8 * shards, units) }
    }

    #[test]
    fn the_parts_add_up_to_the_flash() {
        let options = StoreOptions::default();
        for (copies, parity) in [(1, 0), (2, 0), (1, 6)] {
            for superblocks_of_unit in [1, 8, 64, 500] {
                let flash = FlashSize { superblocks_of_unit, payload_bytes: 2 << 20 };
                let layout = layout(2, 16, copies, parity);
                let all = Capacity::of(&layout, &options, flash);
                assert_eq!(all.total_bytes(), 16 * u64::from(superblocks_of_unit) * (2 << 20));
            }
        }
    }

    #[test]
    fn the_share_of_data_grows_with_the_flash() {
        let options = StoreOptions::default();
        let share = |superblocks_of_unit, payload_bytes| {
            let flash = FlashSize { superblocks_of_unit, payload_bytes };
            let usable = Capacity::of(&layout(2, 16, 1, 0), &options, flash).usable_bytes;
            usable as f64 / (16 * u64::from(superblocks_of_unit) * payload_bytes) as f64
        };
        assert!(share(127, 2 << 20) > 0.85, "4 GiB: {}", share(127, 2 << 20));
        assert!(share(511, 8 << 20) > 0.92, "64 GiB: {}", share(511, 8 << 20));
        assert!(share(3, 1 << 20) < f64::EPSILON, "nothing fits 48 MiB");
    }
}
