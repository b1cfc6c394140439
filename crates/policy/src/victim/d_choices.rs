//! The block with the fewest valid pages of `d` random ones, drawn with replacement; of equals, the
//! first drawn. The cost of a choice does not depend on the number of blocks.
//!
//! Van Houdt, *A mean field model for a class of garbage collection algorithms in flash-based solid
//! state drives*, SIGMETRICS 2013; as the randomized greedy algorithm: Li, Lee and Lui, *Stochastic
//! modeling of large-scale solid-state storage systems: analysis, design tradeoffs and
//! optimization*, SIGMETRICS 2013.

use super::view::{Candidates, Rule};
use crate::registry::{Entry, Numbers, Parameter};
use softflash_base::random::Rng;

/// Draws for each choice until a block is closed. Nearly all are closed in a group that collects.
const DRAWS: usize = 32;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "d-choices",
    parameters: &[Parameter::new("D", "random blocks")],
    meaning: "The one with the fewest valid pages of so many random ones.",
    aliases: &[],
    rule: choose,
};

fn choose(candidates: &Candidates<'_>, [d, _]: Numbers, rng: &mut Rng) -> Option<u32> {
    let mut chosen = draw(candidates, rng)?;
    for _ in 1..d {
        let other = draw(candidates, rng)?;
        if candidates.valid[other] < candidates.valid[chosen] {
            chosen = other;
        }
    }
    Some(chosen as u32)
}

/// A random closed block.
fn draw(candidates: &Candidates<'_>, rng: &mut Rng) -> Option<usize> {
    let blocks = candidates.valid.len();
    if blocks == 0 {
        return None;
    }
    let mut block = 0;
    for _ in 0..DRAWS {
        block = rng.below(blocks as u64) as usize;
        if candidates.is_closed(block) {
            return Some(block);
        }
    }
    // Few are closed: the next one, around the end.
    (block..blocks).chain(0..block).find(|&block| candidates.is_closed(block))
}
