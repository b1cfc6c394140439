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

use crate::registry::{Entry, Kind, Numbers, Policy};

pub use view::Lanes;

/// The choice of the write frontier.
#[derive(Debug)]
pub struct Placement;

/// How a placement policy chooses.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The lane; `None` where it depends on the page's number only.
    choose: Option<fn(&Lanes<'_>) -> Option<u32>>,
    /// Classes that have write frontiers of their own.
    classes: fn(Numbers) -> u32,
}

impl Rule {
    /// Chooses among lanes, whatever the class.
    const fn among(choose: fn(&Lanes<'_>) -> Option<u32>) -> Rule {
        Rule { choose: Some(choose), classes: |_| 1 }
    }
}

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

impl PlacementPolicy {
    /// Classes that have write frontiers of their own.
    pub fn classes(self) -> u32 {
        (self.rule().classes)(self.numbers())
    }

    /// Whether the lane of a page depends on its number only.
    pub fn is_static(self) -> bool {
        self.rule().choose.is_none()
    }
}

/// The lane that takes a page; `None` if none has room, or if it depends on the page alone.
pub fn choose(policy: PlacementPolicy, lanes: &Lanes<'_>) -> Option<u32> {
    (policy.rule().choose?)(lanes)
}
