//! The table of sets of a device that has got more units.

use super::{SetError, SetTable};
use softflash_base::{UnitSet, cast};
use std::ops::Range;

/// Who gets the new units. What is not named shares the rest, in proportion to the units that keys
/// and volumes have; without any name nothing stays spare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shares {
    /// Units for keys.
    pub store: Option<u16>,
    /// Units for the sets for volumes.
    pub volumes: Option<u16>,
    /// Units in no set.
    pub spare: Option<u16>,
}

/// The table with new units, and which sets they join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grown {
    /// The shards of the store that get units, with these.
    pub store: Vec<(u16, UnitSet)>,
    /// The sets for volumes that get units, by their names, with these.
    pub mapped: Vec<(String, UnitSet)>,
    /// The table that follows.
    pub next: SetTable,
}

impl Grown {
    /// All units that join a set.
    pub fn joining(&self) -> UnitSet {
        let of_store = self.store.iter().map(|(_, units)| units);
        of_store.chain(self.mapped.iter().map(|(_, units)| units)).flatten().collect()
    }
}

/// How many new units there are of each kind.
#[derive(Debug, PartialEq, Eq)]
struct Division {
    store: u16,
    volumes: u16,
}

impl SetTable {
    /// This table as one that names all units: the static split is made for a number of units, and
    /// would be another one on a larger device.
    ///
    /// # Errors
    /// [`SetError::UsedUp`].
    pub(crate) fn pinned(&self) -> Result<SetTable, SetError> {
        if self.epoch == 0 { self.next() } else { Ok(self.clone()) }
    }

    /// The table in which new units join the sets. Those of the store with the fewest units come
    /// first, because keys are spread evenly; sets for volumes grow in proportion.
    ///
    /// # Errors
    /// [`SetError::BadShares`].
    pub(crate) fn grown(&self, new: Range<u16>, shares: Shares) -> Result<Grown, SetError> {
        let store: Vec<u32> = self.store.iter().map(count).collect();
        let mapped: Vec<u32> = self.mapped.iter().map(|set| count(&set.slots.units())).collect();
        let count = cast::saturating_u16(new.len());
        let division = shares.divide(count, store.iter().sum(), mapped.iter().sum())?;
        let of_store = spread(division.store, &store, |has, got| (u64::from(has + got), 1));
        let of_mapped =
            spread(division.volumes, &mapped, |has, got| (u64::from(got) + 1, u64::from(has)));
        let mut units = new;
        let mut take = |count: u16| -> UnitSet { units.by_ref().take(count.into()).collect() };
        let mut next = self.next()?;
        let (mut grown_store, mut grown_mapped) = (Vec::new(), Vec::new());
        for ((set, more), shard) in next.store.iter_mut().zip(of_store).zip(0..) {
            let joining = take(more);
            *set = set.iter().chain(&joining).collect();
            grown_store.push((shard, joining));
        }
        for (set, more) in next.mapped.iter_mut().zip(of_mapped) {
            let joining = take(more);
            set.slots.add(&joining);
            grown_mapped.push((set.name.clone(), joining));
        }
        grown_store.retain(|(_, units)| !units.is_empty());
        grown_mapped.retain(|(_, units)| !units.is_empty());
        Ok(Grown { store: grown_store, mapped: grown_mapped, next })
    }
}

impl Shares {
    fn divide(self, new: u16, store: u32, volumes: u32) -> Result<Division, SetError> {
        let bad = |reason| Err(SetError::BadShares { reason });
        let named = [self.store, self.volumes, self.spare].into_iter().flatten();
        let named: u32 = named.map(u32::from).sum();
        let Some(left) = u32::from(new).checked_sub(named) else {
            return bad(format!(
                "{named} units are named for keys, volumes and spare ones, and the device gets {new} more"
            ));
        };
        if volumes == 0 && self.volumes.is_some_and(|units| units > 0) {
            return bad(
                "there is no set for volumes that could get units; leave them spare, and make one of \
                 them by `softflash set create`"
                    .to_owned(),
            );
        }
        // What each kind that is not named takes of the rest.
        let weight = |named: Option<u16>, has: u32| if named.is_none() { has } else { 0 };
        let weights = (weight(self.store, store), weight(self.volumes, volumes));
        let of_store = match weights {
            (0, _) => 0,
            // Numbers of units have 16 bits.
            (store, volumes) => (left * store + (store + volumes) / 2) / (store + volumes),
        };
        let of_volumes = if weights.1 == 0 { 0 } else { left - of_store };
        let unclaimed = left - of_store - of_volumes;
        if self.spare.is_some() && unclaimed > 0 {
            return bad(format!(
                "{named} units are named for keys, volumes and spare ones, and the device gets {new} \
                 more; name all of them, or leave one kind out"
            ));
        }
        let units =
            |named: Option<u16>, more| named.unwrap_or(cast::saturating_u16(cast::index(more)));
        Ok(Division {
            store: units(self.store, of_store),
            volumes: units(self.volumes, of_volumes),
        })
    }
}

fn count(units: &UnitSet) -> u32 {
    cast::saturating_u32(units.len())
}

