//! Orders: which of the operations that wait for a die goes next, and which tenant of a shared
//! resource (a domain, a die) is served next.

mod arrival;
mod deadline;
mod reads_first;
#[cfg(test)]
mod tests;
mod waiting;
mod weighted_fair;

use crate::registry::{Entry, Kind, Numbers, Policy};

pub use arrival::read_is_older;
pub use waiting::Waiting;
pub use weighted_fair::{StartTag, WeightedFair};

/// The order of the operations of a die.
#[derive(Debug)]
pub struct Order;

/// What decides whether the oldest read of a die goes before its oldest write.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// Their arrivals.
    Arrival,
    /// Reads always do.
    ReadsFirst,
    /// Ranks that operations get when they arrive.
    Ranks(fn(Numbers) -> Waiting),
}

impl Kind for Order {
    type Rule = Rule;
    const NAME: &'static str = "order";
    const TITLE: &'static str = "schedule";
    const MEANING: &'static str = "The order of the operations of a die.";
    const ENTRIES: &'static [&'static Entry<Rule>] =
        &[&arrival::ENTRY, &reads_first::ENTRY, &weighted_fair::ENTRY, &deadline::ENTRY];
}

/// The order of the operations of a die. In text: `fifo`, `reads-first`, `weighted-fair:3:1`,
/// `deadline:5`.
pub type Schedule = Policy<Order>;

impl Schedule {
    /// What decides.
    #[inline(always)]
    pub fn decides(&self) -> Rule {
        self.rule()
    }

    /// An empty queue, if operations are ranked when they arrive.
    pub fn waiting(&self) -> Option<Waiting> {
        match self.rule() {
            Rule::Arrival | Rule::ReadsFirst => None,
            Rule::Ranks(empty) => Some(empty(self.numbers())),
        }
    }
}
