//! The table of sets: who has which units of the device.
//!
//! A directory that nobody has changed has no table: its sets are those of the static [split], at
//! epoch 0, and their slots need no names. The first change makes a table of them.
//!
//! [split]: SetTable::split

mod changes;
mod error;
mod growing;
mod problems;

pub use changes::{NewSet, Resize};
pub use error::SetError;
pub use growing::{Grown, Shares};

use crate::pairs::PairOfSets;
use crate::slots::Slots;
use crate::volume_units::{ShardDomain, VolumeSection};
use serde::{Deserialize, Serialize};
use softflash_base::{ShardId, UnitSet};
use softflash_store::layout;
use softflash_volume::DomainConfig;
use std::num::NonZeroU32;

/// The sets of units: the `[sets]` table of the manifest, and before there is one the static split.
/// The units in no set are spare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetTable {
    /// Rises by one with each change of the table, so that flash and table can be told apart where
    /// one of them is older; 0 without a table in the manifest.
    pub epoch: u32,
    /// The number of the next mapped set: flash may still name those that are gone.
    pub next_id: u16,
    /// The units of each shard of the store.
    pub store: Vec<UnitSet>,
    /// The sets for volumes.
    #[serde(default)]
    pub mapped: Vec<MappedSet>,
    /// Those with a copy each of the same volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairOfSets>,
}

/// A set for volumes: the units of a mapped domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappedSet {
    /// The number of the domain, which the headers of its superblocks name.
    pub id: u16,
    /// Its name, unique in the directory.
    pub name: String,
    /// The shard whose thread serves it.
    pub shard: u16,
    /// Spare space for collection in percent of the usable space.
    pub op_percent: u8,
    /// Its units.
    pub slots: Slots,
}

impl SetTable {
    /// The static split of a device: the last units are for volumes, the same number for each
    /// shard; the store has the others.
    pub fn split(device_units: u16, shards: u16, volumes: Option<VolumeSection>) -> SetTable {
        let (volume_units, op_percent) = volumes.map_or((0, 0), |it| (it.units, it.op_percent));
        let of_store = device_units.saturating_sub(volume_units);
        let each = volume_units / shards.max(1);
        let mapped = |shard: u16| {
            let first = of_store.saturating_add(shard.saturating_mul(each));
            MappedSet {
                id: shard.saturating_add(1),
                name: format!("vol-{shard}"),
                shard,
                op_percent,
                slots: Slots::of(&UnitSet::from(first..first.saturating_add(each))),
            }
        };
        let with_volumes = if volume_units == 0 { 0 } else { shards };
        SetTable {
            epoch: 0,
            next_id: with_volumes.saturating_add(1),
            store: layout::split(of_store, shards),
            mapped: (0..with_volumes).map(mapped).collect(),
            pairs: Vec::new(),
        }
    }

    /// The units in no set.
    pub fn spare(&self, device_units: u16) -> UnitSet {
        let is_spare = |unit: &u16| !self.units_of_all().any(|(_, units)| units.contains(*unit));
        (0..device_units).filter(is_spare).collect()
    }

    /// The domain of each mapped set.
    pub(crate) fn domains(&self) -> impl Iterator<Item = ShardDomain> {
        self.mapped.iter().map(|set| ShardDomain {
            shard: ShardId(set.shard),
            name: set.name.clone(),
            units: set.slots.units(),
            config: DomainConfig {
                domain: set.id,
                slots: NonZeroU32::new(self.epoch).map(|epoch| set.slots.at(epoch)),
                op_percent: f64::from(set.op_percent),
                ..DomainConfig::default()
            },
            pair: self.pair_of(set.id).cloned(),
            guests: Vec::new(),
        })
    }

    /// The pair that a set is one of.
    pub fn pair_of(&self, set: u16) -> Option<&PairOfSets> {
        self.pairs.iter().find(|pair| pair.includes(set))
    }

    /// All sets with their names and units, those of the store first.
    fn units_of_all(&self) -> impl Iterator<Item = (String, UnitSet)> {
        let of_store = (0..).map(store_name).zip(self.store.iter().cloned());
        let mapped = self.mapped.iter().map(|set| (set.name.clone(), set.slots.units()));
        of_store.chain(mapped)
    }
}

/// The name of the set of a shard of the store.
pub(crate) fn store_name(shard: u16) -> String {
    format!("store-{shard}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each set with its units.
    pub(super) fn lines(table: &SetTable) -> Vec<String> {
        table.units_of_all().map(|(name, units)| format!("{name}: {units}")).collect()
    }

    #[test]
    fn the_static_split_is_a_table_at_epoch_0() {
        let table = |device_units, shards, units| {
            let volumes = (units > 0).then_some(VolumeSection { units, op_percent: 20 });
            SetTable::split(device_units, shards, volumes)
        };
        let split = table(16, 3, 6);
        assert_eq!(
            lines(&split),
            [
                "store-0: 0-2",
                "store-1: 3-5",
                "store-2: 6-9",
                "vol-0: 10-11",
                "vol-1: 12-13",
                "vol-2: 14-15"
            ]
        );
        assert_eq!((split.epoch, split.next_id, split.spare(16).len()), (0, 4, 0));
        let domains: Vec<ShardDomain> = split.domains().collect();
        let ShardDomain { shard, name, units, config, .. } = &domains[2];
        assert_eq!(
            (*shard, name.as_str(), units.to_string()),
            (ShardId(2), "vol-2", "14-15".into())
        );
        assert_eq!((config.domain, config.op_percent, &config.slots), (3, 20.0, &None));
        assert_eq!(lines(&table(4, 1, 0)), ["store-0: 0-3"]);
        assert_eq!(table(4, 1, 0).domains().count(), 0);
    }

    #[test]
    fn a_domain_has_number_slots_and_epoch_of_the_table() {
        let split = SetTable::split(8, 2, Some(VolumeSection { units: 4, op_percent: 7 }));
        let table = SetTable { epoch: 9, ..split };
        let of_second = table.domains().nth(1).unwrap();
        let slots = of_second.config.slots.unwrap();
        assert_eq!((of_second.config.domain, slots.epoch()), (2, 9));
        assert_eq!(slots, Slots::of(&UnitSet::from(6..8)).at(NonZeroU32::new(9).unwrap()));
    }
}
