//! The free block with the fewest erases; of equals, the one that was erased first.
//!
//! Dynamic wear levelling, as in Gal and Toledo, *Algorithms and data structures for flash
//! memories*, ACM Computing Surveys 37(2), 2005, section 2.3. It levels the blocks whose data
//! change, and leaves those with cold data behind.

use super::view::{FreeView, Rule, never};
use crate::registry::Entry;
use softflash_base::cast::index;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "dynamic",
    parameters: &[],
    meaning: "The free block with the fewest erases; no data are moved.",
    aliases: &[],
    rule: Rule { choose_free, level: never },
};

pub(super) fn choose_free(view: &FreeView<'_>) -> Option<usize> {
    let free = view.blocks().enumerate();
    free.min_by_key(|&(_, block)| view.erases[index(block)]).map(|(place, _)| place)
}
