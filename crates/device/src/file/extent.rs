//! The offsets of units, superblocks and pages in the file.

use crate::command::Target;
use crate::geometry::UnitGeometry;
use crate::label::LABEL_AREA_BYTES;

/// Bytes that a device of this geometry occupies in its file.
pub(super) fn device_bytes(geometry: &UnitGeometry, units: u16) -> u64 {
    LABEL_AREA_BYTES + u64::from(units) * geometry.unit_bytes()
}

/// The offset of the target's first page. The target has been checked.
pub(super) fn offset(geometry: &UnitGeometry, target: &Target) -> u64 {
    LABEL_AREA_BYTES
        + u64::from(target.unit.0) * geometry.unit_bytes()
        + u64::from(target.blocks[0]) * geometry.superblock_bytes()
        + u64::from(target.page) * u64::from(geometry.page_bytes)
}

/// The part of a geometry that the file backend does not support, if any.
pub(super) fn unsuitable(geometry: &UnitGeometry, units: u16) -> Option<String> {
    if (geometry.dies, geometry.planes) != (1, 1) {
        return Some("a unit of a file device has one die with one plane".to_owned());
    }
    if !geometry.page_bytes.is_power_of_two() || geometry.page_bytes < 4096 {
        return Some(format!(
            "pages of {} bytes; a power of two from 4096 on is needed",
            geometry.page_bytes
        ));
    }
    if units == 0 || geometry.blocks_per_plane == 0 || geometry.pages_per_block == 0 {
        return Some("a device needs units, superblocks and pages".to_owned());
    }
    if geometry.die_queue_depth == 0 {
        return Some("die_queue_depth is 0; it must be at least 1".to_owned());
    }
    let pages = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
    if pages > MAX_SUPERBLOCK_BYTES {
        return Some(format!("superblocks of {pages} bytes; the most is {MAX_SUPERBLOCK_BYTES}"));
    }
    // A superblock has at most 2^30 bytes and a unit 2^32 superblocks, so this product fits.
    if geometry.unit_bytes() > MAX_DEVICE_BYTES / u64::from(units) {
        return Some(format!("{units} units of {} bytes each", geometry.unit_bytes()));
    }
    None
}

/// The kernel counts the bytes of a file in 63 bits.
const MAX_DEVICE_BYTES: u64 = 1 << 62;

/// One request to the kernel carries at most 2 GiB less a page.
pub(super) const MAX_SUPERBLOCK_BYTES: u64 = 1 << 30;
