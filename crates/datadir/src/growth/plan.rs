//! The plan of a growth, which is checked and can be shown before anything is changed.

use crate::error::DataDirError;
use crate::manifest::Manifest;
use crate::set_table::{Grown, SetTable, Shares};
use crate::sets::FlashSet;
use bytesize::ByteSize;
use softflash_base::UnitSet;
use softflash_device::{
    Device, DeviceInfo, UnitGeometry, bytes_with, check_growth, drive_bytes, units_in,
};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A growth of the device of a data directory.
#[derive(Debug, Clone)]
pub struct Growth {
    /// The new units.
    pub units: Range<u16>,
    /// Bytes of the device afterwards, its label included.
    pub device_bytes: u64,
    /// Which units join which sets, and the table with them.
    pub grown: Grown,
    /// The directory.
    path: PathBuf,
    /// The sets before.
    pub before: Vec<FlashSet>,
    /// The sets afterwards, in the same order.
    pub after: Vec<FlashSet>,
    /// All units that are in no set afterwards.
    pub spare: UnitSet,
    /// The table that names all units that there are before.
    pub(super) pinned: SetTable,
}

impl Growth {
    /// The growth of a directory's device to `size_bytes`, label included, or to all of its block
    /// device. It gets the most whole units that fit. `None` where the device has them already.
    /// Changes nothing, and works beside a process that uses the directory.
    ///
    /// # Errors
    /// [`DataDirError::Size`] for a size that it cannot have, [`DataDirError::Growth`] where
    /// the device gets no more units, [`DataDirError::Set`] for shares that cannot be.
    pub fn plan(
        path: &Path,
        manifest: &Manifest,
        device: &DeviceInfo,
        size_bytes: Option<u64>,
        shares: Shares,
    ) -> Result<Option<Growth>, DataDirError> {
        let failed = DataDirError::growth(path);
        let device_path = path.join(&manifest.device);
        let size = match size_bytes {
            Some(size) => size,
            None => drive_bytes(&device_path).map_err(&failed)?.ok_or_else(|| {
                DataDirError::Options("give the device a size, as `--size 128GiB`".to_owned())
            })?,
        };
        let units = units_after(size, device).map_err(|reason| {
            let path = path.to_owned();
            DataDirError::Size { path, reason }
        })?;
        if units == device.units {
            return Ok(None);
        }
        check_growth(&device_path, units).map_err(&failed)?;
        let pinned = manifest.table(device.units).pinned().map_err(DataDirError::set(path))?;
        let new = device.units..units;
        let grown = pinned.grown(new.clone(), shares).map_err(DataDirError::set(path))?;
        let larger = DeviceInfo { units, ..device.clone() };
        let after = manifest.changed_to(&grown.next, &larger, path)?;
        Ok(Some(Growth {
            path: path.to_owned(),
            units: new,
            device_bytes: bytes_with(units, &device.geometry),
            before: manifest.sets(device),
            after: after.sets(&larger),
            spare: grown.next.spare(units),
            grown,
            pinned,
        }))
    }

    /// The device with the new units, of which those that [join](Grown::joining) a set are to be
    /// erased; they are the device's once the growth is [finished](crate::DataDir::finish_growth).
    /// It waits for the file system.
    ///
    /// # Errors
    /// [`DataDirError::Growth`] where the device gets no more units.
    pub fn enlarge(&self, device: &dyn Device) -> Result<Arc<dyn Device>, DataDirError> {
        device.enlarge(self.units.end).map_err(DataDirError::growth(&self.path))
    }
}

/// The units of a device of this size, or why it cannot have the size.
fn units_after(size: u64, device: &DeviceInfo) -> Result<u16, String> {
    let (geometry, has) = (&device.geometry, device.units);
    let units = units_in(size, geometry);
    if units < has {
        return Err(format!(
            "{} are less than the device has; a directory cannot become smaller: make one with \
             `softflash format`, and move the data by `softflash dump` and `load`, `softflash volume \
             export` and `import`. A larger one has at least {}",
            words(size),
            least_larger(has, geometry)
        ));
    }
    Ok(units)
}

/// The size of the device with one unit more, for people.
pub fn least_larger(has: u16, geometry: &UnitGeometry) -> String {
    let bytes = bytes_with(has.saturating_add(1), geometry);
    format!("{bytes} bytes ({})", words(bytes))
}

fn words(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}
