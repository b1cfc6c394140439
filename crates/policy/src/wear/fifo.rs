//! The free block that was erased first; no data are moved.

use super::view::FreeView;
use super::{Rule, WearPolicy, never};
use crate::registry::{Entry, Policy};

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "fifo",
    parameters: &[],
    meaning: "Free blocks in the order of their erases (round-robin); no data are moved.",
    aliases: &[],
    rule: Rule { choose_free, level: never },
};

impl WearPolicy {
    /// Free blocks in the order of their erases; no data are moved.
    pub const FIFO: WearPolicy = Policy::of(&ENTRY);
}

fn choose_free(view: &FreeView<'_>) -> Option<usize> {
    view.blocks().next().map(|_| 0)
}
