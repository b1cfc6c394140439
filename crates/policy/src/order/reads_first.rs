//! Reads before all writes that wait: a read takes a tenth of the time of a program, and somebody
//! waits for it, while most writes wait in a buffer. Writes starve as long as reads fill the die.

use super::rule::Rule;
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "reads-first",
    parameters: &[],
    meaning: "Reads before programs.",
    aliases: &[],
    rule: Rule::ReadsFirst,
};
