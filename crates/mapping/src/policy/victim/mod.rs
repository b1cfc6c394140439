//! Victim policies: the choice of the block of a group that is collected next, from valid counts
//! and ages.

mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
#[cfg(test)]
mod tests;
mod view;
mod windowed_greedy;

use crate::policy::text::{PolicyError, with_number};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;
use std::fmt;
use std::str::FromStr;

pub use view::{Candidates, NOT_CLOSED};

/// Which block is collected next. In text: `greedy`, `fifo`, `cost-benefit`, `d-choices:8`,
/// `windowed-greedy:64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(!try_from, !into, rename_all = "kebab-case")]
pub enum VictimPolicy {
    /// The one with the fewest valid pages.
    #[default]
    Greedy,
    /// The one that was closed first.
    Fifo,
    /// The one with the greatest benefit for its cost: free space and age for the pages to read and
    /// write.
    CostBenefit,
    /// The one with the fewest valid pages of so many random ones.
    #[schemars(extend("form" = "d-choices:D"))]
    DChoices(u32),
    /// The one with the fewest valid pages of so many that were closed first.
    #[schemars(extend("form" = "windowed-greedy:W"))]
    WindowedGreedy(u32),
}

impl FromStr for VictimPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<VictimPolicy, PolicyError> {
        match (text, with_number(text)) {
            ("greedy", _) => Ok(VictimPolicy::Greedy),
            ("fifo", _) => Ok(VictimPolicy::Fifo),
            ("cost-benefit", _) => Ok(VictimPolicy::CostBenefit),
            (_, Some(("d-choices", number))) => Ok(VictimPolicy::DChoices(number)),
            (_, Some(("windowed-greedy", number))) => Ok(VictimPolicy::WindowedGreedy(number)),
            _ => Err(PolicyError::Victim(text.to_owned())),
        }
    }
}

impl fmt::Display for VictimPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VictimPolicy::Greedy => f.write_str("greedy"),
            VictimPolicy::Fifo => f.write_str("fifo"),
            VictimPolicy::CostBenefit => f.write_str("cost-benefit"),
            VictimPolicy::DChoices(number) => write!(f, "d-choices:{number}"),
            VictimPolicy::WindowedGreedy(number) => write!(f, "windowed-greedy:{number}"),
        }
    }
}

impl TryFrom<String> for VictimPolicy {
    type Error = PolicyError;

    fn try_from(text: String) -> Result<VictimPolicy, PolicyError> {
        text.parse()
    }
}

impl From<VictimPolicy> for String {
    fn from(policy: VictimPolicy) -> String {
        policy.to_string()
    }
}

/// The block to collect, counted in its group; `None` if none is closed.
#[inline]
pub fn choose(policy: VictimPolicy, candidates: &Candidates<'_>, rng: &mut Rng) -> Option<u32> {
    let chosen = match policy {
        VictimPolicy::Greedy => greedy::choose(candidates),
        VictimPolicy::Fifo => fifo::choose(candidates),
        VictimPolicy::CostBenefit => cost_benefit::choose(candidates),
        VictimPolicy::DChoices(number) => d_choices::choose(candidates, number, rng),
        VictimPolicy::WindowedGreedy(number) => windowed_greedy::choose(candidates, number),
    };
    chosen.filter(|&block| candidates.is_closed(block as usize))
}
