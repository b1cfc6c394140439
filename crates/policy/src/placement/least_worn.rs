//! The lane with the fewest erases, of those whose dies have no more pages waiting than the mean;
//! of equals, the next in turn. The limit keeps all dies at work: without it one die would take all
//! writes until it has caught up.

use super::view::{Lanes, Rule};
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "least-worn",
    parameters: &[],
    meaning: "The one with the fewest erases, of those whose dies are not behind.",
    aliases: &[],
    rule: Rule::among(choose),
};

fn choose(lanes: &Lanes<'_>) -> Option<u32> {
    let sum: u64 = lanes.with_room().map(|lane| u64::from(lanes.waiting(lane))).sum();
    let count = lanes.with_room().count() as u64;
    let short = lanes.with_room().filter(|&lane| u64::from(lanes.waiting(lane)) * count <= sum);
    short.min_by_key(|&lane| lanes.erases(lane))
}
