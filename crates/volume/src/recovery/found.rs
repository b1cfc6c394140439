//! The superblocks of a domain that a mount finds, and their frames.

use crate::core::Core;
use crate::error::VolumeError;
use crate::format::tag::{self, Class};
use crate::walk::{self, FoundFrame};
use futures_util::future::join_all;
use softflash_ftl::{Inventory, Superblock};

/// A superblock of the domain.
pub(super) struct FoundSuperblock {
    pub superblock: Superblock,
    pub block: u32,
    /// None if its opening header is lost.
    pub tag: Option<tag::Tag>,
}

impl FoundSuperblock {
    /// Whether it can hold data that a root with this sequence names.
    pub fn holds_data_of(&self, sequence: u64) -> bool {
        self.tag.is_none_or(|tag| tag.class != Class::Map && tag.first_sequence < sequence)
    }
}

/// Whether a superblock can hold data of volumes.
pub(super) fn holds_data(found: &FoundSuperblock) -> bool {
    found.tag.is_none_or(|tag| tag.class != Class::Map)
}

pub(super) fn is_rewritten(found: &FoundSuperblock) -> bool {
    found.tag.is_some_and(|tag| tag.class == Class::Rewritten)
}

/// All frames of some superblocks whose heads can be read.
pub(super) async fn frames_of(
    core: &Core,
    found: impl Iterator<Item = &FoundSuperblock>,
) -> Vec<FoundFrame> {
    let walks = found.map(|found| walk::frames(core, found.superblock));
    join_all(walks).await.into_iter().flatten().collect()
}

/// The superblocks that a mount has found, those with a lost opening header, too.
pub(super) fn superblocks(
    core: &Core,
    inventory: &Inventory,
) -> Result<Vec<FoundSuperblock>, VolumeError> {
    let block = |superblock: &Superblock| core.geometry.block(superblock.unit.0, superblock.index);
    let mut all = Vec::new();
    for found in &inventory.superblocks {
        let Some(tag) = tag::decode(&found.tag) else {
            let reason = format!(
                "{} has a tag of a newer version, or of another layer; use a newer softflash",
                found.superblock
            );
            return Err(VolumeError::Damaged { reason });
        };
        let superblock = found.superblock;
        all.push(FoundSuperblock { superblock, block: block(&superblock), tag: Some(tag) });
    }
    for damaged in &inventory.damaged {
        let superblock = damaged.superblock;
        all.push(FoundSuperblock { superblock, block: block(&superblock), tag: None });
    }
    Ok(all)
}
