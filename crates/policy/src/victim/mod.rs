//! Victim policies: the choice of the block of a group that is collected next, from valid counts
//! and ages.

mod aged_cost_benefit;
mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
#[cfg(test)]
mod tests;
mod view;
mod windowed_greedy;

use crate::registry::{Entry, Kind, Policy};
use softflash_base::random::Rng;

pub use view::{Candidates, NOT_CLOSED, Rule};

/// The choice of the block that is collected next.
#[derive(Debug)]
pub struct Victim;

impl Kind for Victim {
    type Rule = Rule;
    const NAME: &'static str = "victim";
    const TITLE: &'static str = "victim policy";
    const MEANING: &'static str = "Which block is collected next.";
    const ENTRIES: &'static [&'static Entry<Rule>] = &[
        &greedy::ENTRY,
        &fifo::ENTRY,
        &cost_benefit::ENTRY,
        &d_choices::ENTRY,
        &windowed_greedy::ENTRY,
        &aged_cost_benefit::ENTRY,
    ];
}

/// Which block is collected next. In text: `greedy`, `d-choices:8`.
pub type VictimPolicy = Policy<Victim>;

/// Those that code names.
impl VictimPolicy {
    /// The one with the fewest valid pages.
    pub const GREEDY: VictimPolicy = Policy::of(&greedy::ENTRY);
    /// The one that was closed first.
    pub const FIFO: VictimPolicy = Policy::of(&fifo::ENTRY);
    /// The one with the greatest benefit for its cost.
    pub const COST_BENEFIT: VictimPolicy = Policy::of(&cost_benefit::ENTRY);

    /// The one with the fewest valid pages of `d` random ones.
    ///
    /// # Panics
    /// If `d` is 0.
    pub fn d_choices(d: u32) -> VictimPolicy {
        Policy::with(&d_choices::ENTRY, &[d])
    }

    /// The one with the fewest valid pages of so many that were closed first.
    ///
    /// # Panics
    /// If the window is 0.
    pub fn windowed_greedy(window: u32) -> VictimPolicy {
        Policy::with(&windowed_greedy::ENTRY, &[window])
    }

    /// The one with the greatest benefit for its cost, which grows with this power of the age, in
    /// percent.
    ///
    /// # Panics
    /// If the power is 0 or above 100.
    pub fn aged_cost_benefit(percent: u32) -> VictimPolicy {
        Policy::with(&aged_cost_benefit::ENTRY, &[percent])
    }
}

/// The block to collect, counted in its group; `None` if none is closed.
#[inline]
pub fn choose(policy: VictimPolicy, candidates: &Candidates<'_>, rng: &mut Rng) -> Option<u32> {
    let chosen = (policy.rule())(candidates, policy.numbers(), rng);
    chosen.filter(|&block| candidates.is_closed(block as usize))
}
