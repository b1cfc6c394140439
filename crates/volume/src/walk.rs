//! Finds the frames of a superblock: each head names the length of its frame. Behind a head that is
//! lost or torn, every page is looked at.

use crate::core::Core;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::Entry;
use crate::format::frame::{self, Head};
use softflash_base::{cast, checksum};
use softflash_ftl::{Hint, Superblock};

/// A frame that was found.
#[derive(Debug, Clone)]
pub(crate) struct FoundFrame {
    pub head: Head,
    pub block: u32,
    /// The place of its head.
    pub first: u32,
}

impl FoundFrame {
    /// The entries with the places of their data.
    pub fn places(&self) -> impl Iterator<Item = (Entry, u32)> {
        // Entries without data are in frames without any.
        self.head.entries.iter().copied().zip(self.first + 1..)
    }
}

/// All frames of a superblock whose heads can be read.
pub(crate) async fn frames(core: &Core, superblock: Superblock) -> Vec<FoundFrame> {
    let block = core.geometry.block(superblock.unit.0, superblock.index);
    let start = core.geometry.places_of(block).start;
    let pages = core.geometry.block_pages();
    let mut found = Vec::new();
    let mut page = 0;
    while page < pages {
        match head_at(core, &superblock, page).await {
            Some(head) => {
                let length = head.pages.max(1);
                found.push(FoundFrame {
                    head,
                    block,
                    first: start + page * core.geometry.page_units,
                });
                page += length;
            }
            None => page += 1,
        }
    }
    found
}

async fn head_at(core: &Core, superblock: &Superblock, page: u32) -> Option<Head> {
    let read = core.flash.read(superblock, page, 1, Hint::FOREGROUND).await.ok()?;
    let head =
        frame::decode(read.bytes.get(..MAPPING_UNIT_BYTES)?, core.position(superblock, page))?;
    (head.pages <= core.geometry.block_pages() - page).then_some(head)
}

/// Reads a mapping unit; `None` if it cannot be read, or is not what was written.
pub(crate) async fn read_checked(core: &Core, place: u32, seed: u64, sum: u64) -> Option<Vec<u8>> {
    let data = read_unit(core, place).await?;
    (checksum::checksum64(seed, &data) == sum).then_some(data)
}

/// Reads a mapping unit; `None` if it cannot be read.
pub(crate) async fn read_unit(core: &Core, place: u32) -> Option<Vec<u8>> {
    let superblock = core.superblocks.handle(core.geometry.block_of(place))?;
    let (page, inside) = core.geometry.page_of(place);
    let read = core.flash.read(&superblock, page, 1, Hint::FOREGROUND).await.ok()?;
    let at = cast::index(inside) * MAPPING_UNIT_BYTES;
    Some(read.bytes.get(at..at + MAPPING_UNIT_BYTES)?.to_vec())
}
