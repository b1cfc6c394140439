//! The lane with the most room; of equals, the one with the least load, then the next in turn. New
//! volumes are placed so: the room of a domain is its unused space, the load what is promised to its
//! volumes.

use super::view::Lanes;
use super::{PlacementPolicy, Rule};
use crate::registry::{Entry, Policy};

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "most-free",
    parameters: &[],
    meaning: "The one with the most room; of equals, the one whose die has the fewest pages waiting.",
    aliases: &[],
    rule: Rule::among(choose),
};

impl PlacementPolicy {
    /// The one with the most room; of equals, the one with the least load.
    pub const MOST_FREE: PlacementPolicy = Policy::of(&ENTRY);
}

fn choose(lanes: &Lanes<'_>) -> Option<u32> {
    // Of equals `min_by_key` returns the first.
    lanes.with_room().min_by_key(|&lane| (lanes.occupied(lane), lanes.waiting(lane)))
}
