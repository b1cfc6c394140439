//! The block with the fewest valid pages; of equals, the first.

use super::view::{Candidates, Rule};
use crate::registry::{Entry, Numbers};
use softflash_base::random::Rng;

/// Blocks that are compared together: one row of the widest vector registers.
const ROW: usize = 32;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "greedy",
    parameters: &[],
    meaning: "The one with the fewest valid pages.",
    aliases: &[],
    rule: choose,
};

fn choose(candidates: &Candidates<'_>, _: Numbers, _: &mut Rng) -> Option<u32> {
    // Two plain scans (for the minimum, then for its position) are vectorised; one that tracks the
    // position is not.
    let rows = candidates.valid.chunks(ROW);
    let least = rows.map(|row| row.iter().fold(u16::MAX, |a, &b| a.min(b))).min()?;
    candidates.valid.iter().position(|&valid| valid == least).map(|block| block as u32)
}
