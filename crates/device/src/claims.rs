//! The units of a device that have a queue pair.

use crate::queue_pair::OpenError;
use softflash_base::{UnitId, UnitSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The units in use. A clone shares them.
#[derive(Debug, Clone, Default)]
pub struct Claims(Arc<Mutex<Table>>);

/// The claims that hold units.
#[derive(Debug, Default)]
struct Table {
    /// The number of claims so far.
    claims: u64,
    /// The units that each claim holds, by its number.
    held: Vec<(u64, UnitSet)>,
}

/// Units that belong to one queue pair until they are released or this is dropped.
#[derive(Debug)]
pub struct Claim {
    claims: Claims,
    /// No other claim of the device has this number.
    number: u64,
    units: UnitSet,
    held: UnitSet,
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
        let mut table = self.table();
        let mut others = table.held.iter().map(|(_, units)| units);
        if let Some(other) = others.find(|other| other.shared_with(wanted).is_some()) {
            return refuse(format!(
                "units {wanted} overlap units {other}, which have a queue pair"
            ));
        }
        let number = table.claims;
        table.claims += 1;
        table.held.push((number, wanted.clone()));
        let (units, held) = (wanted.clone(), wanted.clone());
        Ok(Claim { claims: self.clone(), number, units, held })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Sets the units that a claim holds.
    fn set_held(&mut self, number: u64, units: &UnitSet) {
        self.held.retain(|(other, _)| *other != number);
        if !units.is_empty() {
            self.held.push((number, units.clone()));
        }
    }
}

impl Claim {
    /// The units that were claimed, also those that have been released since: the positions of
    /// units do not change.
    pub fn units(&self) -> &UnitSet {
        &self.units
    }

    /// The units that have not been released.
    pub fn held(&self) -> &UnitSet {
        &self.held
    }

    /// Releases a unit: another queue pair can claim it. One that is not held stays as it is.
    pub fn release(&mut self, unit: UnitId) {
        self.held = self.held.iter().filter(|other| *other != unit.0).collect();
        self.claims.table().set_held(self.number, &self.held);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.table().set_held(self.number, &UnitSet::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: u16 = 8;

    fn claim(claims: &Claims, units: &str) -> Result<Claim, String> {
        claims.claim(&units.parse().unwrap(), UNITS).map_err(|error| error.to_string())
    }

    #[test]
    fn a_released_unit_can_be_claimed_while_the_first_claim_lives() {
        let claims = Claims::default();
        let mut first = claim(&claims, "0-3").unwrap();
        assert!(claim(&claims, "2").unwrap_err().contains("overlap units 0-3"));
        first.release(UnitId(2));
        let second = claim(&claims, "2").unwrap();
        assert_eq!(
            (first.units().to_string(), first.held().to_string()),
            ("0-3".into(), "0-1,3".into())
        );
        assert!(claim(&claims, "2-3").unwrap_err().contains("which have a queue pair"));
        assert!(claim(&claims, "3").unwrap_err().contains("overlap units 0-1,3"));
        first.release(UnitId(3));
        drop(second);
        claim(&claims, "2-3").unwrap();
    }

    #[test]
    fn a_dropped_claim_takes_only_the_units_that_it_still_holds_with_it() {
        let claims = Claims::default();
        let mut first = claim(&claims, "0-1").unwrap();
        first.release(UnitId(0));
        let second = claim(&claims, "0").unwrap();
        drop(first);
        claim(&claims, "1").unwrap();
        claim(&claims, "0").unwrap_err();
        drop(second);
        claim(&claims, "0-1").unwrap();
    }

    #[test]
    fn claims_of_the_same_units_one_after_the_other_are_told_apart() {
        let claims = Claims::default();
        let mut first = claim(&claims, "5").unwrap();
        first.release(UnitId(5));
        assert!(first.held().is_empty(), "all of its units are released, and it lives");
        let _second = claim(&claims, "5").unwrap();
        // Neither a second release nor the drop of the first claim concerns the second one.
        first.release(UnitId(5));
        claim(&claims, "5").unwrap_err();
        drop(first);
        claim(&claims, "5").unwrap_err();
    }

    #[test]
    fn a_unit_that_is_not_of_the_claim_is_not_released() {
        let claims = Claims::default();
        let mut first = claim(&claims, "0-1").unwrap();
        let _second = claim(&claims, "4").unwrap();
        first.release(UnitId(4));
        claim(&claims, "4").unwrap_err();
        assert_eq!(first.held(), first.units());
    }
}
