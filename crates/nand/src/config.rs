//! The configuration of an array.

use crate::cell::PageTable;
use crate::geometry::{Geometry, GeometryError};
use crate::timing::{BusTiming, DieTiming, Timing, TimingError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Geometry and timing of an array, as in a preset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayConfig {
    /// The geometry.
    pub geometry: Geometry,
    /// Times of the dies.
    pub die: DieTiming,
    /// Times of the channels.
    pub bus: BusTiming,
}

/// Why an array cannot be built.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The geometry.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The times.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// A fault rate is not a probability, or a count is out of its range.
    #[error("faults: {field} is {given}; it must be {wanted}")]
    Faults {
        /// The field.
        field: &'static str,
        /// The given value.
        given: f64,
        /// The possible values.
        wanted: &'static str,
    },
    /// A planned fault is impossible.
    #[error("fault schedule, entry {entry}: {reason}")]
    Schedule {
        /// Its place in the schedule, from 0.
        entry: usize,
        /// The reason.
        reason: String,
    },
}

impl ArrayConfig {
    /// Makes all checks of [`Array::new`](crate::Array::new) on this configuration.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.compile().map(drop)
    }

    /// Commands that a die accepts before its oldest completes: 1, or 2 with a cache register. A
    /// suspending read has a place in addition to these.
    pub fn die_queue_depth(&self) -> u16 {
        1 + u16::from(self.die.cache_read || self.die.cache_program)
    }

    /// The same configuration without suspend.
    pub fn without_suspend(mut self) -> ArrayConfig {
        (self.die.program_suspend, self.die.erase_suspend) = (None, None);
        self
    }

    pub(crate) fn compile(&self) -> Result<(Timing, PageTable), ConfigError> {
        self.geometry.validate()?;
        let pages = PageTable::new(&self.geometry, self.die.cell, self.die.pairing)?;
        Ok((Timing::new(&self.geometry, &self.die, &self.bus)?, pages))
    }
}
