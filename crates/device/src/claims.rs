//! The units of a device that have a queue pair.

use crate::queue_pair::OpenError;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The unit ranges in use. A clone shares the set.
#[derive(Debug, Clone, Default)]
pub struct Claims(Arc<Mutex<Vec<Range<u16>>>>);

/// Units that belong to one queue pair until this is dropped.
#[derive(Debug)]
pub struct Claim {
    claims: Claims,
    units: Range<u16>,
}

impl Claims {
    /// Claims the units `wanted` of a device with `units` units.
    ///
    /// # Errors
    /// [`OpenError::Geometry`] where the range is empty, outside the device, or overlaps another.
    pub fn claim(&self, wanted: Range<u16>, units: u16) -> Result<Claim, OpenError> {
        if wanted.is_empty() || wanted.end > units {
            return Err(OpenError::Geometry(format!(
                "units {wanted:?} of a device with {units} units"
            )));
        }
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = taken.iter().find(|t| t.start < wanted.end && wanted.start < t.end) {
            return Err(OpenError::Geometry(format!(
                "units {wanted:?} overlap units {other:?}, which have a queue pair"
            )));
        }
        taken.push(wanted.clone());
        Ok(Claim { claims: self.clone(), units: wanted })
    }
}

impl Claim {
    /// The units.
    pub fn units(&self) -> Range<u16> {
        self.units.clone()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut taken = self.claims.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|units| *units != self.units);
    }
}
