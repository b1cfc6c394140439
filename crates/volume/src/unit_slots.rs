//! The unit slots of a domain: each of its units has a part of the numbers of places, its *slot*.

use crate::error::VolumeError;
use softflash_base::planted::{self, Bug};
use softflash_base::{UnitSet, cast};
use std::cell::RefCell;
use std::num::NonZeroU32;
use std::rc::Rc;

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

    /// The units.
    pub fn units(&self) -> UnitSet {
        self.units.iter().flatten().copied().collect()
    }

    /// The number of slots.
    pub(crate) fn count(&self) -> u32 {
        cast::saturating_u32(self.units.len())
    }

    /// The unit in a slot.
    pub(crate) fn unit(&self, slot: u32) -> Option<u16> {
        self.units.get(cast::index(slot)).copied().flatten()
    }
}

/// Which unit has which slot now. The domain numbers its units by their slots, so that numbers stay
/// when units join and leave. A clone is the same map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotMap(Rc<RefCell<Rc<Slots>>>);

/// The units in their slots at one time.
#[derive(Debug, PartialEq, Eq)]
struct Slots {
    /// The unit in each slot.
    units: Vec<Option<u16>>,
    set: UnitSet,
    /// The slot of each unit of the set, by its position there.
    slots: Vec<u32>,
    /// Whether a table of sets names them.
    is_named: bool,
}

impl SlotMap {
    /// Those of these units as the table names them; without a table, in their order.
    pub fn of(units: &UnitSet, named: Option<&UnitSlots>) -> Result<SlotMap, VolumeError> {
        let slots = Slots::of(units, named)?;
        Ok(SlotMap(Rc::new(RefCell::new(Rc::new(slots)))))
    }

    /// Units have joined, or left, as the table says from now on.
    pub fn change(&self, units: &UnitSet, named: &UnitSlots) -> Result<(), VolumeError> {
        let slots = Slots::of(units, Some(named))?;
        self.0.replace(Rc::new(slots));
        Ok(())
    }

    fn now(&self) -> Rc<Slots> {
        Rc::clone(&self.0.borrow())
    }

    /// The number of slots, also of empty ones between units.
    pub fn count(&self) -> u32 {
        cast::saturating_u32(self.0.borrow().units.len())
    }

    /// The units.
    pub fn units(&self) -> UnitSet {
        self.0.borrow().set.clone()
    }

    /// The slots that have a unit.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        let slots = self.now();
        (0..self.count()).filter(move |&slot| slots.units[cast::index(slot)].is_some())
    }

    /// The slot of a unit.
    pub fn slot(&self, unit: u16) -> Option<u32> {
        let slots = self.0.borrow();
        slots.slots.get(slots.set.position(unit)?).copied()
    }

    /// The unit in a slot.
    pub fn unit(&self, slot: u32) -> Option<u16> {
        self.0.borrow().units.get(cast::index(slot)).copied().flatten()
    }

    /// Whether a table names them.
    pub fn are_named(&self) -> bool {
        self.0.borrow().is_named
    }

    /// What a root says: the unit in each slot, where a table names them.
    pub fn named(&self) -> Vec<Option<u16>> {
        let slots = self.0.borrow();
        if slots.is_named { slots.units.clone() } else { Vec::new() }
    }
}

impl Slots {
    fn of(set: &UnitSet, named: Option<&UnitSlots>) -> Result<Slots, VolumeError> {
        let in_order = || set.iter().map(Some).collect();
        let named_slots = named.filter(|_| !planted::bug(Bug::SlotsRenumbered));
        let mut units = named_slots.map_or_else(in_order, |named| named.units.clone());
        // The map has a part for each slot.
        while units.pop_if(|unit| unit.is_none()).is_some() {}
        let slot = |unit| units.iter().position(|in_slot| *in_slot == Some(unit));
        let slots: Vec<u32> = set.iter().filter_map(slot).map(cast::saturating_u32).collect();
        if slots.len() != set.len() || units.iter().flatten().count() != set.len() {
            let named: Vec<u16> = units.into_iter().flatten().collect();
            let reason = format!(
                "it has the units {set}, and the table of sets gives slots to the units {named:?}"
            );
            return Err(VolumeError::Unsupported { reason });
        }
        Ok(Slots { units, set: set.clone(), slots, is_named: named.is_some() })
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
        let found = [3, 5, 6, 7].map(|unit| unit_slots.slot(unit));
        assert_eq!(found, [Some(2), Some(3), Some(0), None]);
        assert_eq!(unit_slots.numbers().collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(
            (unit_slots.count(), unit_slots.named().len(), unit_slots.unit(1)),
            (4, 4, None)
        );
        let plain = SlotMap::of(&"3,5-6".parse().unwrap(), None).unwrap();
        assert_eq!(plain.numbers().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((plain.count(), plain.named(), plain.unit(1)), (3, Vec::new(), Some(5)));
    }

    #[test]
    fn numbers_stay_when_units_join_and_leave() {
        let epoch = NonZeroU32::new(2).unwrap();
        let plain = SlotMap::of(&"3,5".parse().unwrap(), None).unwrap();
        let same = plain.clone();
        let joined = UnitSlots::new(epoch, vec![Some(3), Some(5), Some(4)]);
        plain.change(&"3-5".parse().unwrap(), &joined).unwrap();
        assert_eq!([3, 4, 5].map(|unit| same.slot(unit)), [Some(0), Some(2), Some(1)]);
        assert!(same.are_named());
        let left = UnitSlots::new(epoch, vec![None, Some(5), Some(4)]);
        plain.change(&"4-5".parse().unwrap(), &left).unwrap();
        assert_eq!(same.numbers().collect::<Vec<_>>(), [1, 2]);
        let wrong = plain.change(&"4".parse().unwrap(), &left);
        assert!(wrong.is_err() && same.units().to_string() == "4-5", "{wrong:?}");
    }

    #[test]
    fn each_unit_has_one_slot() {
        for wrong in [&[Some(3)][..], &[Some(3), Some(5), Some(3)], &[Some(3), Some(5), Some(4)]] {
            let error = unit_slots("3,5", wrong).unwrap_err();
            assert!(error.to_string().contains("units 3,5"), "{error}");
        }
    }
}
