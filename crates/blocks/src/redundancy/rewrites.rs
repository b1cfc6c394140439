//! Rewrites that a power cut interrupted.
//!
//! A block of a parity group is rewritten under its id, as a later attempt, and the old superblock
//! is released when the new one is durable. After a power cut in between, the flash has both, and
//! the later one may be incomplete. The mount keeps both until the groups are known, which define
//! the number of pages of each block; then the latest complete attempt counts.

use super::groups::Groups;
use super::parity_group::Member;
use crate::directory::Directory;
use crate::discovery::EarlierAttempt;
use crate::lifecycle::Lifecycle;
use crate::pools::Pools;
use crate::tag::BlockId;
use softflash_ftl::{Hint, Superblock};
use std::cell::RefCell;
use std::rc::Rc;

/// Pages that are read at a time.
const STEP_PAGES: u32 = 64;

/// The rewrites that a mount found.
pub(crate) struct Rewrites {
    pools: Rc<Pools>,
    directory: Rc<Directory>,
    groups: Rc<Groups>,
    lifecycle: Rc<Lifecycle>,
    /// Until [`settle`](Rewrites::settle).
    earlier_attempts: RefCell<Vec<EarlierAttempt>>,
}

impl Rewrites {
    pub(crate) fn new(
        pools: &Rc<Pools>,
        directory: &Rc<Directory>,
        groups: &Rc<Groups>,
        lifecycle: &Rc<Lifecycle>,
        earlier_attempts: Vec<EarlierAttempt>,
    ) -> Rewrites {
        Rewrites {
            pools: Rc::clone(pools),
            directory: Rc::clone(directory),
            groups: Rc::clone(groups),
            lifecycle: Rc::clone(lifecycle),
            earlier_attempts: RefCell::new(earlier_attempts),
        }
    }

    /// Chooses the latest complete attempt of each block that a power cut found in a rewrite, and
    /// releases the other superblocks.
    pub(crate) async fn settle(&self) {
        let mut earlier = self.earlier_attempts.take();
        earlier.sort_unstable_by_key(|earlier| (earlier.id, std::cmp::Reverse(earlier.attempt)));
        for attempts in earlier.chunk_by(|left, right| left.id == right.id) {
            let Some(EarlierAttempt { id, .. }) = attempts.first().copied() else { continue };
            if let Some(complete) = self.earlier_that_counts(id, attempts).await {
                self.lifecycle.return_to(id, complete);
            }
            let copies = self.directory.copies(id);
            let superblocks = attempts.iter().map(|attempt| attempt.superblock);
            let unused: Vec<_> = superblocks.filter(|one| !copies.contains(one)).collect();
            self.pools.release(&unused, false);
        }
    }

    /// The superblock of the latest complete one of the earlier attempts; `None` where the last
    /// attempt is complete, too, or where no group has the block.
    async fn earlier_that_counts(
        &self,
        id: BlockId,
        attempts: &[EarlierAttempt],
    ) -> Option<Superblock> {
        let group = self.groups.of(id)?;
        let block = group.blocks().find(|block| block.block == id.0)?;
        for last in self.directory.copies(id) {
            if self.is_complete(block, &last).await {
                return None;
            }
        }
        for attempt in attempts {
            if self.is_complete(block, &attempt.superblock).await {
                return Some(attempt.superblock);
            }
        }
        None
    }

    /// Whether all pages of the block can be read from the superblock.
    async fn is_complete(&self, block: Member, superblock: &Superblock) -> bool {
        for first in (0..block.pages).step_by(STEP_PAGES as usize) {
            let pages = STEP_PAGES.min(block.pages - first);
            if self.pools.flash().read(superblock, first, pages, Hint::REBUILD).await.is_err() {
                return false;
            }
        }
        true
    }
}
