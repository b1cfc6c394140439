//! The block that was closed first.

use super::view::{Candidates, NOT_CLOSED, Rule};
use crate::registry::{Entry, Numbers};
use softflash_base::random::Rng;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "fifo",
    parameters: &[],
    meaning: "The one that was closed first.",
    aliases: &[],
    rule: choose,
};

fn choose(candidates: &Candidates<'_>, _: Numbers, _: &mut Rng) -> Option<u32> {
    let closed = candidates.valid.iter().zip(candidates.closed).enumerate();
    closed
        .filter(|&(_, (&valid, _))| valid < NOT_CLOSED)
        .max_by_key(|&(block, (_, &at))| (candidates.now.wrapping_sub(at), usize::MAX - block))
        .map(|(block, _)| block as u32)
}
