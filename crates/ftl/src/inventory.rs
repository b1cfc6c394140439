//! The superblocks that a mount found.

use crate::stream::Stream;
use crate::superblock::{Owner, OwnerTag, Superblock};
use softflash_base::UnitSet;

/// A superblock with data of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSuperblock {
    /// The handle; the superblock is live until it is released.
    pub superblock: Superblock,
    /// The tag that the owner gave when it was allocated.
    pub tag: OwnerTag,
    /// The stream for which it was allocated.
    pub stream: Stream,
}

/// A superblock whose opening header is damaged: either a power cut tore it, so that no data inside
/// was ever acknowledged, or the flash lost it. The FTL cannot distinguish the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedSuperblock {
    /// The handle: its pages can be read, and its space is free after it is released.
    pub superblock: Superblock,
    /// Whether the generation of the handle is the one with which the superblock was written.
    /// Without any header it is a new one.
    pub has_generation: bool,
    /// Why the header is damaged.
    pub reason: String,
}

/// A superblock that the FTL keeps for another owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptSuperblock {
    /// The handle.
    pub superblock: Superblock,
    /// The owner; none if the opening header is damaged.
    pub owner: Option<Owner>,
}

/// The superblocks that a mount found. All of them are live until released.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inventory {
    /// Superblocks with their tags, by unit and index.
    pub superblocks: Vec<FoundSuperblock>,
    /// Superblocks of another owner than that of their unit, which must not release them. A damaged
    /// superblock in a unit with any of them may be one of them, and is in this list too.
    pub of_others: Vec<KeptSuperblock>,
    /// Superblocks whose opening header is damaged, in units without superblocks of other owners.
    pub damaged: Vec<DamagedSuperblock>,
    /// Superblocks in which something else is in the place of an opening header, or nothing. Nearly
    /// all of them are free: left from an earlier use of the medium, erased ahead of need, or being
    /// erased when the power was cut. But their headers may also have been written over. In units
    /// without superblocks of other owners, and only if the owner
    /// [asks](crate::Ownership::asks_about_unclaimed).
    pub unclaimed: Vec<DamagedSuperblock>,
    /// Superblocks, also listed above, whose erase header is damaged and whose opening header
    /// replaces it. A power cut leaves this behind only in superblocks that were released and being
    /// erased.
    pub erase_headers_lost: Vec<DamagedSuperblock>,
}

impl Inventory {
    /// The handles of all superblocks, whoever owns them.
    pub fn all(&self) -> impl Iterator<Item = &Superblock> {
        let ours = self.superblocks.iter().map(|found| &found.superblock);
        let others = self.of_others.iter().map(|kept| &kept.superblock);
        let damaged = self.damaged.iter().chain(&self.unclaimed);
        ours.chain(others).chain(damaged.map(|damaged| &damaged.superblock))
    }

    /// Takes out the superblocks of these units.
    pub fn split_off(&mut self, units: &UnitSet) -> Inventory {
        let is_theirs = |superblock: &Superblock| units.contains(superblock.unit.0);
        let damaged = |list: &mut Vec<DamagedSuperblock>| -> Vec<DamagedSuperblock> {
            list.extract_if(.., |damaged| is_theirs(&damaged.superblock)).collect()
        };
        let Inventory { superblocks, of_others, .. } = self;
        Inventory {
            superblocks: superblocks.extract_if(.., |found| is_theirs(&found.superblock)).collect(),
            of_others: of_others.extract_if(.., |kept| is_theirs(&kept.superblock)).collect(),
            damaged: damaged(&mut self.damaged),
            unclaimed: damaged(&mut self.unclaimed),
            erase_headers_lost: damaged(&mut self.erase_headers_lost),
        }
    }
}
