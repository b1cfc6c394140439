//! The units of a device that have a queue pair.

use crate::queue_pair::OpenError;
use softflash_base::UnitSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The units in use. A clone shares them.
#[derive(Debug, Clone, Default)]
pub struct Claims(Arc<Mutex<Vec<UnitSet>>>);

/// Units that belong to one queue pair until this is dropped.
#[derive(Debug)]
pub struct Claim {
    claims: Claims,
    units: UnitSet,
}

impl Claims {
    /// Claims the units `wanted` of a device with `units` units.
    ///
    /// # Errors
    /// [`OpenError::Geometry`] where there are none, or one is outside the device or claimed.
    pub fn claim(&self, wanted: &UnitSet, units: u16) -> Result<Claim, OpenError> {
        let refuse = |reason| Err(OpenError::Geometry(reason));
        match wanted.last() {
            None => return refuse("a queue pair needs at least one unit".to_owned()),
            Some(last) if last >= units => {
                return refuse(format!("units {wanted} of a device with {units} units"));
            }
            Some(_) => {}
        }
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = taken.iter().find(|other| other.shared_with(wanted).is_some()) {
            return refuse(format!(
                "units {wanted} overlap units {other}, which have a queue pair"
            ));
        }
        taken.push(wanted.clone());
        Ok(Claim { claims: self.clone(), units: wanted.clone() })
    }
}

impl Claim {
    /// The units.
    pub fn units(&self) -> &UnitSet {
        &self.units
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut taken = self.claims.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|units| *units != self.units);
    }
}
