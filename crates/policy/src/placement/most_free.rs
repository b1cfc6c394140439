//! The candidate with the most room; of equals, the one with the least load, then the next in turn.
//! New volumes are placed so: the room of a domain is its unused space, its load the sizes of its
//! volumes, which are thin.

use super::view::{Candidates, Rule};
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "most-free",
    parameters: &[],
    meaning: "The one with the most room; of equals, the one whose die has the fewest pages waiting.",
    aliases: &[],
    rule: Rule::among(choose),
};

fn choose(candidates: &Candidates<'_>) -> Option<u32> {
    // Of equals `min_by_key` returns the first.
    candidates.with_room().min_by_key(|&it| (candidates.occupied(it), candidates.waiting(it)))
}
