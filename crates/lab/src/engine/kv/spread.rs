//! The distribution of a store's patches over the units, and its figures.

use super::clients::SliceClients;
use softflash_base::UnitSet;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Counts of patches by their place.
#[derive(Debug, Default)]
pub struct Spread {
    /// Patches on each unit.
    on_unit: BTreeMap<u16, u64>,
    /// Patches that follow another in their run.
    followers: u64,
    /// Those of them on the unit after that of their predecessor.
    round_robin: u64,
}

impl Spread {
    /// The current distribution of all slices.
    pub fn of(slices: &[Rc<SliceClients>]) -> Spread {
        let mut spread = Spread::default();
        for slice in slices {
            let store = &slice.store;
            let units = store.blocks().flash().units();
            store.patch_units(slice.slice).iter().for_each(|run| spread.add(&units, run));
        }
        spread
    }

    /// Adds a run of patches in the order of their keys; `units` are all possible units.
    fn add(&mut self, units: &UnitSet, run: &[u16]) {
        for unit in units {
            self.on_unit.entry(unit).or_default();
        }
        for unit in run {
            *self.on_unit.entry(*unit).or_default() += 1;
        }
        let after = |unit: u16| units.get(units.position(unit)? + 1).or(units.first());
        for pair in run.windows(2) {
            self.followers += 1;
            self.round_robin += u64::from(after(pair[0]) == Some(pair[1]));
        }
    }

    /// Patches; patches on the fullest unit over the mean of all; the share of patches on the unit
    /// after that of their predecessor.
    pub fn figures(&self) -> [(String, f64); 3] {
        let patches: u64 = self.on_unit.values().sum();
        let fullest = self.on_unit.values().max().copied().unwrap_or(0);
        let mean = patches as f64 / self.on_unit.len().max(1) as f64;
        [
            ("patches", patches as f64),
            ("fullest_unit_share", fullest as f64 / mean.max(f64::MIN_POSITIVE)),
            ("in_turn_share", self.round_robin as f64 / self.followers.max(1) as f64),
        ]
        .map(|(name, value)| (name.to_owned(), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_counted_by_unit_and_by_what_they_follow() {
        let mut spread = Spread::default();
        let units = UnitSet::from(4..8);
        spread.add(&units, &[6, 7, 4, 6]);
        spread.add(&units, &[7]);
        let figures = spread.figures().map(|(_, value)| value);
        assert_eq!(figures, [5.0, 2.0 / 1.25, 2.0 / 3.0]);
    }
}
