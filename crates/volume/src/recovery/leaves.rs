//! The leaves of a root: read from the flash, or made again from the heads of frames where they
//! cannot be read.

use super::rebuild::rebuild;
use super::{FoundSuperblock, RecoveryReport, frames_of, holds_data};
use crate::core::Core;
use crate::domain_map::LOST;
use crate::format::entry::Entry;
use crate::format::leaf::{self, HALF_ENTRIES, LEAF_UNITS};
use crate::format::root::Root;
use crate::leaves::LeafOwner;
use crate::walk::{FoundFrame, read_checked};
use futures_util::future::join_all;
use softflash_base::cast;
use std::collections::HashMap;

/// Leaves that are read at a time.
const LEAVES_TOGETHER: usize = 64;

/// Restores images and leaves of a root.
pub(super) async fn restore(
    core: &Core,
    root: &Root,
    map_frames: &[FoundFrame],
    found: &[FoundSuperblock],
    report: &mut RecoveryReport,
) {
    name_owners(core, root);
    let lost = read_all(core, root, map_frames, report).await;
    if lost.is_empty() {
        return;
    }
    let mut frames = frames_of(core, found.iter().filter(|found| holds_data(found))).await;
    frames.retain(|frame| frame.head.sequence < root.sequence);
    frames.sort_by_key(|frame| frame.head.sequence);
    for half in lost {
        let Half { leaf, half: number, .. } = half;
        match rebuild(core, &half, &frames) {
            Some(bytes) if half.restore(core, &bytes) => {
                report.rebuilt_halves += 1;
                tracing::warn!(leaf, half = number, "half of a leaf is rebuilt from the frames");
            }
            _ => {
                let units = half.lose(core);
                report.lost_halves += 1;
                report.lost_units += u64::from(units);
                tracing::error!(leaf, half = number, units, "half of a leaf of the map is lost");
            }
        }
        // The next recovery may not find the frames.
        core.map.borrow_mut().touch(leaf);
    }
}

/// Gives the leaves to the images that hold them.
fn name_owners(core: &Core, root: &Root) {
    let stored: HashMap<u32, [u32; 2]> =
        root.leaves.iter().map(|stored| (stored.leaf, stored.halves)).collect();
    let mut map = core.map.borrow_mut();
    map.images = root.images.clone();
    let leaves = root.images.iter().flat_map(|(_, image)| image.leaves.iter().flatten());
    map.grow(leaves.max().map_or(0, |&last| last + 1));
    for (image, contents) in root.images.iter() {
        for (position, leaf) in (0..).zip(&contents.leaves) {
            let Some(leaf) = *leaf else { continue };
            let owner = LeafOwner { image, position };
            map.restore_leaf(leaf, owner, stored.get(&leaf).copied());
        }
    }
}

/// Reads all leaves; returns the halves that cannot be read.
async fn read_all(
    core: &Core,
    root: &Root,
    map_frames: &[FoundFrame],
    report: &mut RecoveryReport,
) -> Vec<Half> {
    let mut entries: Vec<(Entry, u32)> = map_frames.iter().flat_map(FoundFrame::places).collect();
    entries.sort_unstable_by_key(|&(_, place)| place);
    let checksum_at = |leaf: u32, half: u32, place: u32| {
        let found = entries.binary_search_by_key(&place, |&(_, place)| place).ok()?;
        match entries[found].0 {
            Entry::Leaf { leaf: of, half: part, checksum } if (of, part) == (leaf, half) => {
                Some(checksum)
            }
            _ => None,
        }
    };
    let mut lost = Vec::new();
    for together in root.leaves.chunks(LEAVES_TOGETHER) {
        let halves = together.iter().flat_map(|stored| {
            let leaf = stored.leaf;
            (0..).zip(stored.halves).map(move |(half, place)| (leaf, half, place))
        });
        let halves: Vec<Half> = halves
            .map(|(leaf, half, place)| Half {
                leaf,
                half,
                place,
                checksum: checksum_at(leaf, half, place),
            })
            .collect();
        let reads = join_all(halves.iter().map(|half| half.read(core))).await;
        for (half, bytes) in halves.into_iter().zip(reads) {
            if !bytes.is_some_and(|bytes| half.restore(core, &bytes)) {
                lost.push(half);
            }
        }
        report.leaves += cast::saturating_u32(together.len());
    }
    lost
}

/// One half of a leaf on the flash.
pub(super) struct Half {
    pub leaf: u32,
    pub half: u32,
    place: u32,
    /// None if the frame that holds it has lost its head.
    pub checksum: Option<u64>,
}

impl Half {
    /// Seeds the checksum of its bytes.
    pub fn seed(&self) -> u64 {
        Entry::Leaf { leaf: self.leaf, half: self.half, checksum: 0 }.seed()
    }

    /// Its bytes, if they are those that its checkpoint wrote.
    async fn read(&self, core: &Core) -> Option<Vec<u8>> {
        read_checked(core, self.place, self.seed(), self.checksum?).await
    }

    /// Sets its entries; returns false, and sets none, if some of them cannot be.
    fn restore(&self, core: &Core, bytes: &[u8]) -> bool {
        let mut map = core.map.borrow_mut();
        let mut possible = true;
        leaf::decode(self.half, bytes, |_, place, _| possible &= map.is_possible(place));
        if possible {
            leaf::decode(self.half, bytes, |at, place, checksum| {
                map.restore(self.leaf, at, place, checksum);
            });
        }
        possible
    }

    /// Lets reads of all its mapping units fail; returns how many they are.
    fn lose(&self, core: &Core) -> u32 {
        let mut map = core.map.borrow_mut();
        let Some(LeafOwner { image, position }) = map.leaves.get(self.leaf).owner else {
            return 0;
        };
        let size = map.images.get(image).map_or(0, |image| image.size);
        let inside = size.saturating_sub(position * LEAF_UNITS);
        let entries = self.half * HALF_ENTRIES..(self.half + 1) * HALF_ENTRIES;
        let entries = entries.start..entries.end.min(inside);
        let units = cast::saturating_u32(entries.len());
        entries.for_each(|at| map.restore(self.leaf, at, LOST, 0));
        units
    }
}
