//! The leaves of a root: read from one of their copies, or made again from the heads of frames
//! where none can be read.

use super::found::{FoundSuperblock, frames_of, holds_data};
use super::handed_over::HandedOver;
use super::rebuild::Heads;
use super::report::RecoveryReport;
use crate::core::Core;
use crate::domain_map::{LOST, UNSET, low, zeros};
use crate::error::VolumeError;
use crate::format::entry::Entry;
use crate::format::leaf::{self, HALF_ENTRIES, LEAF_UNITS};
use crate::format::root::{Root, StoredHalf, StoredLeaf};
use crate::frame_scan::{self, FoundFrame, read_unit};
use crate::leaves::LeafOwner;
use crate::writer::is_whole;
use futures_util::future::join_all;
use softflash_base::cast;
use softflash_base::checksum::checksum64;
use softflash_base::planted::{self, Bug};
use softflash_ftl::Superblock;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Leaves that are read at a time.
const LEAVES_TOGETHER: usize = 64;
/// Superblocks whose heads are read at a time.
const SUPERBLOCKS_TOGETHER: usize = 32;

/// Restores images and leaves of a root. Mapping units of leaves that cannot be restored are lost.
pub(super) async fn restore(
    core: &Core,
    root: &Root,
    map_frames: &[FoundFrame],
    found: &[FoundSuperblock],
    report: &mut RecoveryReport,
) -> Result<(), VolumeError> {
    let handed_over = HandedOver::since(core, root);
    handed_over.check_root(core, root)?;
    name_owners(core, root);
    // Data in other superblocks are lost or have moved since.
    let older = found.iter().filter(|found| found.holds_data_of(root.sequence));
    let older = Older { blocks: older.map(|found| found.block).collect(), handed_over };
    let unreadable = read_all(core, root, map_frames, &older, report).await;
    older.handed_over.check()?;
    if unreadable.is_empty() {
        return Ok(());
    }
    let mut heads = Heads::of(core, &unreadable);
    // The heads of all superblocks at once would take much memory.
    let of_data: Vec<&FoundSuperblock> = found.iter().filter(|found| holds_data(found)).collect();
    for together in of_data.chunks(SUPERBLOCKS_TOGETHER) {
        let frames = frames_of(core, together.iter().copied()).await;
        let before = frames.iter().filter(|frame| frame.head.sequence < root.sequence);
        before.for_each(|frame| heads.keep(frame));
    }
    for half in unreadable {
        let Half { leaf, half: number, .. } = half;
        match heads.rebuild(core, &half) {
            Some(bytes) if half.restore(core, &older, &bytes) => {
                report.rebuilt_halves += 1;
                tracing::warn!(leaf, half = number, "half of a leaf is rebuilt from the frames");
            }
            _ => {
                let units = half.lose(core);
                report.lost_halves += 1;
                tracing::error!(leaf, half = number, units, "half of a leaf of the map is lost");
            }
        }
        // The next recovery may not find the frames.
        core.map.borrow_mut().touch(leaf);
    }
    older.handed_over.check()
}

