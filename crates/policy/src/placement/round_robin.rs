//! The lanes in turn, whatever is written: consecutive writes lie on different channels even if
//! their addresses do not.

use super::view::{Lanes, Rule};
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "round-robin",
    parameters: &[],
    meaning: "All in turn.",
    aliases: &[],
    rule: Rule::among(choose),
};

fn choose(lanes: &Lanes<'_>) -> Option<u32> {
    lanes.with_room().next()
}
