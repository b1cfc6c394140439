//! Pairs of sets: each has a copy of the same volumes.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Two mapped sets with a copy each of the same volumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairOfSets {
    /// The number of the first set.
    pub first: u16,
    /// The number of the second set.
    pub second: u16,
    /// The epoch of the table with which the pair came into being.
    pub since: u32,
    /// The time for which one set takes writes while the other one only reads, in milliseconds;
    /// omitted where both take every write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u32>,
}

impl PairOfSets {
    /// Whether a set is one of the pair.
    pub fn includes(&self, set: u16) -> bool {
        self.first == set || self.second == set
    }

    /// The other set.
    pub fn partner_of(&self, set: u16) -> u16 {
        if self.first == set { self.second } else { self.first }
    }

    /// A number that no other pair of the directory has.
    pub fn number(&self) -> u64 {
        let sets = u64::from(self.first) << 16 | u64::from(self.second);
        u64::from(self.since) << 32 | sets
    }

    /// The time for which a set takes writes.
    pub fn window(&self) -> Option<Duration> {
        self.window_ms.map(|ms| Duration::from_millis(ms.into()))
    }
}

/// The longest window, in milliseconds: what is written in it has one copy until its end.
pub const MOST_WINDOW_MS: u32 = 60_000;
