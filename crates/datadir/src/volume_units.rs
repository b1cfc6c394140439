//! The units that are set aside for volumes. Without a table of sets they are the last ones of the
//! device, as many for each shard.

use crate::pairs::PairOfSets;
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

/// A mapped domain of a shard, where volumes are: the use of a mapped set.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardDomain {
    /// The shard.
    pub shard: ShardId,
    /// The name of the set.
    pub name: String,
    /// Its units.
    pub units: UnitSet,
    /// The settings of the domain.
    pub config: DomainConfig,
    /// The pair that the set is one of.
    pub pair: Option<PairOfSets>,
    /// Volumes that it may hold and that are not its own: a move was interrupted.
    pub guests: Vec<String>,
}

impl ShardDomain {
    /// Where its volumes are, for people. Without a table of sets each shard has one domain, which
    /// goes by the shard.
    pub fn place(&self) -> String {
        match self.config.slots {
            None => format!("shard {}", self.shard),
            Some(_) => format!("set `{}`", self.name),
        }
    }

    /// The same as a word of commands.
    pub fn word(&self) -> String {
        match self.config.slots {
            None => self.shard.to_string(),
            Some(_) => self.name.clone(),
        }
    }

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
        } else {
            spare_space_problem(op_percent)
        }
    }
}

/// The reason why this cannot be the spare space for collection, if there is one.
pub(crate) fn spare_space_problem(op_percent: u8) -> Option<String> {
    (op_percent > MOST_OP_PERCENT).then(|| {
        format!(
            "{op_percent} % of spare space for volumes are too many; use 0 to {MOST_OP_PERCENT}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
