//! The lane with the least load, which serves soonest; of equals, the one with the most room, and
//! of those the next in turn, so that idle lanes fill evenly. The block layer places blocks so.

use super::view::{Lanes, Rule};
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "least-loaded",
    parameters: &[],
    meaning: "The one whose die has the fewest pages waiting; of equals, the one with the most room.",
    aliases: &[],
    rule: Rule::among(choose),
};

fn choose(lanes: &Lanes<'_>) -> Option<u32> {
    // Of equals `min_by_key` returns the first.
    lanes.with_room().min_by_key(|&lane| (lanes.waiting(lane), lanes.occupied(lane)))
}
