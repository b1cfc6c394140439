//! Changes of the table of sets. Each makes the table that follows, at the next epoch.

use super::{MappedSet, SetError, SetTable, store_name};
use crate::pairs::PairOfSets;
use crate::slots::Slots;
use crate::volume_units::spare_space_problem;
use softflash_base::{UnitSet, cast};

/// A set for volumes to create.
#[derive(Debug, Clone)]
pub struct NewSet {
    /// Its name.
    pub name: String,
    /// How many units it has.
    pub units: u16,
    /// Its shard; without one, that with the fewest units for volumes.
    pub shard: Option<u16>,
    /// Spare space for collection in percent of the usable space.
    pub op_percent: u8,
}

/// A change of the number of units of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resize {
    /// It has as many already.
    None,
    /// Spare units join it. They have to be erased before.
    Grow {
        /// The units.
        joining: UnitSet,
        /// The table with them.
        next: SetTable,
    },
    /// Units leave it. They have to be drained before.
    Shrink {
        /// The units.
        leaving: UnitSet,
        /// The table without them.
        next: SetTable,
    },
}

impl SetTable {
    /// The place of the set of this name among the mapped ones.
    ///
    /// # Errors
    /// [`SetError::NoSet`]; [`SetError::OfStore`] for a set of the store.
    pub fn mapped_place(&self, name: &str) -> Result<usize, SetError> {
        self.mapped.iter().position(|set| set.name == name).ok_or_else(|| {
            let sets = self.mapped.iter().map(|set| set.name.clone()).collect();
            let name = name.to_owned();
            match self.units_of_all().any(|(other, _)| other == name) {
                true => SetError::OfStore { name, sets },
                false => SetError::NoSet { name, sets },
            }
        })
    }

    /// The shard whose keys the set of this name has, if it is one of the store.
    pub fn shard_of_store(&self, name: &str) -> Option<u16> {
        (0..cast::saturating_u16(self.store.len())).find(|shard| store_name(*shard) == name)
    }

    /// The units of the set of this name.
    fn units_of(&self, name: &str) -> Result<UnitSet, SetError> {
        match self.shard_of_store(name) {
            Some(shard) => Ok(self.store[usize::from(shard)].clone()),
            None => Ok(self.mapped[self.mapped_place(name)?].slots.units()),
        }
    }

