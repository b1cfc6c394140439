//! Rewrites that a power cut interrupted.
//!
//! A block of a parity group is rewritten under its id, as a later attempt, and the old superblock
//! is released when the new one is durable. After a power cut in between, the flash has both, and
//! the later one may be incomplete. The mount keeps both until the groups are known, which define
//! the number of pages of each block; then the latest complete attempt counts.

use super::parity_group::Member;
use crate::discovery::EarlierAttempt;
use crate::layer::BlockLayer;
use crate::tag::BlockId;
use softflash_ftl::{Hint, Superblock};

/// Pages that are read at a time.
const STEP_PAGES: u32 = 64;

impl BlockLayer {
    /// Chooses the latest complete attempt of each block that a power cut found in a rewrite, and
    /// releases the other superblocks. Called once, when the groups are known.
    pub async fn settle_rewrites(&self) {
        let mut earlier = self.parts.earlier_attempts.take();
        earlier.sort_unstable_by_key(|earlier| (earlier.id, std::cmp::Reverse(earlier.attempt)));
        for attempts in earlier.chunk_by(|left, right| left.id == right.id) {
            let Some(first) = attempts.first() else { continue };
            if let Some(complete) = self.earlier_that_counts(first.id, attempts).await {
                self.return_to(complete);
            }
            let is_unused =
                |superblock: &Superblock| !self.superblocks(first.id).contains(superblock);
            let unused = attempts.iter().map(|attempt| attempt.superblock).filter(is_unused);
            unused.for_each(|superblock| self.flash().release(&superblock));
            self.parts.pools.note_change();
        }
    }

    /// The latest complete one of the earlier attempts; `None` where the last attempt is complete,
    /// too, or where no group has the block.
    async fn earlier_that_counts(
        &self,
        id: BlockId,
        attempts: &[EarlierAttempt],
    ) -> Option<EarlierAttempt> {
        let group = self.group_of(id)?;
        let block = group.blocks().find(|block| block.block == id.0)?;
        for last in self.superblocks(id) {
            if self.is_complete(block, &last).await {
                return None;
            }
        }
        for attempt in attempts {
            if self.is_complete(block, &attempt.superblock).await {
                return Some(*attempt);
            }
        }
        None
    }

    /// Whether all pages of the block can be read from the superblock.
    async fn is_complete(&self, block: Member, superblock: &Superblock) -> bool {
        for first in (0..block.pages).step_by(STEP_PAGES as usize) {
            let pages = STEP_PAGES.min(block.pages - first);
            if self.flash().read(superblock, first, pages, Hint::COMPACTION).await.is_err() {
                return false;
            }
        }
        true
    }

    /// The block is in the superblock of this earlier attempt. It was rewritten for a reason, which
    /// holds still.
    fn return_to(&self, earlier: EarlierAttempt) {
        let EarlierAttempt { id, superblock, .. } = earlier;
        // The number of the last attempt stays: the next rewrite must have a higher one.
        let incomplete = self.parts.directory.change(id, |place| {
            std::mem::replace(&mut place.copies, [superblock].into_iter().collect())
        });
        incomplete.iter().flatten().for_each(|superblock| self.flash().release(superblock));
        self.parts.groups.borrow_mut().note_change();
        self.note_degraded(id);
    }
}
