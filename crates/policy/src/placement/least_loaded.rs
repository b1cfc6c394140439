//! The candidate with the least load, which serves soonest; of equals, the one with the most room,
//! and of those the next in turn, so that idle candidates fill evenly. The block layer places
//! blocks so.

use super::view::{Candidates, Rule};
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "least-loaded",
    parameters: &[],
    meaning: "The one whose die has the fewest pages waiting; of equals, the one with the most room.",
    aliases: &["load-aware"],
    rule: Rule::among(choose),
};

fn choose(candidates: &Candidates<'_>) -> Option<u32> {
    // Of equals `min_by_key` returns the first.
    candidates.with_room().min_by_key(|&it| (candidates.waiting(it), candidates.occupied(it)))
}