    /// The table with one more set, of the spare units with the lowest numbers.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn with_set(&self, new: &NewSet, device_units: u16) -> Result<SetTable, SetError> {
        let NewSet { name, units, shard, op_percent } = new.clone();
        if let Some(reason) = name_problem(&name) {
            return Err(SetError::BadName { name, reason });
        }
        if let Some(reason) = spare_space_problem(op_percent) {
            return Err(SetError::BadSpareSpace { reason });
        }
        if self.units_of_all().any(|(other, _)| other == name) {
            return Err(SetError::Exists { name });
        }
        let shard = self.shard_for(shard)?;
        let slots = Slots::of(&self.take_spare(units, device_units)?);
        let (id, mut next) = (self.next_id, self.next()?);
        let used_up = SetError::UsedUp { what: "number of a set", bits: u16::BITS };
        next.next_id = id.checked_add(1).ok_or(used_up)?;
        next.mapped.push(MappedSet { id, name, shard, op_percent, slots });
        Ok(next)
    }

    /// The change after which a set has so many units: of more, the spare ones with the lowest
    /// numbers join; of fewer, those with the highest numbers leave.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn resized(&self, name: &str, units: u16, device_units: u16) -> Result<Resize, SetError> {
        let has = self.units_of(name)?;
        match usize::from(units).checked_sub(has.len()) {
            Some(0) => Ok(Resize::None),
            Some(more) => {
                let joining = self.take_spare(cast::saturating_u16(more), device_units)?;
                let next = self.with_units(name, &joining)?;
                Ok(Resize::Grow { joining, next })
            }
            None => {
                let leaving = has.iter().skip(units.into()).collect();
                let next = self.without_units(name, &leaving)?;
                Ok(Resize::Shrink { leaving, next })
            }
        }
    }

    /// The table in which these spare units belong to a set.
    fn with_units(&self, name: &str, units: &UnitSet) -> Result<SetTable, SetError> {
        let mut next = self.next()?;
        match self.shard_of_store(name) {
            Some(shard) => {
                let of_shard = &mut next.store[usize::from(shard)];
                *of_shard = of_shard.iter().chain(units).collect();
            }
            None => next.mapped[self.mapped_place(name)?].slots.add(units),
        }
        Ok(next)
    }

    /// The table in which these units of a set are spare.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn without_units(&self, name: &str, units: &UnitSet) -> Result<SetTable, SetError> {
        let mut next = self.next()?;
        match self.shard_of_store(name) {
            Some(shard) => {
                let of_shard = &mut next.store[usize::from(shard)];
                *of_shard = of_shard.iter().filter(|unit| !units.contains(*unit)).collect();
            }
            None => next.mapped[self.mapped_place(name)?].slots.remove(units),
        }
        Ok(next)
    }

    /// The table without a set, whose units are spare.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn without_set(&self, name: &str) -> Result<SetTable, SetError> {
        let (place, mut next) = (self.mapped_place(name)?, self.next()?);
        let set = next.mapped.remove(place);
        next.pairs.retain(|pair| !pair.includes(set.id));
        Ok(next)
    }

    /// The table in which two sets are a pair.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn with_pair(&self, first: &str, second: &str) -> Result<SetTable, SetError> {
        let places = [self.mapped_place(first)?, self.mapped_place(second)?];
        let [one, other] = places.map(|place| &self.mapped[place]);
        if one.id == other.id {
            return Err(SetError::PairOfOne { name: first.to_owned() });
        }
        if let Some(set) = [one, other].into_iter().find(|set| self.pair_of(set.id).is_some()) {
            return Err(SetError::IsPaired { name: set.name.clone() });
        }
        if one.shard != other.shard {
            let names = [one, other].map(|set| set.name.clone());
            return Err(SetError::OtherShard { names, shards: [one.shard, other.shard] });
        }
        let mut next = self.next()?;
        let (first, second, since) = (one.id, other.id, next.epoch);
        next.pairs.push(PairOfSets { first, second, since, window_ms: None });
        Ok(next)
    }

    /// The table without the pair of a set.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn without_pair(&self, name: &str) -> Result<SetTable, SetError> {
        let set = self.mapped[self.mapped_place(name)?].id;
        let mut next = self.next()?;
        next.pairs.retain(|pair| !pair.includes(set));
        Ok(next)
    }

    /// The table with other windows of a pair, of which a set is named.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn with_window(&self, name: &str, window_ms: Option<u32>) -> Result<SetTable, SetError> {
        let set = self.mapped[self.mapped_place(name)?].id;
        let mut next = self.next()?;
        let pair = next.pairs.iter_mut().find(|pair| pair.includes(set));
        let pair = pair.ok_or_else(|| SetError::NotPaired { name: name.to_owned() })?;
        pair.window_ms = window_ms;
        Ok(next)
    }

    /// The units that are spare by this table and in a set by the next one: they join it.
    pub fn given_by(&self, next: &SetTable, device_units: u16) -> UnitSet {
        let still_spare = next.spare(device_units);
        self.spare(device_units).iter().filter(|unit| !still_spare.contains(*unit)).collect()
    }

    /// This table at the next epoch.
    pub(super) fn next(&self) -> Result<SetTable, SetError> {
        let used_up = SetError::UsedUp { what: "epoch of the table of sets", bits: u32::BITS };
        Ok(SetTable { epoch: self.epoch.checked_add(1).ok_or(used_up)?, ..self.clone() })
    }

    /// The spare units with the lowest numbers.
    fn take_spare(&self, needed: u16, device_units: u16) -> Result<UnitSet, SetError> {
        let spare = self.spare(device_units);
        match spare.len() < usize::from(needed) {
            true => Err(SetError::TooFewSpare { needed, spare: spare.len() }),
            false => Ok(spare.iter().take(needed.into()).collect()),
        }
    }

    /// The shard of a new set: without a choice, the one with the fewest units for volumes.
    fn shard_for(&self, chosen: Option<u16>) -> Result<u16, SetError> {
        let shards = self.store.len();
        match chosen {
            Some(shard) if usize::from(shard) < shards => Ok(shard),
            Some(shard) => Err(SetError::NoShard { shard, shards }),
            None => {
                let of_shard = |shard: &u16| -> usize {
                    let sets = self.mapped.iter().filter(|set| set.shard == *shard);
                    sets.map(|set| set.slots.units().len()).sum()
                };
                Ok((0..cast::saturating_u16(shards)).min_by_key(of_shard).unwrap_or(0))
            }
        }
    }
}

