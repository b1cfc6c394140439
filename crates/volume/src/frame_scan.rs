//! Finds the frames of a superblock: each head names the length of its frame. Behind a head that is
//! lost or torn, every page is looked at.

use crate::core::Core;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::Entry;
use crate::format::frame::{self, Head};
use softflash_base::{cast, checksum};
use softflash_device::DeviceError;
use softflash_flash::ReadPages;
use softflash_ftl::{FtlError, Hint, Superblock};

/// A frame that was found.
#[derive(Debug, Clone)]
pub(crate) struct FoundFrame {
    pub head: Head,
    pub block: u32,
    /// The slot of its head.
    pub first: u32,
}

impl FoundFrame {
    /// The entries with the slots of their data.
    pub fn slots(&self) -> impl Iterator<Item = (Entry, u32)> {
        // Entries without data are in frames without any.
        self.head.entries.iter().copied().zip(self.first + 1..)
    }
}

/// All frames of a superblock whose heads can be read.
pub(crate) async fn frames(core: &Core, superblock: Superblock) -> Vec<FoundFrame> {
    let block = core.geometry.block(superblock.unit.0, superblock.index);
    let start = core.geometry.slots_of(block).start;
    let pages = core.geometry.block_pages();
    let mut found = Vec::new();
    let (mut page, mut is_expected) = (0, true);
    while page < pages {
        let head = head_at(core, &superblock, page, is_expected).await;
        is_expected = head.is_some();
        match head {
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

/// Reads of a page that may hold a head. A read that fails, or has something else or nothing where
/// a head is expected, may succeed the next time; a head that is found by a later recovery only
/// would bring old data back.
const ATTEMPTS: usize = 3;
/// Reads that find a page never programmed, until it counts as such.
const BLANK_ATTEMPTS: usize = 2;

async fn head_at(
    core: &Core,
    superblock: &Superblock,
    page: u32,
    is_expected: bool,
) -> Option<Head> {
    let block = core.geometry.block(superblock.unit.0, superblock.index);
    let mut blank = 0;
    for _ in 0..ATTEMPTS {
        let read = core.flash.read(superblock, page, 1, Hint::FOREGROUND).await;
        core.note_outcome(core.geometry.unit_of(block), read.as_ref().err());
        match page_of(read) {
            Page::Read(bytes) => {
                let head = frame::decode(&bytes, core.position(superblock, page));
                let fits = |head: &Head| head.pages <= core.geometry.block_pages() - page;
                if let Some(head) = head.filter(fits) {
                    return Some(head);
                }
                if !is_expected {
                    return None;
                }
            }
            Page::Blank => {
                blank += 1;
                if !is_expected || blank == BLANK_ATTEMPTS {
                    return None;
                }
            }
            Page::Unreadable => {}
        }
    }
    None
}

/// A page in which the head of a frame is looked for.
pub(crate) enum Page {
    /// Never programmed, or zeros.
    Blank,
    Unreadable,
    /// Its first mapping unit.
    Read(Vec<u8>),
}

/// The first mapping unit of a page: the head of a frame, if there is one.
pub(crate) async fn first_unit(core: &Core, superblock: &Superblock, page: u32) -> Page {
    page_of(core.flash.read(superblock, page, 1, Hint::FOREGROUND).await)
}

fn page_of(read: Result<ReadPages, FtlError>) -> Page {
    match read {
        Ok(read) => match read.bytes.get(..MAPPING_UNIT_BYTES) {
            Some(unit) if unit.iter().all(|byte| *byte == 0) => Page::Blank,
            Some(unit) => Page::Read(unit.to_vec()),
            None => Page::Unreadable,
        },
        Err(error) if is_blank(&error) => Page::Blank,
        Err(_) => Page::Unreadable,
    }
}

fn is_blank(error: &FtlError) -> bool {
    matches!(
        error,
        FtlError::Unwritten { .. } | FtlError::Device { error: DeviceError::Erased { .. }, .. }
    )
}

/// Reads a mapping unit; `None` if it cannot be read, or is not what was written.
pub(crate) async fn read_checked(core: &Core, slot: u32, seed: u64, sum: u64) -> Option<Vec<u8>> {
    read_checked_with(core, slot, &[seed], sum).await
}

/// As [`read_checked`], where the checksum may have one of several seeds.
pub(crate) async fn read_checked_with(
    core: &Core,
    slot: u32,
    seeds: &[u64],
    sum: u64,
) -> Option<Vec<u8>> {
    let data = read_unit(core, slot).await?;
    seeds.iter().any(|&seed| checksum::checksum64(seed, &data) == sum).then_some(data)
}

/// Reads a mapping unit; `None` if it cannot be read.
pub(crate) async fn read_unit(core: &Core, slot: u32) -> Option<Vec<u8>> {
    let superblock = core.superblocks.handle(core.geometry.block_of(slot))?;
    let (page, inside) = core.geometry.page_of(slot);
    let read = core.flash.read(&superblock, page, 1, Hint::FOREGROUND).await.ok()?;
    let at = cast::index(inside) * MAPPING_UNIT_BYTES;
    Some(read.bytes.get(at..at + MAPPING_UNIT_BYTES)?.to_vec())
}
