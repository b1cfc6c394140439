//! The candidate whose die has the fewest pages waiting; of equals, the next in turn. Reads go
//! where their data are, so beside reads the lengths of the queues differ.
//!
//! Joining the shortest queue: Winston, *Optimality of the shortest line discipline*, Journal of
//! Applied Probability 14(1), 1977.

use super::view::{Candidates, Rule};
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "least-queue",
    parameters: &[],
    meaning: "The one whose die has the fewest pages waiting.",
    aliases: &[],
    rule: Rule::among(choose),
};

fn choose(candidates: &Candidates<'_>) -> Option<u32> {
    // Of equals `min_by_key` returns the first.
    candidates.with_room().min_by_key(|&it| candidates.waiting(it))
}
