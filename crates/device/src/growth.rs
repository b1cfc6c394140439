//! Devices that get more units at their end.
//!
//! | step | a restart finds |
//! |---|---|
//! | [`enlarge`](Device::enlarge) reserves the room | the units that it had; the room is [given back](settle_size) |
//! | [`record_units`](Device::record_units) writes the label | all units |
//!
//! No data move: a unit has the same place in a longer file.

use crate::access::Access;
use crate::geometry::{DeviceInfo, UnitGeometry};
use crate::growth_error::GrowthError;
use crate::label::{Configuration, LABEL_AREA_BYTES, open_label, read_label};
use crate::opening::{bytes_of, capabilities};
use crate::queue_pair::OpenError;
use crate::size::{cut_to, size_of};
use rustix::fs::fstatvfs;
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The most units of this geometry in a device of so many bytes, the label included.
pub fn units_in(bytes: u64, geometry: &UnitGeometry) -> u16 {
    let units = bytes.saturating_sub(LABEL_AREA_BYTES) / geometry.unit_bytes().max(1);
    u16::try_from(units).unwrap_or(u16::MAX)
}

/// The bytes of a device of so many units, the label included.
pub fn bytes_with(units: u16, geometry: &UnitGeometry) -> u64 {
    LABEL_AREA_BYTES + geometry.unit_bytes() * u64::from(units)
}

/// The size of the block device at `path`; none for a file.
///
/// # Errors
/// Those of the operating system.
pub fn drive_bytes(path: &Path) -> Result<Option<u64>, GrowthError> {
    let failed = GrowthError::io(path);
    let file = File::open(path).map_err(&failed)?;
    let is_drive = file.metadata().map_err(&failed)?.file_type().is_block_device();
    let bytes = is_drive.then(|| size_of(&file)).transpose();
    bytes.map_err(failed)
}

/// Checks that the device at `path` can get so many units. Reads only, also beside a process that
/// uses the device.
///
/// # Errors
/// [`GrowthError`] names what is in the way.
pub fn check_growth(path: &Path, units: u16) -> Result<(), GrowthError> {
    let failed = GrowthError::io(path);
    let file = File::open(path).map_err(&failed)?;
    let configuration = read_label(&file, path)?.label.configuration;
    let needed = bytes_after(&configuration, units)?;
    let found = size_of(&file).map_err(&failed)?;
    let path = path.to_owned();
    if file.metadata().map_err(&failed)?.file_type().is_block_device() {
        return match found < needed {
            true => Err(GrowthError::DriveTooSmall { path, found, needed }),
            false => Ok(()),
        };
    }
    let bytes = needed.saturating_sub(found);
    let space = fstatvfs(&file).map_err(|errno| failed(errno.into()))?;
    match space.f_bavail.saturating_mul(space.f_frsize) < bytes {
        true => Err(GrowthError::NoSpace { path, bytes }),
        false => Ok(()),
    }
}

/// The bytes of a device with so many units instead of those that it has.
fn bytes_after(configuration: &Configuration, units: u16) -> Result<u64, GrowthError> {
    let backend = configuration.backend.clone();
    if !capabilities(&backend).is_some_and(|backend| backend.more_units) {
        return Err(GrowthError::Fixed { backend });
    }
    let larger = Configuration { units, ..configuration.clone() };
    bytes_of(&larger).ok_or_else(|| GrowthError::too_large(units, &configuration.geometry))
}

/// The end of a growth that was interrupted: both copies of the label name the same units, and room
/// behind them is given back. Returns what the label says.
///
/// # Errors
/// As [`open`](crate::open).
pub fn settle_size(path: &Path) -> Result<DeviceInfo, OpenError> {
    let failed = |source| OpenError::Io { path: path.to_owned(), source };
    let (mut label, _) = open_label(path, Access::Write)?;
    label.mend()?;
    let Configuration { backend, uuid, units, geometry, .. } = label.label().configuration.clone();
    if let Some(bytes) = bytes_of(&label.label().configuration) {
        cut_to(label.file(), bytes).map_err(failed)?;
    }
    Ok(DeviceInfo { backend, uuid, units, geometry, detail: String::new() })
}
