//! Frames that the next recovery may not find, and the superblocks whose data they replaced.

use crate::core::Core;
use crate::format::entry::Entry;
use crate::format::operation::Operation;
use crate::image::ImageId;
use crate::walk::FoundFrame;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// The numbers of frames that were not known to be durable, and behind which too few pages follow
/// to show that their programs were complete: their pages can be read now, and perhaps not later.
pub(super) fn uncertain_frames(
    core: &Core,
    frames: &[FoundFrame],
    durable_below: u64,
) -> BTreeSet<u64> {
    let page = |place: u32| core.geometry.page_of(place).0;
    let end = |frame: &FoundFrame| page(frame.first) + frame.head.pages;
    let mut ends: HashMap<u32, u32> = HashMap::new();
    for frame in frames {
        let last = ends.entry(frame.block).or_default();
        *last = end(frame).max(*last);
    }
    let is_uncertain = |frame: &&FoundFrame| {
        let complete_at = core.flash.safe_after(end(frame)) + core.flash.row_pages();
        frame.head.sequence >= durable_below
            && ends.get(&frame.block).is_some_and(|&last| complete_at > last)
    };
    frames.iter().filter(is_uncertain).map(|frame| frame.head.sequence).collect()
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
            Entry::Operation { .. } => match operation {
                Some(Operation::Resize { image, size }) => {
                    self.add_range(core, image, size..u32::MAX);
                }
                Some(Operation::Delete { image }) => self.add_range(core, image, 0..u32::MAX),
                _ => {}
            },
            Entry::Void | Entry::Leaf { .. } | Entry::Root { .. } => {}
        }
    }

    fn add_range(&mut self, core: &Core, image: ImageId, range: Range<u32>) {
        let map = core.map.borrow();
        let places = map.places_held(image, range);
        self.blocks.extend(places.map(|place| core.geometry.block_of(place)));
    }
}
