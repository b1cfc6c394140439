//! Unit slots whose unit the domain had when a root was written, and has no more: it was empty when
//! the table of sets handed it over. If the root names something there, the table is a wrong one.

use crate::core::Core;
use crate::error::VolumeError;
use crate::format::root::Root;
use std::cell::Cell;
use std::collections::BTreeMap;

/// The unit slots, with the unit that each had.
pub(super) struct HandedOver {
    units: BTreeMap<u32, u16>,
    /// One of them in which the root has something.
    named: Cell<Option<(u32, u16)>>,
}

impl HandedOver {
    /// Those since this root.
    pub fn since(core: &Core, root: &Root) -> HandedOver {
        let unit_slots = &core.geometry.unit_slots;
        // Without tables, then and now, the units are always the same.
        let plain = match (!unit_slots.are_named(), root.units.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => core.geometry.units().iter().collect(),
            (false, false) => root.units.iter().map(|mark| mark.unit).collect(),
        };
        let then = match root.unit_slots.is_empty() {
            true => plain.into_iter().map(Some).collect(),
            false => root.unit_slots.clone(),
        };
        let units = (0..).zip(then).filter_map(|(slot, unit)| Some((slot, unit?)));
        let units = units.filter(|&(slot, unit)| unit_slots.unit(slot) != Some(unit)).collect();
        HandedOver { units, named: Cell::new(None) }
    }

    /// The root has something in a block.
    pub fn note(&self, core: &Core, block: u32) {
        let slot = core.geometry.unit_of(block);
        if let Some(&unit) = self.units.get(&slot) {
            self.named.set(Some((slot, unit)));
        }
    }

    /// Fails if the root has leaves or open superblocks there.
    pub fn check_root(&self, core: &Core, root: &Root) -> Result<(), VolumeError> {
        let halves = root.leaves.iter().flat_map(|leaf| leaf.halves);
        halves.flat_map(|half| half.slots()).for_each(|slot| {
            self.note(core, core.geometry.block_of(slot));
        });
        let is_open = |unit| root.open.iter().any(|open| open.unit == unit);
        if let Some((&slot, &unit)) = self.units.iter().find(|(_, unit)| is_open(**unit)) {
            self.named.set(Some((slot, unit)));
        }
        self.check()
    }

    /// Fails if the root has something there.
    pub fn check(&self) -> Result<(), VolumeError> {
        let Some((slot, unit)) = self.named.get() else { return Ok(()) };
        let reason = format!(
            "the map has data of unit {unit} in slot {slot}, which the table of sets does not give \
             to this unit; put the newest table back"
        );
        Err(VolumeError::Damaged { reason })
    }
}
