//! The unit slots of a domain: each of its units has a part of the numbers of places, its *slot*.

use crate::error::VolumeError;
use softflash_base::planted::{self, Bug};
use softflash_base::{UnitSet, cast};
use std::num::NonZeroU32;

/// The unit slots of a domain as a table of sets names them. A unit keeps its slot as long as it
/// is in the domain; then another one may have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitSlots {
    epoch: NonZeroU32,
    units: Vec<Option<u16>>,
}

impl UnitSlots {
    /// The unit in each slot, if there is one, at an epoch of the table. The epoch rises with each
    /// change of the table.
    pub fn new(epoch: NonZeroU32, units: Vec<Option<u16>>) -> UnitSlots {
        UnitSlots { epoch, units }
    }

    /// The epoch of the table.
    pub fn epoch(&self) -> u32 {
        self.epoch.get()
    }
}

/// Which unit has which slot. The domain numbers its units by their positions in their set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotMap {
    /// The unit in each slot.
    units: Vec<Option<u16>>,
    /// The number of the unit in each slot.
    numbers: Vec<Option<u32>>,
    /// The slot of each unit, by its number.
    slots: Vec<u32>,
    /// Whether a table of sets names them.
    is_named: bool,
}

impl SlotMap {
    /// Those of these units as the table names them; without a table, in their order.
    pub fn of(units: &UnitSet, named: Option<&UnitSlots>) -> Result<SlotMap, VolumeError> {
        let in_order = || units.iter().map(Some).collect();
        let named_slots = named.filter(|_| !planted::bug(Bug::SlotsRenumbered));
        let mut unit_slots = named_slots.map_or_else(in_order, |named| named.units.clone());
        // The map has a part for each slot.
        while unit_slots.pop_if(|unit| unit.is_none()).is_some() {}
        let number = |unit: &Option<u16>| units.position((*unit)?).map(cast::saturating_u32);
        let numbers: Vec<Option<u32>> = unit_slots.iter().map(number).collect();
        let slot = |unit| unit_slots.iter().position(|in_slot| *in_slot == Some(unit));
        let slots: Vec<u32> = units.iter().filter_map(slot).map(cast::saturating_u32).collect();
        if slots.len() != units.len() || unit_slots.iter().flatten().count() != units.len() {
            let named: Vec<u16> = unit_slots.into_iter().flatten().collect();
            let reason = format!(
                "it has the units {units}, and the table of sets gives slots to the units {named:?}"
            );
            return Err(VolumeError::Unsupported { reason });
        }
        let has_number = |(number, &slot): (u32, &u32)| numbers[cast::index(slot)] == Some(number);
        assert!(
            (0..).zip(&slots).all(has_number),
            "units {units} in slots {slots:?}: {unit_slots:?}"
        );
        Ok(SlotMap { units: unit_slots, numbers, slots, is_named: named.is_some() })
    }

    /// The number of slots.
    pub fn count(&self) -> u32 {
        cast::saturating_u32(self.units.len())
    }

    /// The slot of a unit, from its number.
    #[inline]
    pub fn slot(&self, number: u32) -> u32 {
        self.slots[cast::index(number)]
    }

    /// The number of the unit in a slot.
    ///
    /// # Panics
    /// If the slot is empty.
    #[inline]
    pub fn number(&self, slot: u32) -> u32 {
        match self.numbers.get(cast::index(slot)) {
            Some(Some(number)) => *number,
            _ => unreachable!("the domain has units in slots {:?}, none in {slot}", self.slots),
        }
    }

    /// The unit in a slot.
    pub fn unit(&self, slot: u32) -> Option<u16> {
        self.units.get(cast::index(slot)).copied().flatten()
    }

    /// What a root says: the unit in each slot, where a table names them.
    pub fn named(&self) -> &[Option<u16>] {
        if self.is_named { &self.units } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit_slots(units: &str, named: &[Option<u16>]) -> Result<SlotMap, VolumeError> {
        let named = UnitSlots::new(NonZeroU32::MIN, named.to_vec());
        SlotMap::of(&units.parse().unwrap(), Some(&named))
    }

    #[test]
    fn units_have_the_slots_of_the_table_and_their_order_without_one() {
        let unit_slots = unit_slots("3,5-6", &[Some(6), None, Some(3), Some(5), None]).unwrap();
        assert_eq!([0, 1, 2].map(|number| unit_slots.slot(number)), [2, 3, 0]);
        assert_eq!([2, 3, 0].map(|slot| unit_slots.number(slot)), [0, 1, 2]);
        assert_eq!(
            (unit_slots.count(), unit_slots.named().len(), unit_slots.unit(1)),
            (4, 4, None)
        );
        let plain = SlotMap::of(&"3,5-6".parse().unwrap(), None).unwrap();
        assert_eq!([0, 1, 2].map(|number| plain.slot(number)), [0, 1, 2]);
        assert_eq!((plain.count(), plain.named(), plain.unit(1)), (3, &[][..], Some(5)));
    }

    #[test]
    fn each_unit_has_one_slot() {
        for wrong in [&[Some(3)][..], &[Some(3), Some(5), Some(3)], &[Some(3), Some(5), Some(4)]] {
            let error = unit_slots("3,5", wrong).unwrap_err();
            assert!(error.to_string().contains("units 3,5"), "{error}");
        }
    }
}
