//! Half of a leaf that cannot be read is made again from the heads of the frames before the root:
//! each names the mapping units in it, and the newest frame that names one counts. Frames that the
//! root has made needless may be gone, those of discards above all, so the result is a guess. The
//! checksum of the half proves it.

use super::leaves::Half;
use crate::core::Core;
use crate::domain_map::{Found, HOLE, UNSET, low};
use crate::format::entry::Entry;
use crate::format::leaf::{self, HALF_ENTRIES, LEAF_UNITS};
use crate::frame_scan::FoundFrame;
use crate::image::{ImageId, Role};
use crate::leaves::LeafOwner;
use crate::writer::is_whole;
use softflash_base::cast;
use std::collections::HashMap;

/// The entries of frames that concern some halves, by half: only these are kept of all heads of a
/// domain.
pub(super) struct Heads {
    of: HashMap<(ImageId, u32), Vec<Named>>,
}

/// An entry of a frame, with the number of the frame and the slot of its data.
struct Named {
    sequence: u64,
    entry: Entry,
    slot: u32,
}

impl Heads {
    /// Of these halves, without any entries.
    pub fn of(core: &Core, halves: &[Half]) -> Heads {
        let map = core.map.borrow();
        let owned = halves.iter().filter_map(|half| {
            let LeafOwner { image, position } = map.leaves.get(half.leaf).owner?;
            Some(((image, number(position, half.half)), Vec::new()))
        });
        Heads { of: owned.collect() }
    }

    /// Keeps the entries of a frame that concern one of the halves.
    pub fn keep(&mut self, frame: &FoundFrame) {
        let sequence = frame.head.sequence;
        for (entry, slot) in frame.slots() {
            let (image, first, count) = match entry {
                Entry::Data { image, lba, .. } | Entry::Moved { image, lba, .. } => (image, lba, 1),
                Entry::Discard { image, lba, count } => (image, lba, count),
                _ => continue,
            };
            let last = first.saturating_add(count.saturating_sub(1));
            for half in first / HALF_ENTRIES..=last / HALF_ENTRIES {
                if let Some(named) = self.of.get_mut(&(image, half)) {
                    named.push(Named { sequence, entry, slot });
                }
            }
        }
    }

    /// The bytes of a half, if the entries in the order of their frames give those that its
    /// checkpoint wrote.
    pub fn rebuild(&mut self, core: &Core, half: &Half) -> Option<Vec<u8>> {
        let checksum = half.checksum?;
        let owner = core.map.borrow().leaves.get(half.leaf).owner?;
        let mut named = self.of.remove(&(owner.image, number(owner.position, half.half)))?;
        named.sort_by_key(|named| named.sequence);
        let mut guess = Guess::new(core, half.half, owner)?;
        named.iter().for_each(|named| guess.follow(named.entry, named.slot));
        let bytes = leaf::encode(half.half, |at| guess.entry(at));
        is_whole(half.seed(), &bytes, checksum).then_some(bytes)
    }
}

/// The number of a half in its image.
fn number(position: u32, half: u32) -> u32 {
    position * (LEAF_UNITS / HALF_ENTRIES) + half
}

/// The entries of a half as frames have made them.
struct Guess<'a> {
    core: &'a Core,
    image: ImageId,
    parent: Option<ImageId>,
    /// The number of the first entry in the leaf, and its mapping unit in the image.
    first: u32,
    lba: u32,
    /// Slots, or marks, with the checksums of the data.
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
    fn follow(&mut self, entry: Entry, slot: u32) {
        match entry {
            Entry::Data { image, lba, checksum } | Entry::Moved { image, lba, checksum }
                if image == self.image =>
            {
                let at = lba.checked_sub(self.lba).map(cast::index);
                if let Some(entry) = at.and_then(|at| self.entries.get_mut(at)) {
                    *entry = (slot, low(checksum));
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
