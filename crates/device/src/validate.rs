//! Checks of a command against the device's geometry, the same for every backend.

use crate::command::{Command, DeviceError, Operation, Target};
use crate::geometry::{MAX_PLANES, UnitGeometry};
use softflash_base::UnitSet;

/// Checks that the command's target is inside `units` and that its buffer fits the target; a read
/// may be of a page's first `sector_bytes`.
///
/// # Errors
/// [`DeviceError::OutOfRange`] names the violation.
pub fn check(
    geometry: &UnitGeometry,
    sector_bytes: u32,
    units: &UnitSet,
    command: &Command,
) -> Result<(), DeviceError> {
    let target = &command.target;
    match &command.operation {
        Operation::Flush => Ok(()),
        Operation::Erase | Operation::MarkBad => check_blocks(geometry, units, target),
        Operation::Read(buffer) if is_head(geometry, sector_bytes, target, buffer.len()) => {
            check_blocks(geometry, units, target)?;
            check_pages(geometry, target)
        }
        Operation::Read(buffer) | Operation::Program { data: buffer, .. } => {
            check_blocks(geometry, units, target)?;
            check_pages(geometry, target)?;
            check_length(geometry, target, buffer.len())
        }
    }
}

fn check_blocks(
    geometry: &UnitGeometry,
    units: &UnitSet,
    target: &Target,
) -> Result<(), DeviceError> {
    let outside = |what: String| Err(DeviceError::OutOfRange(what));
    if !units.contains(target.unit.0) {
        return outside(format!("unit {} is not among units {units}", target.unit));
    }
    if target.die >= geometry.dies {
        return outside(format!("die {} of a unit with {}", target.die, geometry.dies));
    }
    let end = usize::from(target.plane) + usize::from(target.planes);
    if target.planes == 0 || end > usize::from(geometry.planes).min(MAX_PLANES) {
        return outside(format!(
            "planes {}..{end} of a die with {}",
            target.plane, geometry.planes
        ));
    }
    match blocks(target).iter().find(|block| **block >= geometry.blocks_per_plane) {
        Some(block) => {
            outside(format!("block {block} of a plane with {}", geometry.blocks_per_plane))
        }
        None => Ok(()),
    }
}

/// The blocks of a target whose planes have been checked.
pub(crate) fn blocks(target: &Target) -> &[u32] {
    &target.blocks[..usize::from(target.planes).min(MAX_PLANES)]
}

/// Whether a read of `len` bytes is of the beginning of a page alone.
pub(crate) fn is_head(
    geometry: &UnitGeometry,
    sector_bytes: u32,
    target: &Target,
    len: usize,
) -> bool {
    let one_page = target.rows == 1 && target.planes == 1;
    one_page && len == sector_bytes as usize && sector_bytes < geometry.page_bytes
}

fn check_pages(geometry: &UnitGeometry, target: &Target) -> Result<(), DeviceError> {
    let end = u64::from(target.page) + u64::from(target.rows);
    if target.rows == 0 || end > u64::from(geometry.pages_per_block) {
        return Err(DeviceError::OutOfRange(format!(
            "pages {}..{end} of a block with {}",
            target.page, geometry.pages_per_block
        )));
    }
    Ok(())
}

fn check_length(geometry: &UnitGeometry, target: &Target, len: usize) -> Result<(), DeviceError> {
    let pages = u64::from(target.rows) * u64::from(target.planes);
    let expected = pages * u64::from(geometry.page_bytes);
    if len as u64 != expected {
        return Err(DeviceError::OutOfRange(format!(
            "a buffer of {len} bytes for {pages} pages, which are {expected}"
        )));
    }
    Ok(())
}
