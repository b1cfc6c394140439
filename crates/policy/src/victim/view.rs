//! The input of a victim policy, columns over the blocks of a group, and its form.

use crate::registry::Numbers;
use softflash_base::random::Rng;

/// The choice of a block, counted in its group.
pub type Rule = fn(&Candidates<'_>, Numbers, &mut Rng) -> Option<u32>;

/// The view of a policy on the blocks of a group.
#[derive(Debug, Clone, Copy)]
pub struct Candidates<'a> {
    /// Valid pages of each block; [`NOT_CLOSED`] is added where it cannot be collected.
    pub valid: &'a [u16],
    /// When each block was closed, as a counter that wraps.
    pub closed: &'a [u32],
    /// The number that the next block to be closed gets.
    pub now: u32,
    /// Pages of a block.
    pub pages: u32,
}

impl Candidates<'_> {
    /// Whether a block can be collected.
    #[inline]
    pub(super) fn is_closed(&self, block: usize) -> bool {
        self.valid[block] < NOT_CLOSED
    }

    /// Blocks closed since a block was, itself included.
    #[inline]
    pub(super) fn age(&self, block: usize) -> u32 {
        self.now.wrapping_sub(self.closed[block])
    }
}

/// Set in the count of a block that is free, being written, or being erased.
pub const NOT_CLOSED: u16 = 0x8000;
