//! The room for the data of volumes on the flash of a domain.

use crate::config::DomainConfig;
use crate::format::MAPPING_UNIT_BYTES;
use softflash_base::cast;
use softflash_device::UnitGeometry;

/// Superblocks of a unit that are not counted as space for data: the open ones of clients and of
/// collection, and the reserve of [`Stream::Host`](crate::stream::Stream::Host) with one for the
/// next checkpoint.
const RESERVED_OF_UNIT: u32 = 8;

/// Open superblocks of each further class.
const OPEN_OF_CLASS: u32 = 2;

/// The slots that data may take, so that collection has enough spare space: without frontiers, the
/// map, reserves, heads of frames, and the spare space of the configuration. `unit_blocks` are the
/// good superblocks of each unit, `map_units` the mapping units of the map that there is.
pub(crate) fn usable_units(
    unit_blocks: impl Iterator<Item = u32>,
    block_units: u32,
    classes: u8,
    map_units: u32,
    config: &DomainConfig,
) -> u32 {
    let reserved = RESERVED_OF_UNIT + OPEN_OF_CLASS * u32::from(classes.saturating_sub(1));
    let good: u32 = unit_blocks.map(|blocks| blocks.saturating_sub(reserved)).sum();
    let map = map_superblocks(good, block_units, map_units);
    let data = u64::from(good.saturating_sub(map)) * u64::from(most_data(block_units, config));
    let usable = data as f64 / (1.0 + config.op_percent / 100.0);
    u32::try_from(usable as u64).unwrap_or(u32::MAX)
}

/// Mapping units of data that fit in a superblock, in full frames with their heads.
pub(crate) fn most_data(block_units: u32, config: &DomainConfig) -> u32 {
    block_units - block_units.div_ceil(config.frame_units + 1)
}

/// Superblocks for leaves and roots. Those of a dense map are kept at any time: twice the map with
/// its copies, as old leaves lie between new ones. `map_units` are those of the map that there is.
pub(crate) fn map_superblocks(superblocks: u32, block_units: u32, map_units: u32) -> u32 {
    // A leaf entry has 8 bytes for 4096 bytes of data, and a copy.
    let kept = (superblocks.div_ceil(512) + superblocks / 512) * 3
        + 4.min(superblocks / 4)
        + u32::from(block_units < 64);
    // As many superblocks as a map may have before sparse ones are written again, and the next
    // checkpoint, without copies.
    let most = |units: u32| {
        let map = units.div_ceil(block_units);
        2 + 2 * map + map.div_ceil(2) + 1
    };
    let dense = superblocks.saturating_mul(block_units) / 256 + 2;
    kept + most(map_units).saturating_sub(kept.max(most(dense)))
}

/// Free superblocks of a unit that other streams leave to the next checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Without these it fails.
    pub least: u32,
    /// With these it writes a copy of each leaf, too.
    pub with_copies: u32,
}

/// The bytes that volumes may hold in a domain of so many units without bad blocks: what
/// [`DomainSpace::usable_bytes`](crate::DomainSpace) of a new domain is, or a little more on an
/// array where a power cut in one page damages others.
pub fn room_bytes(units: u16, unit: &UnitGeometry, config: &DomainConfig) -> u64 {
    let page_units = unit.page_bytes / cast::saturating_u32(MAPPING_UNIT_BYTES);
    let payload = softflash_ftl::payload_bytes(unit);
    let pages = payload.checked_div(u64::from(unit.page_bytes)).unwrap_or(0);
    let pages = u32::try_from(pages).unwrap_or(u32::MAX);
    let shown = pages.saturating_sub(unit.row_pages());
    let data_pages = if shown >= pages / 2 { shown } else { pages };
    let unit_blocks = std::iter::repeat_n(unit.blocks_per_plane, usize::from(units));
    let config = config.clone().on_pages_of(page_units);
    let usable = usable_units(unit_blocks, data_pages.saturating_mul(page_units), 1, 0, &config);
    u64::from(usable) * cast::wide(MAPPING_UNIT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dense_map_takes_what_is_kept_and_a_sparse_one_takes_more() {
        for (superblocks, block_units) in
            [(8, 27), (24, 30), (100, 64), (600, 1024), (10_000, 4096)]
        {
            let empty = map_superblocks(superblocks, block_units, 0);
            // Leaves of 1024 mapping units, in two copies of two halves.
            let dense = superblocks * block_units / 1024 * 4;
            assert_eq!(map_superblocks(superblocks, block_units, dense), empty);
            let map = superblocks.div_ceil(2);
            let sparse = map_superblocks(superblocks, block_units, map * block_units);
            assert!((2 * map..=3 * map + empty).contains(&sparse), "{sparse} for {map}");
        }
    }
}
