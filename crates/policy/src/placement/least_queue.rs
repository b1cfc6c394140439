//! The lane whose die has the fewest pages waiting; of equals, the next in turn. Reads go where
//! their data are, so beside reads the lengths of the queues differ.
//!
//! Joining the shortest queue: Winston, *Optimality of the shortest line discipline*, Journal of
//! Applied Probability 14(1), 1977.

use super::view::{Lanes, Rule};
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "least-queue",
    parameters: &[],
    meaning: "The one whose die has the fewest pages waiting.",
    aliases: &[],
    rule: Rule::among(choose),
};

fn choose(lanes: &Lanes<'_>) -> Option<u32> {
    // Of equals `min_by_key` returns the first.
    lanes.with_room().min_by_key(|&lane| lanes.waiting(lane))
}