/// The rule that a name of a set breaks, if it breaks one. The rules are those of volumes' names.
pub(super) fn name_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.len() > 64 {
        Some("names have 1 to 64 characters")
    } else if !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        Some("names have letters, digits, `-`, `_` and `.` only")
    } else if name.starts_with(['-', '.']) {
        Some("names do not start with `-` or `.`")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::lines;
    use super::*;
    use crate::volume_units::VolumeSection;

    const DEVICE_UNITS: u16 = 8;

    /// Two shards with two units for keys and two for volumes each.
    fn split() -> SetTable {
        SetTable::split(DEVICE_UNITS, 2, Some(VolumeSection { units: 4, op_percent: 7 }))
    }

    fn new_set(name: &str, units: u16, shard: Option<u16>) -> NewSet {
        NewSet { name: name.to_owned(), units, shard, op_percent: 20 }
    }

    /// The static split without units 5 and 7.
    fn with_spare() -> SetTable {
        let table = split().without_units("vol-0", &"5".parse().unwrap()).unwrap();
        table.without_units("vol-1", &"7".parse().unwrap()).unwrap()
    }

    fn check(table: &SetTable) {
        assert_eq!(table.problem(2, DEVICE_UNITS), None, "{table:?}");
    }

    #[test]
    fn units_pass_from_set_to_set_by_way_of_the_spare_ones() {
        let table = with_spare();
        assert_eq!(lines(&table)[2..], ["vol-0: 4", "vol-1: 6"]);
        assert_eq!((table.epoch, table.spare(DEVICE_UNITS).to_string()), (2, "5,7".to_owned()));
        let table = table.with_set(&new_set("fast", 1, Some(1)), DEVICE_UNITS).unwrap();
        check(&table);
        assert_eq!(table.mapped[2].slots.to_string(), "5", "the lowest");
        assert_eq!(with_spare().given_by(&table, DEVICE_UNITS).to_string(), "5");
        assert!(table.given_by(&with_spare(), DEVICE_UNITS).is_empty());
        assert_eq!((table.mapped[2].id, table.mapped[2].shard, table.next_id), (3, 1, 4));
        let Ok(Resize::Grow { joining, next: table }) = table.resized("vol-0", 2, DEVICE_UNITS)
        else {
            panic!("it grows")
        };
        assert_eq!(
            (joining.to_string(), table.mapped[0].slots.to_string()),
            ("7".into(), "4,7".into())
        );
        assert_eq!(table.resized("vol-0", 2, DEVICE_UNITS), Ok(Resize::None));
        let shrunk = table.without_units("vol-0", &"7".parse().unwrap()).unwrap();
        let leaving = "7".parse().unwrap();
        let shrink = Resize::Shrink { leaving, next: shrunk };
        assert_eq!(table.resized("vol-0", 1, DEVICE_UNITS), Ok(shrink), "the highest leaves");
        let table = table.without_set("fast").unwrap();
        check(&table);
        assert_eq!(lines(&table)[2..], ["vol-0: 4,7", "vol-1: 6"]);
        let table = table.with_set(&new_set("fast", 1, None), DEVICE_UNITS).unwrap();
        assert_eq!((table.mapped[2].id, table.epoch), (4, 6), "a number is never used twice");
    }

    #[test]
    fn units_pass_between_the_store_and_sets_for_volumes() {
        let table = split();
        let Ok(Resize::Shrink { leaving, next }) = table.resized("store-1", 1, DEVICE_UNITS) else {
            panic!("it shrinks")
        };
        check(&next);
        assert_eq!((leaving.to_string(), next.epoch), ("3".to_owned(), 1));
        assert_eq!(lines(&next)[..2], ["store-0: 0-1", "store-1: 2"]);
        let Ok(Resize::Grow { joining, next }) = next.resized("store-0", 3, DEVICE_UNITS) else {
            panic!("it grows")
        };
        check(&next);
        assert_eq!((joining.to_string(), next.epoch), ("3".to_owned(), 2));
        assert_eq!(lines(&next)[..2], ["store-0: 0-1,3", "store-1: 2"]);
        assert_eq!(next.resized("store-0", 3, DEVICE_UNITS), Ok(Resize::None));
        assert_eq!((next.shard_of_store("store-1"), next.shard_of_store("vol-1")), (Some(1), None));
        assert_eq!(next.shard_of_store("store-2"), None, "there are two shards");
    }

    #[test]
    fn a_new_set_is_of_the_shard_with_the_fewest_units_for_volumes() {
        let shard = |table: SetTable| {
            table.with_set(&new_set("fast", 1, None), DEVICE_UNITS).unwrap().mapped[2].shard
        };
        assert_eq!(shard(with_spare()), 0);
        assert_eq!(shard(split().without_units("vol-1", &"7".parse().unwrap()).unwrap()), 1);
    }

    #[test]
    fn wrong_changes_are_refused_with_names_and_figures() {
        let create = |name: &str, units, shard| {
            with_spare().with_set(&new_set(name, units, shard), DEVICE_UNITS).unwrap_err()
        };
        assert_eq!(create("fast", 3, None), SetError::TooFewSpare { needed: 3, spare: 2 });
        assert_eq!(create("fast", 1, Some(2)), SetError::NoShard { shard: 2, shards: 2 });
        for taken in ["vol-1", "store-0"] {
            assert_eq!(create(taken, 1, None), SetError::Exists { name: taken.to_owned() });
        }
        let wasteful = NewSet { op_percent: 101, ..new_set("fast", 1, None) };
        let error = with_spare().with_set(&wasteful, DEVICE_UNITS).unwrap_err();
        assert!(error.to_string().contains("101 %"), "{error}");
        for bad in ["", "a b", "-a", "ä"] {
            assert!(matches!(create(bad, 1, None), SetError::BadName { .. }), "{bad}");
        }
        let (table, sets) = (with_spare(), vec!["vol-0".to_owned(), "vol-1".to_owned()]);
        let error = table.resized("vol-0", 4, DEVICE_UNITS).unwrap_err();
        assert_eq!(error, SetError::TooFewSpare { needed: 3, spare: 2 });
        let name = "slow".to_owned();
        let expected = SetError::NoSet { name, sets: sets.clone() };
        assert_eq!(table.without_set("slow").unwrap_err(), expected);
        let name = "store-1".to_owned();
        let expected = SetError::OfStore { name, sets };
        assert_eq!(table.without_set("store-1").unwrap_err(), expected);
        let last = SetTable { epoch: u32::MAX, ..split() };
        assert!(matches!(last.without_set("vol-0"), Err(SetError::UsedUp { bits: 32, .. })));
        let last = SetTable { next_id: u16::MAX, ..with_spare() };
        let error = last.with_set(&new_set("fast", 1, None), DEVICE_UNITS).unwrap_err();
        assert!(matches!(error, SetError::UsedUp { bits: 16, .. }));
    }
}
