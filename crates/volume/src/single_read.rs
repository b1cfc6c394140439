//! Reads of one mapping unit, which are most reads: without the lists that longer ones need.

use crate::core::Core;
use crate::domain_map::Found;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::data_seed;
use crate::image::ImageId;
use crate::writer::is_whole;
use softflash_base::cast;
use softflash_ftl::Hint;

/// Reads a mapping unit, if nothing is special about it. Otherwise returns false, and the caller
/// reads it as any other range: its frame is under way, it is being moved, or it is damaged.
pub(crate) async fn read(
    core: &Core,
    image: ImageId,
    lba: u32,
    into: &mut [u8],
    hint: Hint,
) -> bool {
    let found = {
        let map = core.map.borrow();
        if map.images.get(image).is_none() {
            return false;
        }
        map.find(image, lba)
    };
    let (slot, origin, checksum) = match found {
        Found::At { slot, origin, checksum } => (slot, origin, checksum),
        Found::Lost { .. } => return false,
        Found::Zeros => {
            into.fill(0);
            return true;
        }
    };
    let block = core.geometry.block_of(slot);
    let Some(superblock) = core.superblocks.handle(block) else { return false };
    if core.superblocks.frame_at(block, slot).is_some() {
        return false;
    }
    let (page, inside) = core.geometry.page_of(slot);
    let Ok(read) = core.flash.read(&superblock, page, 1, hint).await else { return false };
    let at = cast::index(inside) * MAPPING_UNIT_BYTES;
    let bytes = &read.bytes[at..at + MAPPING_UNIT_BYTES];
    // Data with another seed, of a promoted volume, are read as any other range.
    let is_whole = is_whole(data_seed(origin, lba), bytes, checksum);
    if is_whole {
        into.copy_from_slice(bytes);
    }
    is_whole
}