/// Gives the leaves to the images that hold them.
fn name_owners(core: &Core, root: &Root) {
    let stored: HashMap<u32, [StoredHalf; 2]> =
        root.leaves.iter().map(|stored| (stored.leaf, stored.halves)).collect();
    let mut map = core.map.borrow_mut();
    map.images = root.images.clone();
    map.pair = root.pair.clone();
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
    older: &Older,
    report: &mut RecoveryReport,
) -> Vec<Half> {
    // Older roots have no checksums of leaves.
    let checksum_at = match root.change {
        Some(_) => HashMap::new(),
        None => checksums(map_frames),
    };
    let mut unreadable = Vec::new();
    // Older roots name leaves that no image holds.
    let is_held = |stored: &&StoredLeaf| core.map.borrow().leaves.is_held(stored.leaf);
    let held: Vec<StoredLeaf> = root.leaves.iter().filter(is_held).copied().collect();
    for together in held.chunks(LEAVES_TOGETHER) {
        let numbered = together.iter().flat_map(|stored| {
            (0..).zip(stored.halves).map(|(half, on_flash)| (stored.leaf, half, on_flash))
        });
        let halves = numbered.map(|(leaf, half, stored)| {
            let own = root.change.map(|_| stored.checksum);
            let of_frame = || checksum_at.get(&(leaf, half, stored.slot)).copied();
            Half { leaf, half, stored, checksum: own.or_else(of_frame) }
        });
        let halves: Vec<Half> = halves.collect();
        let reads = join_all(halves.iter().map(|half| half.read(core))).await;
        for (half, read) in halves.into_iter().zip(reads) {
            match read {
                Some((_, bytes)) if !half.restore(core, older, &bytes) => unreadable.push(half),
                Some((Copy::First, _)) => {}
                Some((Copy::Second, _)) => {
                    tracing::warn!(leaf = half.leaf, half = half.half, "a leaf has lost a copy");
                    report.copied_halves += 1;
                    core.map.borrow_mut().touch(half.leaf);
                }
                None => unreadable.push(half),
            }
        }
        report.leaves += cast::saturating_u32(together.len());
    }
    unreadable
}

/// The lower halves of the checksums of leaves as the heads of frames have them, by leaf, half and
/// slot.
fn checksums(map_frames: &[FoundFrame]) -> HashMap<(u32, u32, u32), u32> {
    let slots = map_frames.iter().flat_map(FoundFrame::slots);
    let leaves = slots.filter_map(|(entry, slot)| match entry {
        Entry::Leaf { leaf, half, checksum } => Some(((leaf, half, slot), low(checksum))),
        _ => None,
    });
    leaves.collect()
}

/// The leaves of the durable root of which copies of halves cannot be read, or are in a frame that
/// has lost its head, once for each copy.
pub(crate) async fn damaged_copies(core: &Core) -> Vec<u32> {
    let stored: Vec<(u32, [StoredHalf; 2])> = {
        let map = core.map.borrow();
        let leaves = map.leaves.numbered().filter(|(_, leaf)| leaf.owner.is_some());
        leaves.filter_map(|(leaf, state)| Some((leaf, state.stored?))).collect()
    };
    let with_head = slots_with_head(core, &stored).await;
    let mut damaged = Vec::new();
    for together in stored.chunks(LEAVES_TOGETHER) {
        let halves = together.iter().flat_map(|&(leaf, halves)| {
            let half = move |(half, stored): (u32, StoredHalf)| {
                let half = Half { leaf, half, stored, checksum: Some(stored.checksum) };
                stored.slots().map(move |slot| (half, slot))
            };
            (0..).zip(halves).flat_map(half)
        });
        let copies: Vec<(Half, u32)> = halves.collect();
        let reads = copies.iter().map(|(half, slot)| half.read_at(core, *slot));
        for ((half, slot), read) in copies.iter().zip(join_all(reads).await) {
            if read.is_none() || !with_head.contains(&(half.leaf, half.half, *slot)) {
                damaged.push(half.leaf);
            }
        }
    }
    damaged
}

/// The halves of these leaves, with leaf, half and slot, that heads of frames name.
async fn slots_with_head(
    core: &Core,
    stored: &[(u32, [StoredHalf; 2])],
) -> HashSet<(u32, u32, u32)> {
    let slots = stored.iter().flat_map(|(_, halves)| halves.iter().flat_map(|half| half.slots()));
    let blocks: BTreeSet<u32> = slots.map(|slot| core.geometry.block_of(slot)).collect();
    let superblocks = blocks.into_iter().filter_map(|block| core.superblocks.handle(block));
    let superblocks: Vec<Superblock> = superblocks.collect();
    let mut named = HashSet::new();
    // The heads of all superblocks at once would take much memory.
    for together in superblocks.chunks(SUPERBLOCKS_TOGETHER) {
        let scans = together.iter().map(|superblock| frame_scan::frames(core, *superblock));
        let frames: Vec<FoundFrame> = join_all(scans).await.into_iter().flatten().collect();
        named.extend(checksums(&frames).into_keys());
    }
    named
}

