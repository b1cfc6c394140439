//! Placement policies: the write frontier, or the unit, that takes what is written next.

pub mod by_hint;
mod least_loaded;
mod least_queue;
mod least_worn;
mod most_free;
mod round_robin;
pub mod static_stripe;
#[cfg(test)]
mod tests;
mod view;

use crate::registry::{Entry, Kind, Policy};

pub use view::{Candidates, Rule};

/// The choice of the write frontier.
#[derive(Debug)]
pub struct Placement;

impl Kind for Placement {
    type Rule = Rule;
    const NAME: &'static str = "placement";
    const TITLE: &'static str = "placement";
    const MEANING: &'static str = "Which write frontier takes a page of the host.";
    const ENTRIES: &'static [&'static Entry<Rule>] = &[
        &static_stripe::ENTRY,
        &round_robin::ENTRY,
        &least_queue::ENTRY,
        &least_worn::ENTRY,
        &by_hint::ENTRY,
        &least_loaded::ENTRY,
        &most_free::ENTRY,
    ];
}

/// Which write frontier takes a page of the host. In text: `static`, `round-robin`, `by-hint:2`.
pub type PlacementPolicy = Policy<Placement>;

/// Those that code names.
impl PlacementPolicy {
    /// The one of the page's number.
    pub const STATIC: PlacementPolicy = Policy::of(&static_stripe::ENTRY);
    /// All in turn.
    pub const ROUND_ROBIN: PlacementPolicy = Policy::of(&round_robin::ENTRY);
    /// The one whose die has the fewest pages waiting.
    pub const LEAST_QUEUE: PlacementPolicy = Policy::of(&least_queue::ENTRY);
    /// The one with the fewest erases, of those whose dies are not behind.
    pub const LEAST_WORN: PlacementPolicy = Policy::of(&least_worn::ENTRY);
    /// The one with the least load; of equals, the one with the most room.
    pub const LEAST_LOADED: PlacementPolicy = Policy::of(&least_loaded::ENTRY);
    /// The one with the most room; of equals, the one with the least load.
    pub const MOST_FREE: PlacementPolicy = Policy::of(&most_free::ENTRY);

    /// The one of the page's number and of the request's class.
    ///
    /// # Panics
    /// Unless there are 2 to [`MOST_CLASSES`](by_hint::MOST_CLASSES) classes.
    pub fn by_hint(classes: u32) -> PlacementPolicy {
        Policy::with(&by_hint::ENTRY, &[classes])
    }
}

impl PlacementPolicy {
    /// Classes that have write frontiers of their own.
    pub fn classes(self) -> u32 {
        (self.rule().classes)(self.numbers())
    }

    /// Whether the candidate of a page depends on its number only.
    pub fn is_static(self) -> bool {
        self.rule().choose.is_none()
    }
}

/// The candidate that takes a page; `None` if none has room, or if it depends on the page alone.
pub fn choose(policy: PlacementPolicy, candidates: &Candidates<'_>) -> Option<u32> {
    (policy.rule().choose?)(candidates)
}
