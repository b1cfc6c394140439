//! The block that was closed first.

use super::view::{Candidates, NOT_CLOSED};

pub(super) fn choose(candidates: &Candidates<'_>) -> Option<u32> {
    let closed = candidates.valid.iter().zip(candidates.closed).enumerate();
    closed
        .filter(|&(_, (&valid, _))| valid < NOT_CLOSED)
        .max_by_key(|&(block, (_, &at))| (candidates.now.wrapping_sub(at), usize::MAX - block))
        .map(|(block, _)| block as u32)
}