/// The superblocks that can hold the data that a root names.
struct Older {
    blocks: BTreeSet<u32>,
    handed_over: HandedOver,
}

/// The copy of a half that was read.
enum Copy {
    First,
    Second,
}

/// One half of a leaf on the flash.
#[derive(Clone, Copy)]
pub(super) struct Half {
    pub leaf: u32,
    pub half: u32,
    stored: StoredHalf,
    /// The lower half of its checksum. None if the root has none, and the frame has lost its head.
    pub checksum: Option<u32>,
}

impl Half {
    /// Seeds the checksum of its bytes.
    pub fn seed(&self) -> u64 {
        Entry::Leaf { leaf: self.leaf, half: self.half, checksum: 0 }.seed()
    }

    /// Its bytes, from the first copy that is as the checkpoint wrote it.
    async fn read(&self, core: &Core) -> Option<(Copy, Vec<u8>)> {
        let mut copy = Copy::First;
        for slot in self.stored.slots() {
            if let Some(bytes) = self.read_at(core, slot).await {
                return Some((copy, bytes));
            }
            copy = Copy::Second;
        }
        None
    }

    async fn read_at(&self, core: &Core, slot: u32) -> Option<Vec<u8>> {
        let bytes = read_unit(core, slot).await?;
        let is_right = is_whole(self.seed(), &bytes, self.checksum?);
        (is_right || planted::bug(Bug::LeafOfOtherLife)).then_some(bytes)
    }

    /// Sets its entries; returns false, and sets none, if some of them cannot be. Data in other
    /// superblocks than the `older` ones are lost.
    fn restore(&self, core: &Core, older: &Older, bytes: &[u8]) -> bool {
        let mut map = core.map.borrow_mut();
        let mut possible = true;
        leaf::decode(self.half, bytes, |_, slot, _| {
            older.handed_over.note(core, core.geometry.block_of(slot));
            possible &= map.is_possible(slot);
        });
        if !possible {
            return false;
        }
        if let Some(stored) = &mut map.leaves.get_mut(self.leaf).stored {
            stored[cast::index(self.half)].checksum = low(checksum64(self.seed(), bytes));
        }
        let slots = core.geometry.slots();
        let mut has_lost = false;
        leaf::decode(self.half, bytes, |at, slot, checksum| {
            let is_there = slot >= slots || older.blocks.contains(&core.geometry.block_of(slot));
            has_lost |= !is_there;
            map.restore(self.leaf, at, if is_there { slot } else { LOST }, checksum);
        });
        if has_lost {
            // A later root would take the superblock that is there now for the one that was named.
            map.touch(self.leaf);
        }
        true
    }

    /// Lets reads of all its mapping units fail; returns how many they are. Beyond the end of a
    /// clone are zeros: a clone that inherited there would show data of its parent once it is
    /// larger.
    fn lose(&self, core: &Core) -> u32 {
        let mut map = core.map.borrow_mut();
        let Some(LeafOwner { image, position }) = map.leaves.get(self.leaf).owner else {
            return 0;
        };
        let Some(image) = map.images.get(image) else { return 0 };
        let beyond = if image.is_volume() { zeros(image) } else { UNSET };
        let inside = image.size.saturating_sub(position * LEAF_UNITS);
        let entries = self.half * HALF_ENTRIES..(self.half + 1) * HALF_ENTRIES;
        let end = inside.clamp(entries.start, entries.end);
        (entries.start..end).for_each(|at| map.restore(self.leaf, at, LOST, 0));
        (end..entries.end).for_each(|at| map.restore(self.leaf, at, beyond, 0));
        end - entries.start
    }
}
