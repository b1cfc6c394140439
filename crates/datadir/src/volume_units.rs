//! The units that are set aside for volumes: the last ones of the device, as many for each shard.

use crate::owners::UnitOwner;
use serde::{Deserialize, Serialize};
use softflash_base::{ShardId, UnitSet};
use softflash_policy::Chosen;
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

impl ShardDomain {
    /// This domain, with the policies that were chosen.
    pub fn with_policies(self, chosen: &Chosen) -> ShardDomain {
        ShardDomain { config: self.config.with_policies(chosen), ..self }
    }
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

    /// The domain of a shard on these units.
    pub(crate) fn domain(&self, shard: ShardId, units: &UnitSet) -> ShardDomain {
        let config = DomainConfig {
            domain: UnitOwner::domain_number(shard),
            op_percent: f64::from(self.op_percent),
            ..DomainConfig::default()
        };
        ShardDomain { shard, units: units.clone(), config }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_has_the_number_of_its_shard_plus_one() {
        let section = VolumeSection { units: 6, op_percent: 20 };
        let domain = section.domain(ShardId(2), &UnitSet::from_iter([4, 7]));
        assert_eq!((domain.shard, domain.units.to_string()), (ShardId(2), "4,7".to_owned()));
        assert_eq!((domain.config.domain, domain.config.op_percent), (3, 20.0));
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
