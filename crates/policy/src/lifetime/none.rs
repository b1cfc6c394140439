//! No prediction: all pages share blocks.

use super::view::Rule;
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "none",
    parameters: &[],
    meaning: "All pages share blocks.",
    aliases: &[],
    rule: Rule { classes: |_| 1, write: |_, _, _| 0, moved: |moved, _| moved.class },
};
