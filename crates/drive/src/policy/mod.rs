//! Victim policies: the choice of the block of a write frontier that is collected next, from valid
//! counts and ages. `collect` executes it.

mod fifo;
mod greedy;

use crate::spec::VictimPolicy;

/// The view of a policy on the blocks of a write frontier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidates<'a> {
    /// Valid pages of each block; [`NOT_CLOSED`] is added where it cannot be collected.
    pub(crate) valid: &'a [u16],
    /// When each block was closed, as a counter that wraps.
    pub(crate) closed: &'a [u32],
    /// The number that the next block to be closed gets.
    pub(crate) now: u32,
}

/// Set in the count of a block that is free, being written, or being erased.
pub(crate) const NOT_CLOSED: u16 = 0x8000;

/// The block to collect, counted in its write frontier; `None` if none is closed.
#[inline]
pub(crate) fn choose(policy: VictimPolicy, candidates: &Candidates<'_>) -> Option<u32> {
    let chosen = match policy {
        VictimPolicy::Greedy => greedy::choose(candidates),
        VictimPolicy::Fifo => fifo::choose(candidates),
    };
    chosen.filter(|&block| candidates.valid[block as usize] < NOT_CLOSED)
}
