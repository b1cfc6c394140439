//! The table of who owns which units of the device.

use softflash_base::{ShardId, UnitSet};
use softflash_ftl::Owner;
use softflash_store::layout::split;
use softflash_volume::Domain;
use std::fmt;

/// An owner of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitOwner {
    /// A shard of the store.
    Store(ShardId),
    /// The mapped domain of a shard, where its volumes are.
    Volumes(ShardId),
}

impl UnitOwner {
    /// The number of a shard's mapped domain.
    pub(crate) fn domain_number(shard: ShardId) -> u16 {
        shard.0.saturating_add(1)
    }

    /// The owner that the headers of its superblocks name.
    pub fn in_headers(self) -> Owner {
        match self {
            UnitOwner::Store(_) => Owner::BLOCKS,
            UnitOwner::Volumes(shard) => Domain::owner(UnitOwner::domain_number(shard)),
        }
    }
}

impl fmt::Display for UnitOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnitOwner::Store(shard) => write!(f, "shard {shard} of the store"),
            UnitOwner::Volumes(shard) => write!(f, "the volumes of shard {shard}"),
        }
    }
}

/// Each owner with its units: the shards of the store in their order, then their domains. The
/// units of nobody are spare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnitTable {
    entries: Vec<(UnitOwner, UnitSet)>,
}

impl UnitTable {
    /// The static split of a device: the last units are for volumes, the same number for each
    /// shard; the store has the others.
    pub fn split(device_units: u16, shards: u16, volume_units: u16) -> UnitTable {
        let of_store = device_units.saturating_sub(volume_units);
        let each = volume_units / shards.max(1);
        let of_volumes = |shard: u16| {
            let first = of_store.saturating_add(shard.saturating_mul(each));
            UnitSet::from(first..first.saturating_add(each))
        };
        let store = (0..).map(ShardId).map(UnitOwner::Store).zip(split(of_store, shards));
        let with_volumes = if volume_units == 0 { 0 } else { shards };
        let volumes =
            (0..with_volumes).map(|shard| (UnitOwner::Volumes(ShardId(shard)), of_volumes(shard)));
        store.chain(volumes).collect()
    }

    /// The owners with their units.
    pub fn iter(&self) -> impl Iterator<Item = (UnitOwner, &UnitSet)> {
        self.entries.iter().map(|(owner, units)| (*owner, units))
    }

    /// The units of each shard of the store.
    pub(crate) fn of_store(&self) -> Vec<UnitSet> {
        let is_store = |owner: &UnitOwner| matches!(owner, UnitOwner::Store(_));
        self.iter().filter(|(owner, _)| is_store(owner)).map(|(_, units)| units.clone()).collect()
    }

    /// The shards with volumes, and the units for these.
    pub(crate) fn of_volumes(&self) -> impl Iterator<Item = (ShardId, &UnitSet)> {
        self.iter().filter_map(|(owner, units)| match owner {
            UnitOwner::Volumes(shard) => Some((shard, units)),
            UnitOwner::Store(_) => None,
        })
    }

    /// The problem where a unit has two owners.
    pub(crate) fn conflict(&self) -> Option<String> {
        let sets = self.entries.iter().map(|(_, units)| units);
        let (unit, owners) = UnitSet::in_two_of(sets)?;
        let [first, second] = owners.map(|number| self.entries[number].0);
        Some(format!(
            "unit {unit} belongs to {first} and to {second}; a unit has one owner: take it from one of them"
        ))
    }

    /// The problem where an owner has no unit, or one that a device of `device_units` units lacks.
    pub(crate) fn shortage(&self, device_units: u16) -> Option<String> {
        self.iter().find_map(|(owner, units)| match units.last() {
            None => Some(format!("no units belong to {owner}; it needs at least one")),
            Some(last) if last >= device_units => Some(format!(
                "unit {last} belongs to {owner}, and the device has {device_units} units; use the \
                 device that the directory was made with"
            )),
            Some(_) => None,
        })
    }
}

impl FromIterator<(UnitOwner, UnitSet)> for UnitTable {
    fn from_iter<I: IntoIterator<Item = (UnitOwner, UnitSet)>>(entries: I) -> UnitTable {
        UnitTable { entries: entries.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(table: &UnitTable) -> Vec<String> {
        table.iter().map(|(owner, units)| format!("{owner}: {units}")).collect()
    }

    #[test]
    fn the_static_split_is_a_table() {
        assert_eq!(
            lines(&UnitTable::split(16, 3, 6)),
            [
                "shard 0 of the store: 0-2",
                "shard 1 of the store: 3-5",
                "shard 2 of the store: 6-9",
                "the volumes of shard 0: 10-11",
                "the volumes of shard 1: 12-13",
                "the volumes of shard 2: 14-15",
            ]
        );
        assert_eq!(lines(&UnitTable::split(4, 1, 0)), ["shard 0 of the store: 0-3"]);
        let table = UnitTable::split(16, 3, 6);
        assert_eq!((table.conflict(), table.shortage(16)), (None, None));
        assert_eq!((table.of_store().len(), table.of_volumes().count()), (3, 3));
    }

    #[test]
    fn a_unit_has_one_owner() {
        let (store, volumes) = (UnitOwner::Store, UnitOwner::Volumes);
        let table = |entries: [(UnitOwner, &str); 3]| -> UnitTable {
            entries.into_iter().map(|(owner, units)| (owner, units.parse().unwrap())).collect()
        };
        let of = |first, second, third| {
            let shard = [0, 1].map(ShardId);
            table([(store(shard[0]), first), (store(shard[1]), second), (volumes(shard[1]), third)])
        };
        assert_eq!(of("0,2,5", "1,3", "4,7").conflict(), None);
        assert_eq!(
            of("0,2,5", "1,3", "4-5").conflict().unwrap(),
            "unit 5 belongs to shard 0 of the store and to the volumes of shard 1; a unit has one \
             owner: take it from one of them"
        );
        let shortage = |third| of("0,2,5", "1,3", third).shortage(8).unwrap_or_default();
        assert_eq!(shortage("4,7"), "");
        assert!(shortage("").contains("no units belong to the volumes of shard 1"));
        assert!(
            shortage("4,8")
                .contains("unit 8 belongs to the volumes of shard 1, and the device has 8")
        );
    }

    #[test]
    fn owners_have_the_names_of_their_headers() {
        assert_eq!(UnitOwner::Store(ShardId(3)).in_headers(), Owner::BLOCKS);
        assert_eq!(UnitOwner::Volumes(ShardId(0)).in_headers(), Domain::owner(1));
    }
}
