//! The flash that leaves and roots take: what other streams leave to the next checkpoint, and what
//! a map that is larger than that of a dense volume takes of the space for data.

use crate::core::Core;
use crate::domain_map::DomainMap;
use crate::format::root::{most_bytes, parts};
use crate::room::Kept;
use softflash_base::cast;

/// Halves of a leaf, each of which takes a mapping unit.
const HALVES: u32 = 2;

/// Flushes of a checkpoint: behind the leaves, the root and its proof. Each may fill up pages that
/// a power cut could still destroy.
const FLUSHES: u32 = 3;

/// The superblocks that are kept for the next checkpoint. The leaves that a superblock of data in
/// each unit may change are counted ahead: it is opened before they are.
pub(crate) fn kept_for_checkpoint(core: &Core) -> Kept {
    let all = core.geometry.numbers();
    let units = cast::saturating_u32(all.filter(|&unit| core.takes_data(unit)).count()).max(1);
    let map = core.map.borrow();
    let ahead = units.saturating_mul(core.geometry.data_units());
    let leaves = map.leaves.unwritten().saturating_add(ahead).min(map.leaves.held());
    let superblock = core.geometry.data_units();
    let once = checkpoint_units(core, &map, leaves);
    let least = once.div_ceil(superblock).div_ceil(units).max(1);
    let twice = once.saturating_add(leaf_units(core, leaves));
    Kept { least, with_copies: least.max((twice / superblock).div_ceil(units)) }
}

/// Mapping units that a checkpoint of so many leaves takes, if it writes no copies.
pub(crate) fn checkpoint_units(core: &Core, map: &DomainMap, leaves: u32) -> u32 {
    let padding = core.geometry.block_pages() - core.geometry.data_pages + 1;
    let padding = FLUSHES * padding * core.geometry.page_units;
    leaf_units(core, leaves).saturating_add(in_frames(core, root_units(core, map))) + padding
}

/// Mapping units of so many leaves, written once.
fn leaf_units(core: &Core, leaves: u32) -> u32 {
    in_frames(core, leaves.saturating_mul(HALVES))
}

/// Mapping units with the heads of their frames, of which each ends with a page.
fn in_frames(core: &Core, units: u32) -> u32 {
    let frames = units.div_ceil(core.config.frame_units.max(1));
    units.saturating_add(frames.saturating_mul(core.geometry.page_units))
}

/// Mapping units of a root.
fn root_units(core: &Core, map: &DomainMap) -> u32 {
    let units = usize::from(core.geometry.unit_count());
    let open = units * core.frontiers.streams().count();
    let units = [units, core.geometry.unit_slots.named().len()];
    let changed = map.pair.as_ref().map(|_| cast::index(most_changed(core)));
    parts(most_bytes(&map.images, cast::index(map.leaves.held()), open, units, changed))
}

/// The most ranges that change in a domain of a pair before the next turn: the root names them.
pub(crate) fn most_changed(core: &Core) -> u32 {
    (core.geometry.slots() / SLOTS_OF_A_RANGE).clamp(256, 1 << 16)
}

/// Slots for each range that may change: a root takes a bit more than a ten thousandth of them.
const SLOTS_OF_A_RANGE: u32 = 64;

/// Mapping units of the leaves and roots of a map with so many more leaves, with their copies and
/// the heads of their frames.
pub(crate) fn map_units(core: &Core, more_leaves: u32) -> u32 {
    let map = core.map.borrow();
    let leaves = map.leaves.held().saturating_add(more_leaves).saturating_mul(HALVES);
    let units = leaves.saturating_add(root_units(core, &map)).saturating_mul(2);
    units.saturating_add(units / core.config.frame_units.max(1))
}
