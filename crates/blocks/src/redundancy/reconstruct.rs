//! Reconstructs a block from its parity group: the XOR of all blocks of a group is zero.

use super::groups::Groups;
use super::parity_group::{Member, ParityGroup};
use crate::copy_reader::{CopyReader, Extent};
use crate::damage::Damage;
use crate::directory::Directory;
use crate::error::{BlockError, Result};
use crate::pools::Pools;
use crate::tag::BlockId;
use futures_util::future::try_join_all;
use softflash_base::IoBuf;
use softflash_ftl::{Hint, Superblock};
use std::rc::Rc;

/// Attempts to read a group whose blocks are moved at the same time.
const TRIES: usize = 4;

/// XORs `bytes` into `sum`.
pub fn xor_into(sum: &mut [u8], bytes: &[u8]) {
    sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
}

/// Pages that are compared at a time.
const STEP_PAGES: u32 = 64;

/// Reads the blocks of groups for their XOR.
pub(crate) struct Reconstruction {
    pools: Rc<Pools>,
    directory: Rc<Directory>,
    groups: Rc<Groups>,
    damage: Rc<Damage>,
    copy_reader: Rc<CopyReader>,
}

impl Reconstruction {
    pub(crate) fn new(
        pools: &Rc<Pools>,
        directory: &Rc<Directory>,
        groups: &Rc<Groups>,
        damage: &Rc<Damage>,
        copy_reader: &Rc<CopyReader>,
    ) -> Reconstruction {
        Reconstruction {
            pools: Rc::clone(pools),
            directory: Rc::clone(directory),
            groups: Rc::clone(groups),
            damage: Rc::clone(damage),
            copy_reader: Rc::clone(copy_reader),
        }
    }

    /// Whether the parity of a group can be read and equals the XOR of its patches; otherwise it is
    /// noted as degraded. `true` where a patch cannot be read: the read has noted that.
    pub(crate) async fn parity_agrees(&self, group: &ParityGroup, hint: Hint) -> bool {
        let version = self.groups.version();
        let blocks: Vec<Member> = group.blocks().collect();
        for first in (0..group.pages()).step_by(STEP_PAGES as usize) {
            let pages = STEP_PAGES.min(group.pages() - first);
            let agrees = match self.xor(&blocks, first, pages, hint).await {
                Ok(sum) => sum.iter().all(|byte| *byte == 0),
                Err(_) => {
                    let parity =
                        Extent { id: BlockId(group.parity), first_page: first, pages, hint };
                    self.copy_reader.read_only_copy(parity).await.is_ok()
                }
            };
            if !agrees {
                if version == self.groups.version() {
                    self.damage.note_degraded(BlockId(group.parity));
                }
                return false;
            }
        }
        true
    }

    /// Reconstructs pages of a block of a group that is unreadable or damaged in the superblocks
    /// `tried`, and decodes them with `make`. `None` where that fails.
    pub(crate) async fn reconstruct_as<T, E: From<BlockError>>(
        &self,
        extent: Extent,
        tried: &[Superblock],
        make: impl Fn(IoBuf) -> Result<T, E>,
    ) -> Option<T> {
        for _ in 0..TRIES {
            let group = self.groups.of(extent.id)?;
            let version = self.groups.version();
            let made = self.xor_of_others(extent, &group).await.map_err(E::from).and_then(&make);
            if let Ok(made) = made {
                // Other superblocks show that the block was rewritten during the read.
                if self.directory.copies(extent.id)[..] == *tried {
                    self.damage.note_degraded(extent.id);
                }
                return Some(made);
            }
            if version == self.groups.version() {
                break;
            }
        }
        if self.directory.copies(extent.id)[..] == *tried {
            self.damage.note_degraded(extent.id);
        }
        None
    }

    /// Whole pages of a block, reconstructed from the other blocks of its group.
    pub(crate) async fn xor_of_others(&self, extent: Extent, group: &ParityGroup) -> Result<IoBuf> {
        let own = group.blocks().find(|block| block.block == extent.id.0);
        if own.is_none_or(|own| extent.end() > own.pages) {
            return Err(BlockError::DataLoss(format!("{} has no such pages", extent.id)));
        }
        let others: Vec<Member> =
            group.blocks().filter(|block| block.block != extent.id.0).collect();
        self.xor(&others, extent.first_page, extent.pages, extent.hint).await
    }

    /// The XOR of pages of blocks; pages beyond a block's end count as zeros.
    pub(crate) async fn xor(
        &self,
        blocks: &[Member],
        first_page: u32,
        pages: u32,
        hint: Hint,
    ) -> Result<IoBuf> {
        let readings = blocks.iter().filter(|block| block.pages > first_page).map(|block| {
            let pages = pages.min(block.pages - first_page);
            self.copy_reader.read_only_copy(Extent {
                id: BlockId(block.block),
                first_page,
                pages,
                hint,
            })
        });
        let mut sum = self.pools.flash().buffer(pages as usize * self.pools.page_bytes());
        sum.fill(0);
        for bytes in try_join_all(readings).await? {
            xor_into(&mut sum, &bytes);
        }
        Ok(sum)
    }
}
