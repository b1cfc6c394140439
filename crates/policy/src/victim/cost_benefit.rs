//! The block with the greatest benefit for its cost, (1 − u) / 2u · age, where u is the share of
//! valid pages: it gives 1 − u of a block for the read and the write of u, and what has been stable
//! for long will be so for longer. Of equals, the oldest, then the first; an empty block costs
//! nothing and goes before all others.
//!
//! Rosenblum and Ousterhout, *The design and implementation of a log-structured file system*, ACM
//! TOCS 10(1), 1992, section 3.6, with (1 − u) / (1 + u) · age, because a disk reads the whole
//! segment; in the form for flash, which reads valid pages only: Kawaguchi, Nishioka and Motoda, *A
//! flash-memory based file system*, USENIX 1995, section 3.3.

use super::view::{Candidates, Rule};
use crate::registry::{Entry, Numbers};
use softflash_base::random::Rng;
use std::cmp::Ordering;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "cost-benefit",
    parameters: &[],
    meaning: "The one with the greatest benefit for its cost: free space and age for the pages to read and write.",
    aliases: &[],
    rule: choose,
};

fn choose(candidates: &Candidates<'_>, _: Numbers, _: &mut Rng) -> Option<u32> {
    let closed = (0..candidates.valid.len()).filter(|&block| candidates.is_closed(block));
    // Of equal blocks `max_by` returns the last.
    closed.rev().max_by(|&a, &b| compare(candidates, a, b)).map(|block| block as u32)
}

/// Compares benefit/cost exactly, as cross products: at most 15 + 32 + 15 bits. The 2 of the cost
/// cancels out.
fn compare(candidates: &Candidates<'_>, a: usize, b: usize) -> Ordering {
    let cost = |block: usize| u64::from(candidates.valid[block]);
    let age = |block: usize| u64::from(candidates.age(block));
    let benefit =
        |block: usize| u64::from(candidates.pages).saturating_sub(cost(block)) * age(block);
    match (cost(a), cost(b)) {
        (0, 0) => age(a).cmp(&age(b)),
        (0, _) => Ordering::Greater,
        (_, 0) => Ordering::Less,
        (cost_a, cost_b) => {
            (benefit(a) * cost_b).cmp(&(benefit(b) * cost_a)).then(age(a).cmp(&age(b)))
        }
    }
}
