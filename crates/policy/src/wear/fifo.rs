//! The free block that was erased first; no data are moved.

use super::view::{FreeView, Rule, never};
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "fifo",
    parameters: &[],
    meaning: "Free blocks in the order of their erases (round-robin); no data are moved.",
    aliases: &[],
    rule: Rule { choose_free, level: never },
};

fn choose_free(view: &FreeView<'_>) -> Option<usize> {
    view.blocks().next().map(|_| 0)
}
