//! Half of a leaf that cannot be read is made again from the heads of the frames before the root:
//! each names the mapping units in it, and the newest frame that names one counts. Frames that the
//! root has made needless may be gone, those of discards above all, so the result is a guess. The
//! checksum of the half proves it.

use super::leaves::Half;
use crate::core::Core;
use crate::domain_map::{Found, HOLE, UNSET, low};
use crate::format::entry::Entry;
use crate::format::leaf::{self, HALF_ENTRIES, LEAF_UNITS};
use crate::image::{ImageId, Role};
use crate::leaves::LeafOwner;
use crate::walk::FoundFrame;
use crate::writer::is_whole;
use softflash_base::cast;

/// The bytes of a half, if the frames before the root, which are in the order of their numbers,
/// give those that its checkpoint wrote.
pub(super) fn rebuild(core: &Core, half: &Half, frames: &[FoundFrame]) -> Option<Vec<u8>> {
    let checksum = half.checksum?;
    let owner = core.map.borrow().leaves.get(half.leaf).owner?;
    let mut guess = Guess::new(core, half.half, owner)?;
    for frame in frames {
        frame.places().for_each(|(entry, place)| guess.follow(entry, place));
    }
    let bytes = leaf::encode(half.half, |at| guess.entry(at));
    is_whole(half.seed(), &bytes, checksum).then_some(bytes)
}

/// The entries of a half as frames have made them.
struct Guess<'a> {
    core: &'a Core,
    image: ImageId,
    parent: Option<ImageId>,
    /// The number of the first entry in the leaf, and its mapping unit in the image.
    first: u32,
    lba: u32,
    /// Places, or marks, with the checksums of the data.
    entries: Vec<(u32, u32)>,
}

impl<'a> Guess<'a> {
    fn new(core: &'a Core, half: u32, owner: LeafOwner) -> Option<Guess<'a>> {
        let map = core.map.borrow();
        let parent = match map.images.get(owner.image)?.role {
            Role::Volume { parent } => parent,
            Role::Snapshot { .. } => None,
        };
        let first = half * HALF_ENTRIES;
        let lba = owner.position * LEAF_UNITS + first;
        let entries = vec![(UNSET, 0); cast::index(HALF_ENTRIES)];
        Some(Guess { core, image: owner.image, parent, first, lba, entries })
    }

    /// Applies an entry of the next frame.
    fn follow(&mut self, entry: Entry, place: u32) {
        match entry {
            Entry::Data { image, lba, checksum } | Entry::Moved { image, lba, checksum }
                if image == self.image =>
            {
                let at = lba.checked_sub(self.lba).map(cast::index);
                if let Some(entry) = at.and_then(|at| self.entries.get_mut(at)) {
                    *entry = (place, low(checksum));
                }
            }
            Entry::Discard { image, lba, count } if image == self.image => {
                let end = lba.saturating_add(count);
                for at in 0..HALF_ENTRIES {
                    if (lba..end).contains(&(self.lba + at)) {
                        self.discard(at);
                    }
                }
            }
            _ => {}
        }
    }

    /// As a discard of a volume: what its parent would show is hidden by a mark.
    fn discard(&mut self, at: u32) {
        let shows = |parent| self.core.map.borrow().find(parent, self.lba + at) != Found::Zeros;
        let entry = &mut self.entries[cast::index(at)];
        *entry = match (entry.0, self.parent) {
            (_, None) => (UNSET, 0),
            (UNSET, Some(parent)) if !shows(parent) => (UNSET, 0),
            _ => (HOLE, 0),
        };
    }

    /// An entry by its number in the leaf.
    fn entry(&self, at: u32) -> (u32, u32) {
        self.entries[cast::index(at - self.first)]
    }
}
