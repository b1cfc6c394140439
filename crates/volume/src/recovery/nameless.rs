//! Superblocks without a readable opening header: whether they have data, and with which generation
//! their frames were written. Heads of frames say it, so that the loss of both headers of a
//! superblock loses nothing that is in it.

use crate::core::Core;
use crate::format::frame::{self, Position};
use crate::frame_scan::{Page, first_unit};
use futures_util::future::join_all;
use softflash_ftl::{DamagedSuperblock, Inventory, Superblock};

/// The first pages of an unclaimed superblock in which a head is looked for: nearly all unclaimed
/// superblocks are free, and there may be as many of them as the device has.
const PROBED_PAGES: u32 = 8;
/// Superblocks that are read at a time.
const TOGETHER: usize = 32;

/// A superblock whose owner and purpose are unknown.
pub(super) struct Nameless {
    pub superblock: Superblock,
    /// The generation of its frames, if that is not the one of the handle.
    pub generation: Option<u64>,
    /// Whether the heads of its frames are bound to the domain.
    pub is_bound: bool,
}

/// The superblocks that may have data and lack an opening header: all damaged ones, and those of
/// the unclaimed ones that begin with frames.
pub(super) async fn nameless(core: &Core, inventory: &Inventory) -> Vec<Nameless> {
    let mut all = Vec::new();
    for together in inventory.damaged.chunks(TOGETHER) {
        all.extend(join_all(together.iter().map(|damaged| examined(core, damaged))).await);
    }
    for together in inventory.unclaimed.chunks(TOGETHER) {
        let probed = together.iter().map(async |unclaimed: &DamagedSuperblock| {
            match begins_with_frames(core, unclaimed).await {
                true => Some(examined(core, unclaimed).await),
                false => None,
            }
        });
        all.extend(join_all(probed).await.into_iter().flatten());
    }
    all
}

/// Releases the unclaimed superblocks that are not among those found: they are free.
pub(crate) fn release_free(core: &Core, inventory: &Inventory) {
    for unclaimed in &inventory.unclaimed {
        let superblock = &unclaimed.superblock;
        let block = core.geometry.block(superblock.unit.0, superblock.index);
        if core.superblocks.handle(block).is_none() {
            core.flash.release(superblock);
        }
    }
}

async fn examined(core: &Core, found: &DamagedSuperblock) -> Nameless {
    let superblock = found.superblock;
    let mut newest = None;
    // On some devices an erase leaves heads of the life before behind those of this one.
    for page in 0..core.geometry.block_pages() {
        if let Page::Read(bytes) = first_unit(core, &superblock, page).await {
            newest = newest.max(written(core, found, &bytes, page));
        }
    }
    let is_bound = newest.map_or(core.has_table(), |written| written.is_bound);
    let generation = newest.filter(|_| !found.has_generation).map(|written| written.generation);
    Nameless { superblock, generation, is_bound }
}

/// How the heads of a superblock were written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Written {
    generation: u64,
    is_bound: bool,
}

/// How the head in a page was written, if it is one of this domain: with the generation of the
/// handle, or, where that is a new one, with the generation that it states itself. Heads from
/// before there was a table of sets are bound to no domain.
fn written(core: &Core, found: &DamagedSuperblock, bytes: &[u8], page: u32) -> Option<Written> {
    let position = core.position(&found.superblock, page);
    let generation = match found.has_generation {
        true => position.generation,
        false => frame::stated_generation(bytes)?,
    };
    let bound = core.has_table().then_some(core.config.domain);
    let domains = [bound, None];
    let mut heads = domains.into_iter().filter_map(|domain| {
        frame::decode(bytes, Position { generation, domain, ..position })?;
        Some(Written { generation, is_bound: domain.is_some() })
    });
    heads.next()
}

/// Whether one of the first pages has the head of a frame of this superblock.
async fn begins_with_frames(core: &Core, found: &DamagedSuperblock) -> bool {
    let superblock = &found.superblock;
    for page in 0..core.geometry.block_pages().min(PROBED_PAGES) {
        let bytes = match first_unit(core, superblock, page).await {
            Page::Blank => return false,
            Page::Unreadable => continue,
            Page::Read(bytes) => bytes,
        };
        if written(core, found, &bytes, page).is_some() {
            return true;
        }
    }
    false
}
