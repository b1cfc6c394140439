//! What a block of a group holds, made out of the others: the XOR of all of them is zero.

use super::BlockLayer;
use super::reading::Extent;
use super::tag::BlockId;
use crate::error::{Result, StoreError};
use crate::format::log::event::{Member, ParityGroup};
use futures_util::future::try_join_all;
use softflash_base::IoBuf;
use softflash_ftl::{Hint, Superblock};

/// How often it is tried where blocks change their places meanwhile.
const TRIES: usize = 4;

/// XORs `bytes` into `sum`.
pub fn xor_into(sum: &mut [u8], bytes: &[u8]) {
    sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
}

/// Pages that are compared at a time.
const STEP_PAGES: u32 = 64;

impl BlockLayer {
    /// Whether the parity of a group can be read and is that of its patches; otherwise it is noted as degraded. `true` where a
    /// patch cannot be read, which is another matter.
    pub async fn parity_agrees(&self, group: &ParityGroup, hint: Hint) -> bool {
        let version = self.inner.groups.borrow().version();
        let blocks: Vec<Member> = group.blocks().collect();
        for first in (0..group.pages()).step_by(STEP_PAGES as usize) {
            let pages = STEP_PAGES.min(group.pages() - first);
            let agrees = match self.xor_of(&blocks, first, pages, hint).await {
                Ok(sum) => sum.iter().all(|byte| *byte == 0),
                Err(_) => {
                    let parity =
                        Extent { id: BlockId(group.parity), first_page: first, pages, hint };
                    self.read_only_copy(parity).await.is_ok()
                }
            };
            if !agrees {
                if version == self.inner.groups.borrow().version() {
                    self.note_degraded(BlockId(group.parity));
                }
                return false;
            }
        }
        true
    }

    /// As [`read_as`](BlockLayer::read_as) of a block of a group that cannot be read, or not as it was written, in the
    /// superblocks `tried`. `None` where the others do not make up for it.
    pub(super) async fn make_of_others<T>(
        &self,
        extent: Extent,
        tried: &[Superblock],
        make: impl Fn(IoBuf) -> Result<T>,
    ) -> Option<T> {
        for _ in 0..TRIES {
            let group = self.group_of(extent.id)?;
            let version = self.inner.groups.borrow().version();
            let made = self.xor_of_others(extent, &group).await.and_then(&make);
            if let Ok(made) = made {
                // It may have been written once more meanwhile.
                if self.superblocks(extent.id)[..] == *tried {
                    self.note_degraded(extent.id);
                }
                return Some(made);
            }
            if version == self.inner.groups.borrow().version() {
                break;
            }
        }
        if self.superblocks(extent.id)[..] == *tried {
            self.note_degraded(extent.id);
        }
        None
    }

    /// Whole pages of a block, made out of the others of its group.
    pub async fn read_of_others(
        &self,
        group: &ParityGroup,
        id: BlockId,
        first_page: u32,
        pages: u32,
        hint: Hint,
    ) -> Result<IoBuf> {
        self.xor_of_others(Extent { id, first_page, pages, hint }, group).await
    }

    async fn xor_of_others(&self, extent: Extent, group: &ParityGroup) -> Result<IoBuf> {
        let own = group.blocks().find(|block| block.block == extent.id.0);
        if own.is_none_or(|own| extent.end() > own.pages) {
            return Err(StoreError::DataLoss(format!("{} has no such pages", extent.id)));
        }
        let others: Vec<Member> =
            group.blocks().filter(|block| block.block != extent.id.0).collect();
        self.xor_of(&others, extent.first_page, extent.pages, extent.hint).await
    }

    /// The XOR of pages of blocks; of those that a block does not have as zeros.
    pub async fn xor_of(
        &self,
        blocks: &[Member],
        first_page: u32,
        pages: u32,
        hint: Hint,
    ) -> Result<IoBuf> {
        let readings = blocks.iter().filter(|block| block.pages > first_page).map(|block| {
            let pages = pages.min(block.pages - first_page);
            self.read_only_copy(Extent { id: BlockId(block.block), first_page, pages, hint })
        });
        let mut sum = self.flash().buffer(pages as usize * self.page_bytes());
        sum.fill(0);
        for bytes in try_join_all(readings).await? {
            xor_into(&mut sum, &bytes);
        }
        Ok(sum)
    }
}
