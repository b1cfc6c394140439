//! The superblocks that a mount finds.

use super::nameless::{Nameless, nameless};
use crate::core::Core;
use crate::error::VolumeError;
use crate::format::tag::{self, Purpose};
use crate::frame_scan::{self, FoundFrame};
use futures_util::future::join_all;
use softflash_base::cast;
use softflash_device::DeviceError;
use softflash_ftl::{FtlError, Hint, Inventory, SpaceAccount, Superblock};

/// A superblock of the domain.
pub(super) struct FoundSuperblock {
    pub superblock: Superblock,
    pub block: u32,
    /// None if its opening header is lost.
    pub tag: Option<tag::Tag>,
    /// The generation of its frames, if that is not the one of the handle.
    generation: Option<u64>,
    /// Whether the heads of its frames are bound to the domain.
    is_bound: bool,
}

impl FoundSuperblock {
    /// Whether it can hold data that a root with this sequence names.
    pub fn holds_data_of(&self, sequence: u64) -> bool {
        self.tag.is_none_or(|tag| tag.purpose != Purpose::Map && tag.first_sequence < sequence)
    }
}

/// The superblocks of the domain, by unit and index, and those of an unknown owner. The domain
/// knows them from here on.
pub(super) async fn superblocks(
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
        all.push(FoundSuperblock {
            superblock,
            block: block(&superblock),
            tag: Some(tag),
            generation: None,
            is_bound: tag.has_table,
        });
    }
    for Nameless { superblock, generation, is_bound } in nameless(core, inventory).await {
        let block = block(&superblock);
        all.push(FoundSuperblock { superblock, block, tag: None, generation, is_bound });
    }
    for found in &all {
        core.superblocks.set(found.block, found.superblock);
        core.superblocks.bind(found.block, found.is_bound);
        if let Some(generation) = found.generation {
            core.superblocks.set_generation(found.block, generation);
        }
    }
    Ok(all)
}

/// A unit that cannot be read, and may have held anything: none of its superblocks can be read, or
/// it has failed during the mount.
pub(super) async fn unreadable_unit(core: &Core, found: &[FoundSuperblock]) -> Option<u16> {
    let units = core.geometry.units();
    let mut units = units.iter().map(|unit| (unit, core.flash.space(unit)));
    let is_unreadable = |(unit, space): &(u16, SpaceAccount)| {
        let damaged =
            found.iter().filter(|one| one.superblock.unit.0 == *unit && one.tag.is_none());
        let damaged = cast::saturating_u32(damaged.count());
        damaged > 0 && damaged + space.bad >= space.total()
    };
    if let Some((unit, _)) = units.find(is_unreadable) {
        return Some(unit);
    }
    for one in found {
        let read = core.flash.read(&one.superblock, 0, 1, Hint::FOREGROUND).await;
        // A power cut leaves pages that cannot be corrected or were never programmed.
        if let Err(FtlError::Device {
            error: DeviceError::DeadDie | DeviceError::Io { .. }, ..
        }) = read
        {
            return Some(one.superblock.unit.0);
        }
    }
    None
}

/// Whether a superblock can hold data of volumes.
pub(super) fn holds_data(found: &FoundSuperblock) -> bool {
    found.tag.is_none_or(|tag| tag.purpose != Purpose::Map)
}

pub(super) fn is_rewritten(found: &FoundSuperblock) -> bool {
    found.tag.is_some_and(|tag| tag.purpose == Purpose::Rewritten)
}

pub(super) async fn frames_of(
    core: &Core,
    found: impl Iterator<Item = &FoundSuperblock>,
) -> Vec<FoundFrame> {
    let scans = found.map(|found| frame_scan::frames(core, found.superblock));
    join_all(scans).await.into_iter().flatten().collect()
}
