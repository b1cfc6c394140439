//! The owners of the units of an FTL.

use crate::superblock::Owner;
use softflash_base::{UnitId, UnitSet};

/// How an owner has its units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    /// The owner of the superblocks that are allocated in the units. A mount lists its superblocks.
    pub owner: Owner,
    /// Whether the owner knows its data without a header: superblocks without an opening header
    /// that may have data are in [`Inventory::unclaimed`](crate::Inventory::unclaimed), and are
    /// kept until the owner releases them. They are free otherwise.
    pub asks_about_unclaimed: bool,
}

impl Ownership {
    /// That of the block layer.
    pub const BLOCKS: Ownership = Ownership::of(Owner::BLOCKS);

    /// That of an owner who knows its data by the headers.
    pub const fn of(owner: Owner) -> Ownership {
        Ownership { owner, asks_about_unclaimed: false }
    }
}

/// The sets of units of an FTL with their owners: every unit has one.
#[derive(Debug, Clone)]
pub struct Owners {
    sets: Vec<(UnitSet, Ownership)>,
    epoch: u32,
}

impl Owners {
    /// These sets.
    ///
    /// # Panics
    /// If a unit is in two of them.
    pub fn new(sets: Vec<(UnitSet, Ownership)>) -> Owners {
        let shared = UnitSet::in_two_of(sets.iter().map(|(units, _)| units));
        assert!(shared.is_none(), "unit and the numbers of both of its owners: {shared:?}");
        Owners { sets, epoch: 0 }
    }

    /// One owner of these units.
    pub fn one(units: UnitSet, ownership: Ownership) -> Owners {
        Owners { sets: vec![(units, ownership)], epoch: 0 }
    }

    /// The same as a table of sets has them at this epoch, which rises with each change of it. The
    /// headers of new superblocks have it, and a mount fails if one has a greater one. Without a
    /// table it is 0.
    pub fn at_epoch(self, epoch: u32) -> Owners {
        Owners { epoch, ..self }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether a table of sets says who has which unit.
    pub(crate) fn have_table(&self) -> bool {
        self.epoch > 0
    }

    /// The units of all owners.
    pub fn units(&self) -> UnitSet {
        self.sets.iter().flat_map(|(units, _)| units).collect()
    }

    /// The units of each owner.
    pub fn sets(&self) -> impl Iterator<Item = &UnitSet> {
        self.sets.iter().map(|(units, _)| units)
    }

    /// The owner of a unit.
    ///
    /// # Panics
    /// If it has none.
    pub(crate) fn of(&self, unit: UnitId) -> Ownership {
        match self.sets.iter().find(|(units, _)| units.contains(unit.0)) {
            Some((_, ownership)) => *ownership,
            None => unreachable!("unit {unit} has no owner; {} have one", self.units()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(first: &str, second: &str) -> Owners {
        let other = Ownership::of(Owner { layer: 1, domain: 2 });
        let units = |text: &str| text.parse().unwrap();
        Owners::new(vec![(units(first), Ownership::BLOCKS), (units(second), other)])
    }

    #[test]
    fn each_unit_has_the_owner_of_its_set() {
        let owners = two("0,2", "1,5");
        assert_eq!(owners.units().to_string(), "0-2,5");
        let domains = [0, 1, 2, 5].map(|unit| owners.of(UnitId(unit)).owner.domain);
        assert_eq!(domains, [0, 2, 0, 2]);
    }

    #[test]
    #[should_panic(expected = "both of its owners")]
    fn no_unit_has_two_owners() {
        two("0-2", "2-3");
    }
}
