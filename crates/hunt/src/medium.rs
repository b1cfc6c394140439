//! The simulated medium of a scenario's store.

use crate::drive::{self, Drive};
use crate::planned_faults::{self, PlannedFaults};
use crate::scenario::Scenario;
use softflash_base::{Time, UnitId};
use softflash_device::{Device, ModelDevice, UnitsImage};
use softflash_runtime::RuntimeHandle;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Image of a unit.
pub enum Image {
    /// Of the flash array.
    Flash(UnitsImage),
    /// Of a drive.
    Drive(drive::Image),
}

/// The flash array of a scenario, or its drive.
pub enum Medium {
    /// The flash array.
    Flash(Arc<ModelDevice>),
    /// A drive with a volatile write cache.
    Drive(Arc<Drive>),
}

impl Medium {
    /// A new medium.
    ///
    /// # Errors
    /// The device of the scenario cannot be built.
    pub fn new(scenario: &Scenario) -> Result<Medium, String> {
        let config = scenario.device();
        let text = |error: softflash_device::OpenError| error.to_string();
        match &scenario.drive {
            None => Ok(Medium::Flash(Arc::new(ModelDevice::in_memory(config).map_err(text)?))),
            Some(shape) => {
                let mut geometry = config.unit_geometry().map_err(text)?;
                geometry.die_queue_depth = 32;
                let units = config.units().map_err(text)?;
                Ok(Medium::Drive(Arc::new(Drive::new(
                    units,
                    geometry,
                    shape.discards,
                    scenario.seed,
                ))))
            }
        }
    }

    /// Sets the faults of a session that begins.
    pub fn plan(&self, planned_faults: &PlannedFaults, runtime: &RuntimeHandle) {
        match self {
            Medium::Flash(flash) => planned_faults::plan(planned_faults, flash, runtime),
            Medium::Drive(drive) => drive.plan(planned_faults),
        }
    }

    /// Lets flushes of the session fail, as the scenario says, if it ends with a cut.
    pub fn fail_flushes(&self, scenario: &Scenario, is_cut: bool, seed: u64) {
        if let (Medium::Drive(drive), Some(shape)) = (self, &scenario.drive) {
            let share = if is_cut { shape.failed_flushes } else { 0.0 };
            drive.fail_flushes(share, shape.stays_failed, seed);
        }
    }

    /// Whether a flush of the session has failed: the owner of the flash may have stopped, and all
    /// that it acknowledged must be there after the next start.
    pub fn has_failed_flush(&self) -> bool {
        self.failed_flushes() > 0
    }

    /// How many flushes of the session have failed.
    pub fn failed_flushes(&self) -> u64 {
        match self {
            Medium::Flash(_) => 0,
            Medium::Drive(drive) => drive.failed_flushes(),
        }
    }

    /// Whether a flush of the session has failed, and none will succeed after it.
    pub fn flushes_stay_failed(&self) -> bool {
        match self {
            Medium::Flash(_) => false,
            Medium::Drive(drive) => drive.flushes_stay_failed(),
        }
    }

    /// Image of a unit; the power is off.
    ///
    /// # Errors
    /// Errors of the device, which are not expected.
    pub fn image(&self, unit: u16) -> Result<Image, String> {
        Ok(match self {
            Medium::Flash(flash) => {
                Image::Flash(flash.image(unit..unit + 1).map_err(|error| error.to_string())?)
            }
            Medium::Drive(drive) => Image::Drive(drive.image(unit)),
        })
    }

    /// Restores a unit from an image.
    ///
    /// # Errors
    /// Errors of the device, which are not expected.
    pub fn restore(&self, image: &Image) -> Result<(), String> {
        match (self, image) {
            (Medium::Flash(flash), Image::Flash(image)) => {
                flash.restore(image).map_err(|error| error.to_string())
            }
            (Medium::Drive(drive), Image::Drive(image)) => {
                drive.restore(image);
                Ok(())
            }
            _ => Err("the image is from another kind of device".to_owned()),
        }
    }

    /// Overwrites every page of a unit of the flash array with zeros, changed by `fill`.
    ///
    /// # Errors
    /// Errors of the device, which are not expected; units of a drive cannot be overwritten.
    pub fn overwrite(&self, unit: u16, fill: impl FnMut(&mut [u8])) -> Result<(), String> {
        let Medium::Flash(flash) = self else {
            return Err("units of a drive cannot be overwritten".to_owned());
        };
        let text = |error: softflash_device::OpenError| error.to_string();
        let now = flash.image(unit..unit + 1).map_err(text)?;
        flash.restore(&now.overwritten(fill)).map_err(text)
    }

    /// The flash array, if the medium is one.
    pub fn flash(&self) -> Option<&Arc<ModelDevice>> {
        match self {
            Medium::Flash(flash) => Some(flash),
            Medium::Drive(_) => None,
        }
    }

    /// The device that the store uses.
    pub fn device(&self) -> Arc<dyn Device> {
        match self {
            Medium::Flash(flash) => Arc::clone(flash) as Arc<dyn Device>,
            Medium::Drive(drive) => Arc::clone(drive) as Arc<dyn Device>,
        }
    }

    /// Changes pages of the flash array, whose power is off: `visit` sees each that can be read,
    /// with the number of its block and its own, and may change it. Returns the array as it was
    /// before.
    ///
    /// # Errors
    /// Errors of the device, which are not expected; pages of a drive cannot be changed.
    pub fn change(&self, visit: impl FnMut(usize, usize, &mut [u8])) -> Result<UnitsImage, String> {
        let Medium::Flash(flash) = self else {
            return Err("pages of a drive cannot be changed".to_owned());
        };
        let text = |error: softflash_device::OpenError| error.to_string();
        let before = flash.image(0..flash.info().units).map_err(text)?;
        let mut changed = before.clone();
        changed.visit(visit);
        flash.restore(&changed).map_err(text)?;
        Ok(before)
    }

    /// Whether some unit has a bad block in half of its superblocks.
    pub fn is_worn_out(&self) -> bool {
        !self.worn_out_units().is_empty()
    }

    /// The units that have a bad block in half of their superblocks.
    pub fn worn_out_units(&self) -> BTreeSet<u16> {
        self.units_with_bad(1, 2)
    }

    /// Whether a unit has a bad block in a quarter of its superblocks: as many as a domain of
    /// volumes keeps free in a unit of 32.
    pub fn has_lost_its_reserve(&self) -> bool {
        !self.units_with_bad(1, 4).is_empty()
    }

    /// The units that have a bad block in this share of their superblocks.
    fn units_with_bad(&self, part: u32, of: u32) -> BTreeSet<u16> {
        let Some(flash) = self.flash() else { return BTreeSet::new() };
        let units = flash.info().all_units();
        let Ok(queue) = flash.open_queue_pair(&units) else { return BTreeSet::new() };
        let superblocks = queue.geometry().blocks_per_plane;
        let has_bad = |unit: &u16| {
            let bad: BTreeSet<u32> =
                queue.bad_blocks(UnitId(*unit)).into_iter().map(|(.., block)| block).collect();
            bad.len() as u32 * of >= superblocks * part
        };
        units.iter().filter(has_bad).collect()
    }

    /// Cuts the power.
    ///
    /// # Errors
    /// The device cannot record its state.
    pub fn power_cut(&self, at: Time, seed: u64) -> Result<(), String> {
        match self {
            Medium::Flash(flash) => flash.power_cut(at, seed).map(drop).map_err(|e| e.to_string()),
            Medium::Drive(drive) => {
                drive.power_cut(seed);
                Ok(())
            }
        }
    }
}
