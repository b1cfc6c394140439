//! The units that are set aside for volumes: the last ones of the device, as many for each shard.

use serde::{Deserialize, Serialize};
use softflash_base::{ShardId, UnitSet};
use softflash_volume::DomainConfig;

/// Spare space for collection, where none is given.
pub const DEFAULT_OP_PERCENT: u8 = 7;

/// The most spare space.
pub const MOST_OP_PERCENT: u8 = 100;

/// The `[volumes]` table, which only directories with volume units have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeSection {
    /// Units for volumes, the last ones of the device: the same number for each shard.
    pub units: u16,
    /// Spare space for collection in percent of the usable space.
    #[serde(default = "default_op_percent")]
    pub op_percent: u8,
}

fn default_op_percent() -> u8 {
    DEFAULT_OP_PERCENT
}

/// The mapped domain of a shard: where its volumes are.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardDomain {
    /// The shard.
    pub shard: ShardId,
    /// Its units for volumes.
    pub units: UnitSet,
    /// The settings of the domain; its number is that of the shard plus 1.
    pub config: DomainConfig,
}

impl VolumeSection {
    /// The reason why so many shards cannot share the volume units, if there is one.
    pub fn problem(&self, shards: u16) -> Option<String> {
        let VolumeSection { units, op_percent } = *self;
        if units == 0 {
            Some("0 volume units are none; use one per shard, or leave them out".to_owned())
        } else if shards > 0 && !units.is_multiple_of(shards) {
            Some(format!(
                "{units} volume units cannot be spread evenly over {shards} shards; use a multiple \
                 of {shards}"
            ))
        } else if op_percent > MOST_OP_PERCENT {
            Some(format!(
                "{op_percent} % of spare space for volumes are too many; use 0 to {MOST_OP_PERCENT}"
            ))
        } else {
            None
        }
    }

    /// The domain of each shard on a device of `device_units` units. The section must have no
    /// problem with these shards, and the device at least its units.
    pub fn domains(&self, device_units: u16, shards: u16) -> Vec<ShardDomain> {
        let (first, each) = (device_units.saturating_sub(self.units), self.units / shards.max(1));
        let domain = |shard: u16| {
            let start = first.saturating_add(shard.saturating_mul(each));
            let config = DomainConfig {
                domain: shard.saturating_add(1),
                op_percent: f64::from(self.op_percent),
                ..DomainConfig::default()
            };
            let units = UnitSet::from(start..start.saturating_add(each));
            ShardDomain { shard: ShardId(shard), units, config }
        };
        (0..shards).map(domain).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shard_has_as_many_of_the_last_units() {
        let section = VolumeSection { units: 6, op_percent: 20 };
        let domains = section.domains(16, 3);
        let units: Vec<_> = domains.iter().map(|domain| domain.units.clone()).collect();
        assert_eq!(units, [10..12, 12..14, 14..16].map(UnitSet::from));
        let numbers: Vec<_> = domains.iter().map(|domain| domain.config.domain).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert!(domains.iter().all(|domain| domain.config.op_percent == 20.0));
    }

    #[test]
    fn impossible_sections_are_refused_with_the_remedy() {
        let problem = |units, op_percent, shards| {
            VolumeSection { units, op_percent }.problem(shards).unwrap_or_default()
        };
        assert_eq!((problem(6, 7, 3), problem(1, 0, 1)), (String::new(), String::new()));
        assert!(problem(5, 7, 3).contains("a multiple of 3"));
        assert!(problem(0, 7, 3).contains("leave them out"));
        assert!(problem(3, 101, 3).contains("0 to 100"));
    }
}
