//! The candidates in turn, whatever is written: consecutive writes lie on different channels even
//! if their addresses do not.

use super::view::{Candidates, Rule};
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "round-robin",
    parameters: &[],
    meaning: "All in turn.",
    aliases: &[],
    rule: Rule::among(choose),
};

fn choose(candidates: &Candidates<'_>) -> Option<u32> {
    candidates.with_room().next()
}
