//! Wear policies: which free block of a group is used next, and which block is collected because
//! its data are cold while others wear out.

mod dynamic;
mod fifo;
mod static_threshold;
#[cfg(test)]
mod tests;
mod view;

use crate::registry::{Entry, Kind, Numbers, Policy};

pub use view::{FreeView, WearView};

/// The levelling of erases.
#[derive(Debug)]
pub struct Wear;

/// The two choices of a wear policy.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    choose_free: fn(&FreeView<'_>) -> Option<usize>,
    level: fn(&WearView<'_>, Numbers) -> Option<u32>,
}

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

/// Moves no data.
fn never(_: &WearView<'_>, _: Numbers) -> Option<u32> {
    None
}
