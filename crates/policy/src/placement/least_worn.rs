//! The candidate with the fewest erases, of those whose dies have no more pages waiting than the
//! mean; of equals, the next in turn. The limit keeps all dies at work: without it one die would
//! take all writes until it has caught up.

use super::view::{Candidates, Rule};
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "least-worn",
    parameters: &[],
    meaning: "The one with the fewest erases, of those whose dies are not behind.",
    aliases: &[],
    rule: Rule::among(choose),
};

fn choose(candidates: &Candidates<'_>) -> Option<u32> {
    let sum: u64 = candidates.with_room().map(|it| u64::from(candidates.waiting(it))).sum();
    let count = candidates.with_room().count() as u64;
    let short =
        candidates.with_room().filter(|&it| u64::from(candidates.waiting(it)) * count <= sum);
    short.min_by_key(|&it| candidates.erases(it))
}
