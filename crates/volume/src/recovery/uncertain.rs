//! Frames that the next recovery may not find, and the superblocks whose data they replaced.

use crate::core::Core;
use crate::format::entry::Entry;
use crate::format::operation::Operation;
use crate::frame_scan::FoundFrame;
use crate::image::ImageId;
use softflash_ftl::Hint;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The numbers of frames that were not known to be durable, and behind which too few pages follow
/// to show that their programs were complete: their pages can be read now, and perhaps not later.
pub(super) async fn uncertain_frames(
    core: &Core,
    frames: &[FoundFrame],
    durable_below: u64,
) -> BTreeSet<u64> {
    let end = |frame: &FoundFrame| page_of(core, frame) + frame.head.pages;
    let undurable = frames.iter().filter(|frame| frame.head.sequence >= durable_below);
    let mut by_block: BTreeMap<u32, Vec<&FoundFrame>> = BTreeMap::new();
    undurable.for_each(|frame| by_block.entry(frame.block).or_default().push(frame));
    let mut uncertain = BTreeSet::new();
    for (block, frames) in by_block {
        let started = started(core, block, &frames).await;
        let complete_at = |frame: &&&FoundFrame| {
            core.flash.safe_after(end(frame)).saturating_add(core.flash.row_pages())
        };
        let unsafe_ones = frames.iter().filter(|frame| complete_at(frame) > started);
        uncertain.extend(unsafe_ones.map(|frame| frame.head.sequence));
    }
    uncertain
}

fn page_of(core: &Core, frame: &FoundFrame) -> u32 {
    core.geometry.page_of(frame.first).0
}

/// The page of a superblock below which all programs have begun, as far as readable pages show.
/// Each die programs its pages in their order, and does not wait for the other dies: a page that
/// can be read tells of the pages before it in its column only.
async fn started(core: &Core, block: u32, frames: &[&FoundFrame]) -> u32 {
    let columns = core.flash.row_pages().max(1);
    let pages = frames.iter().map(|frame| page_of(core, frame));
    let heads: BTreeSet<u32> = pages.collect();
    let ends = frames.iter().map(|frame| page_of(core, frame) + frame.head.pages);
    let (first, last) = (heads.first().copied().unwrap_or(0), ends.max().unwrap_or(0));
    let Some(superblock) = core.superblocks.handle(block) else { return first };
    let mut started = last;
    for column in 0..columns {
        let of_column = (first..last).filter(|page| page % columns == column);
        let mut unknown = last;
        for page in of_column.rev() {
            let is_there = heads.contains(&page)
                || core.flash.read(&superblock, page, 1, Hint::FOREGROUND).await.is_ok();
            if is_there {
                break;
            }
            unknown = page;
        }
        started = started.min(unknown);
    }
    started
}

/// Superblocks whose data uncertain frames replaced: they are needed again if those frames cannot
/// be read the next time.
#[derive(Default)]
pub(super) struct Protected {
    pub blocks: BTreeSet<u32>,
}

impl Protected {
    /// An uncertain entry is about to be applied.
    pub fn add(&mut self, core: &Core, entry: Entry, operation: Option<Operation>) {
        match entry {
            Entry::Data { image, lba, .. } | Entry::Moved { image, lba, .. } => {
                self.add_range(core, image, lba..lba.saturating_add(1));
            }
            Entry::Discard { image, lba, count } => {
                self.add_range(core, image, lba..lba.saturating_add(count));
            }
            Entry::Operation { .. } => match operation.as_ref().map(Operation::inner) {
                Some(Operation::Resize { image, size }) => {
                    self.add_range(core, *image, *size..u32::MAX);
                }
                // A rollback replaces data where the snapshot has others.
                Some(Operation::Delete { image } | Operation::RollBack { image, .. }) => {
                    self.add_range(core, *image, 0..u32::MAX);
                }
                _ => {}
            },
            Entry::Void | Entry::Leaf { .. } | Entry::Root { .. } => {}
        }
    }

    fn add_range(&mut self, core: &Core, image: ImageId, range: Range<u32>) {
        let map = core.map.borrow();
        let slots = map.slots_held(image, range);
        self.blocks.extend(slots.map(|slot| core.geometry.block_of(slot)));
    }
}
