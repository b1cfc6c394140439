//! Superblocks whose erase header is lost.

use softflash_blocks::{BlockId, BlockLayer};
use softflash_ftl::{Inventory, Superblock};
use std::collections::BTreeSet;

/// The superblocks of a shard whose erase header is lost, and replaced by the opening header.
#[derive(Debug, Default)]
pub(crate) struct Headless(BTreeSet<Superblock>);

impl Headless {
    /// Those that a mount has found.
    pub(crate) fn of(inventory: &Inventory) -> Headless {
        Headless(inventory.erase_headers_lost.iter().map(|lost| lost.superblock).collect())
    }

    /// What is wrong with a block of which a superblock is one of these.
    pub(crate) fn problem(&self, blocks: &BlockLayer, id: BlockId) -> Option<String> {
        let lost = blocks.superblocks(id).into_iter().find(|place| self.0.contains(place));
        lost.map(|superblock| format!("the erase header of its {superblock} is damaged"))
    }
}
