//! The lane with the least load, which serves soonest; of equals, the one with the most room, and of
//! those the next in turn, so that idle lanes fill evenly. The block layer places blocks so.

use super::view::Lanes;
use super::{PlacementPolicy, Rule};
use crate::registry::{Entry, Policy};

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "least-loaded",
    parameters: &[],
    meaning: "The one whose die has the fewest pages waiting; of equals, the one with the most room.",
    aliases: &[],
    rule: Rule::among(choose),
};

impl PlacementPolicy {
    /// The one with the least load; of equals, the one with the most room.
    pub const LEAST_LOADED: PlacementPolicy = Policy::of(&ENTRY);
}

fn choose(lanes: &Lanes<'_>) -> Option<u32> {
    // Of equals `min_by_key` returns the first.
    lanes.with_room().min_by_key(|&lane| (lanes.waiting(lane), lanes.occupied(lane)))
}
