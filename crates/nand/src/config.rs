//! The configuration of an array.

use crate::cell::PageTable;
use crate::geometry::{Geometry, GeometryError};
use crate::timing::{BusTiming, DieTiming, Timing, TimingError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Shape and times of an array, as a preset states them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayConfig {
    /// The shape.
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
    /// The shape.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The times.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// A fault rate is no probability, or a count is out of its range.
    #[error("faults: {field} is {given}; it must be {wanted}")]
    Faults {
        /// The field.
        field: &'static str,
        /// The given value.
        given: f64,
        /// The possible values.
        wanted: &'static str,
    },
    /// A timeline is asked for suspend, which only the array simulates.
    #[error("{key} is set, and the timeline does not simulate suspend; leave {key} out")]
    Suspend {
        /// The key that asks for it.
        key: &'static str,
    },
    /// A planned fault cannot happen.
    #[error("fault schedule, entry {entry}: {reason}")]
    Schedule {
        /// Its place in the schedule, from 0.
        entry: usize,
        /// Why not.
        reason: String,
    },
}

impl ArrayConfig {
    /// Checks everything that [`Array::new`](crate::Array::new) will check of it.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.compile().map(drop)
    }

    /// Commands that a die takes before its oldest completes: 1, or 2 with a cache register. A read
    /// that may suspend has a place of its own beside these.
    pub fn die_queue_depth(&self) -> u16 {
        1 + u16::from(self.die.cache_read || self.die.cache_program)
    }

    /// The key that lets a die suspend an operation, if there is one.
    pub fn suspend_key(&self) -> Option<&'static str> {
        let keys = [
            ("die.program_suspend", self.die.program_suspend),
            ("die.erase_suspend", self.die.erase_suspend),
        ];
        keys.into_iter().find_map(|(key, suspend)| suspend.map(|_| key))
    }

    /// The same flash, whose dies do not suspend.
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
