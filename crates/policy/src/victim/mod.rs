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

use crate::registry::{Entry, Kind, Numbers, Policy};
use softflash_base::random::Rng;

pub use view::{Candidates, NOT_CLOSED};

/// The choice of the block that is collected next.
#[derive(Debug)]
pub struct Victim;

/// The choice of a block, counted in its group.
pub type Rule = fn(&Candidates<'_>, Numbers, &mut Rng) -> Option<u32>;

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

/// The block to collect, counted in its group; `None` if none is closed.
#[inline]
pub fn choose(policy: VictimPolicy, candidates: &Candidates<'_>, rng: &mut Rng) -> Option<u32> {
    let chosen = (policy.rule())(candidates, policy.numbers(), rng);
    chosen.filter(|&block| candidates.is_closed(block as usize))
}