/// Spreads so many units over sets, each of which `has` some: each unit goes to the set that
/// `ratio` of what it has and what it got so far is the least of, of equals to the first.
fn spread(units: u16, has: &[u32], ratio: impl Fn(u32, u32) -> (u64, u64)) -> Vec<u16> {
    let mut got = vec![0_u16; has.len()];
    for _ in 0..units {
        let of = |set: &usize| ratio(has[*set], got[*set].into());
        let less = |one: &usize, other: &usize| {
            let ((a, b), (c, d)) = (of(one), of(other));
            (a * d).cmp(&(c * b))
        };
        let Some(set) = (0..has.len()).min_by(less) else { break };
        got[set] += 1;
    }
    got
}

#[cfg(test)]
mod tests {
    use super::super::tests::lines;
    use super::*;
    use crate::volume_units::VolumeSection;

    fn split(units: u16, shards: u16, volumes: u16) -> SetTable {
        let volumes = (volumes > 0).then_some(VolumeSection { units: volumes, op_percent: 7 });
        SetTable::split(units, shards, volumes)
    }

    fn grown(table: &SetTable, new: Range<u16>, shares: Shares) -> Vec<String> {
        let pinned = table.pinned().unwrap();
        let (shards, end) = (cast::saturating_u16(pinned.store.len()), new.end);
        let grown = pinned.grown(new.clone(), shares).unwrap();
        assert_eq!(grown.next.problem(shards, end), None);
        assert_eq!(grown.next.epoch, pinned.epoch + 1);
        let spare = grown.next.spare(end);
        assert!(grown.joining().iter().chain(&spare).eq(new), "{grown:?}");
        lines(&grown.next)
    }

    #[test]
    fn twice_the_units_are_twice_as_many_for_each_set() {
        let lines = grown(&split(8, 2, 4), 8..16, Shares::default());
        assert_eq!(
            lines,
            ["store-0: 0-1,8-9", "store-1: 2-3,10-11", "vol-0: 4-5,12-13", "vol-1: 6-7,14-15"]
        );
        let lines = grown(&split(16, 3, 6), 16..32, Shares::default());
        assert_eq!(
            lines,
            [
                "store-0: 0-2,16-19",
                "store-1: 3-5,20-23",
                "store-2: 6-9,24-25",
                "vol-0: 10-11,26-27",
                "vol-1: 12-13,28-29",
                "vol-2: 14-15,30-31"
            ],
            "the store's sets become alike as far as they can"
        );
    }

    #[test]
    fn named_shares_are_exact_and_the_rest_goes_to_the_others() {
        let table = split(8, 2, 4);
        let shares = |store, volumes, spare| Shares { store, volumes, spare };
        let all_spare = grown(&table, 8..12, shares(Some(0), Some(0), None));
        assert_eq!(all_spare, lines(&table));
        assert_eq!(grown(&table, 8..12, shares(None, None, Some(4))), lines(&table));
        let store = grown(&table, 8..11, shares(None, Some(0), None));
        assert_eq!(store[..2], ["store-0: 0-1,8-9", "store-1: 2-3,10"]);
        let volumes = grown(&table, 8..11, shares(Some(0), None, Some(1)));
        assert_eq!(volumes[2..], ["vol-0: 4-5,8", "vol-1: 6-7,9"]);
        let no_volumes = split(4, 1, 0);
        assert_eq!(grown(&no_volumes, 4..8, Shares::default()), ["store-0: 0-7"]);
        assert_eq!(grown(&no_volumes, 4..8, shares(Some(1), None, None)), ["store-0: 0-4"]);
    }

    #[test]
    fn sets_for_volumes_grow_in_proportion() {
        let table = split(8, 1, 4).without_units("vol-0", &"7".parse().unwrap()).unwrap();
        let new =
            super::super::NewSet { name: "fast".to_owned(), units: 1, shard: None, op_percent: 7 };
        let table = table.with_set(&new, 8).unwrap();
        let shares = Shares { store: Some(0), ..Shares::default() };
        let lines = grown(&table, 8..16, shares);
        assert_eq!(lines[1..], ["vol-0: 4-6,8-13", "fast: 7,14-15"]);
    }

    #[test]
    fn wrong_shares_are_refused() {
        let refused =
            |table: &SetTable, shares| table.grown(8..12, shares).unwrap_err().to_string();
        let some = |units| Some(units);
        let table = split(8, 2, 4);
        let error = refused(&table, Shares { store: some(3), volumes: some(2), spare: None });
        assert!(error.contains("5 units are named") && error.contains("gets 4 more"), "{error}");
        let error = refused(&table, Shares { store: some(1), volumes: some(1), spare: some(1) });
        assert!(error.contains("leave one kind out"), "{error}");
        let error = refused(&split(8, 2, 0), Shares { volumes: some(1), ..Shares::default() });
        assert!(error.contains("no set for volumes"), "{error}");
    }

    #[test]
    fn a_table_is_pinned_once() {
        let pinned = split(8, 2, 4).pinned().unwrap();
        assert_eq!((pinned.epoch, lines(&pinned)), (1, lines(&split(8, 2, 4))));
        assert_eq!(pinned.pinned(), Ok(pinned));
    }
}
