//! Placement policies: the write frontier that takes a page of the host.

pub mod by_hint;
mod least_queue;
mod least_worn;
mod round_robin;
pub mod static_stripe;
#[cfg(test)]
mod tests;
mod view;

use crate::policy::text::{PolicyError, with_number};
use by_hint::MOST_CLASSES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

pub use view::Lanes;

/// Which write frontier takes a page of the host. In text: `static`, `round-robin`, `least-queue`,
/// `least-worn`, `by-hint:2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(!try_from, !into, rename_all = "kebab-case")]
pub enum PlacementPolicy {
    /// The one of the page's number.
    #[default]
    Static,
    /// All in turn.
    RoundRobin,
    /// The one whose die has the fewest pages waiting.
    LeastQueue,
    /// The one with the fewest erases, of those whose dies are not behind.
    LeastWorn,
    /// The one of the page's number and of the request's class, of so many classes.
    #[schemars(extend("form" = "by-hint:CLASSES"))]
    ByHint(u32),
}

impl PlacementPolicy {
    /// Classes that have write frontiers of their own.
    pub fn classes(self) -> u32 {
        match self {
            PlacementPolicy::ByHint(classes) => classes,
            _ => 1,
        }
    }

    /// Whether the lane of a page depends on its number only.
    pub fn is_static(self) -> bool {
        matches!(self, PlacementPolicy::Static | PlacementPolicy::ByHint(_))
    }
}

impl FromStr for PlacementPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<PlacementPolicy, PolicyError> {
        match (text, with_number(text)) {
            ("static", _) => Ok(PlacementPolicy::Static),
            ("round-robin", _) => Ok(PlacementPolicy::RoundRobin),
            ("least-queue", _) => Ok(PlacementPolicy::LeastQueue),
            ("least-worn", _) => Ok(PlacementPolicy::LeastWorn),
            (_, Some(("by-hint", classes))) if (2..=MOST_CLASSES).contains(&classes) => {
                Ok(PlacementPolicy::ByHint(classes))
            }
            _ => Err(PolicyError::Placement(text.to_owned())),
        }
    }
}

impl fmt::Display for PlacementPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementPolicy::Static => f.write_str("static"),
            PlacementPolicy::RoundRobin => f.write_str("round-robin"),
            PlacementPolicy::LeastQueue => f.write_str("least-queue"),
            PlacementPolicy::LeastWorn => f.write_str("least-worn"),
            PlacementPolicy::ByHint(classes) => write!(f, "by-hint:{classes}"),
        }
    }
}

impl TryFrom<String> for PlacementPolicy {
    type Error = PolicyError;

    fn try_from(text: String) -> Result<PlacementPolicy, PolicyError> {
        text.parse()
    }
}

impl From<PlacementPolicy> for String {
    fn from(policy: PlacementPolicy) -> String {
        policy.to_string()
    }
}

/// The lane that takes a page; `None` if none has room, or if it depends on the page alone.
pub fn choose(policy: PlacementPolicy, lanes: &Lanes<'_>) -> Option<u32> {
    match policy {
        PlacementPolicy::Static | PlacementPolicy::ByHint(_) => None,
        PlacementPolicy::RoundRobin => round_robin::choose(lanes),
        PlacementPolicy::LeastQueue => least_queue::choose(lanes),
        PlacementPolicy::LeastWorn => least_worn::choose(lanes),
    }
}
