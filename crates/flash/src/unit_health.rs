//! Tells from the outcomes of commands whether a unit is lost.

use softflash_device::DeviceError;
use softflash_ftl::FtlError;
use std::cell::Cell;

/// Consecutive I/O errors of the operating system after which a unit counts as lost.
const ERRORS_OF_LOST_UNIT: u32 = 16;

/// Whether a unit is lost: a die of it is dead, or the path to it fails.
#[derive(Debug, Default)]
pub struct UnitHealth {
    /// Failures since the last success.
    errors: Cell<u32>,
}

impl UnitHealth {
    /// Records the outcome of a command.
    pub fn note(&self, error: Option<&FtlError>) {
        let errors = self.errors.get();
        self.errors.set(match error {
            None => 0,
            Some(FtlError::Device { error: DeviceError::DeadDie, .. }) => ERRORS_OF_LOST_UNIT,
            Some(FtlError::Device { error: DeviceError::Io { .. }, .. }) => {
                errors.saturating_add(1)
            }
            Some(_) => errors,
        });
    }

    /// Whether the last commands show that the unit is lost.
    pub fn is_lost(&self) -> bool {
        self.errors.get() >= ERRORS_OF_LOST_UNIT
    }
}
