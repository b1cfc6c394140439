//! The lanes in turn, whatever is written: consecutive writes lie on different channels even if
//! their addresses do not.

use super::view::Lanes;
use super::{PlacementPolicy, Rule};
use crate::registry::{Entry, Policy};

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "round-robin",
    parameters: &[],
    meaning: "All in turn.",
    aliases: &[],
    rule: Rule::among(choose),
};

impl PlacementPolicy {
    /// All in turn.
    pub const ROUND_ROBIN: PlacementPolicy = Policy::of(&ENTRY);
}

fn choose(lanes: &Lanes<'_>) -> Option<u32> {
    lanes.with_room().next()
}
