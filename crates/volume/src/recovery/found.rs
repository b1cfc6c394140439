//! The superblocks that a mount finds.

use crate::core::Core;
use crate::error::VolumeError;
use crate::format::tag::{self, Class};
use crate::walk::{self, FoundFrame};
use futures_util::future::join_all;
use softflash_base::cast;
use softflash_ftl::{Inventory, SpaceAccount, Superblock};

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

/// The superblocks of the domain, by unit and index, and those of an unknown owner.
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

/// A unit of which no superblock can be read: it is dead, and may have held anything.
pub(super) fn unreadable_unit(core: &Core, found: &[FoundSuperblock]) -> Option<u16> {
    let units = (0..u32::from(core.geometry.units)).map(|unit| core.unit_id(unit));
    let mut units = units.map(|unit| (unit, core.flash.space(unit)));
    let is_unreadable = |(unit, space): &(u16, SpaceAccount)| {
        let damaged =
            found.iter().filter(|one| one.superblock.unit.0 == *unit && one.tag.is_none());
        let damaged = cast::saturating_u32(damaged.count());
        damaged > 0 && damaged + space.bad >= space.total()
    };
    units.find(is_unreadable).map(|(unit, _)| unit)
}

/// Whether a superblock can hold data of volumes.
pub(super) fn holds_data(found: &FoundSuperblock) -> bool {
    found.tag.is_none_or(|tag| tag.class != Class::Map)
}

pub(super) fn is_rewritten(found: &FoundSuperblock) -> bool {
    found.tag.is_some_and(|tag| tag.class == Class::Rewritten)
}

pub(super) async fn frames_of(
    core: &Core,
    found: impl Iterator<Item = &FoundSuperblock>,
) -> Vec<FoundFrame> {
    let walks = found.map(|found| walk::frames(core, found.superblock));
    join_all(walks).await.into_iter().flatten().collect()
}
