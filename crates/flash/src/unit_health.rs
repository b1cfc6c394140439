//! Tells from the outcomes of commands whether a unit is lost.

use softflash_device::DeviceError;
use softflash_ftl::FtlError;
use std::cell::Cell;

/// Consecutive I/O errors of the operating system after which a unit counts as lost.
const ERRORS_OF_LOST_UNIT: u32 = 16;

/// Whether a unit is lost: a die of it is dead, or the path to it fails.
#[derive(Debug, Default)]
pub struct UnitHealth {
    is_dead: Cell<bool>,
    /// I/O errors since the last success.
    errors: Cell<u32>,
}

impl UnitHealth {
    /// Records the outcome of a command.
    pub fn note(&self, error: Option<&FtlError>) {
        match error {
            None => self.errors.set(0),
            Some(FtlError::Device { error: DeviceError::DeadDie, .. }) => self.is_dead.set(true),
            Some(FtlError::Device { error: DeviceError::Io { .. }, .. }) => {
                self.errors.set(self.errors.get().saturating_add(1));
            }
            Some(_) => {}
        }
    }

    /// Whether a die of the unit is dead: each of its superblocks has a part of it.
    pub fn is_dead(&self) -> bool {
        self.is_dead.get()
    }

    /// Whether the unit is dead, or its last commands have failed.
    pub fn is_lost(&self) -> bool {
        self.is_dead() || self.errors.get() >= ERRORS_OF_LOST_UNIT
    }
}
