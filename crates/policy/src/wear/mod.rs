//! Wear policies: which free block of a group is used next, and which block is collected because
//! its data are cold while others wear out.

mod dynamic;
mod fifo;
mod static_threshold;
#[cfg(test)]
mod tests;
mod view;

use crate::registry::{Entry, Kind, Policy};

pub use view::{FreeView, Rule, WearView};

/// The levelling of erases.
#[derive(Debug)]
pub struct Wear;

impl Kind for Wear {
    type Rule = Rule;
    const NAME: &'static str = "wear";
    const TITLE: &'static str = "wear policy";
    const MEANING: &'static str = "How the erases of a group are levelled.";
    const ENTRIES: &'static [&'static Entry<Rule>] =
        &[&fifo::ENTRY, &dynamic::ENTRY, &static_threshold::ENTRY];
}

/// How the erases of a group are levelled. In text: `fifo`, `dynamic`, `static:20`.
pub type WearPolicy = Policy<Wear>;

/// Those that code names.
impl WearPolicy {
    /// Free blocks in the order of their erases; no data are moved.
    pub const FIFO: WearPolicy = Policy::of(&fifo::ENTRY);
    /// The free block with the fewest erases; no data are moved.
    pub const DYNAMIC: WearPolicy = Policy::of(&dynamic::ENTRY);

    /// As [`DYNAMIC`](Self::DYNAMIC), and the block with the fewest erases is collected when
    /// another has more than so many erases more.
    ///
    /// # Panics
    /// If the threshold is 0.
    pub fn level_by(threshold: u32) -> WearPolicy {
        Policy::with(&static_threshold::ENTRY, &[threshold])
    }
}

/// The free block to use, counted from the front; `None` if there is none.
#[inline]
pub fn choose_free(policy: WearPolicy, view: &FreeView<'_>) -> Option<usize> {
    (policy.rule().choose_free)(view)
}

/// The block to collect for the sake of wear, counted in its group; `None` if wear is level enough.
#[inline]
pub fn level(policy: WearPolicy, view: &WearView<'_>) -> Option<u32> {
    (policy.rule().level)(view, policy.numbers())
}
