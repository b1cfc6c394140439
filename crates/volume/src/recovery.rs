//! Recovery: the newest whole root and its leaves, then the frames behind it in their order.

use crate::core::Core;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::Entry;
use crate::format::leaf;
use crate::format::operation::Operation;
use crate::format::root::Root;
use crate::format::tag::{self, Class};
use crate::image::ImageId;
use crate::leaves::LeafOwner;
use crate::walk::{self, FoundFrame};
use futures_util::future::join_all;
use softflash_base::planted::{self, Bug};
use softflash_base::{cast, checksum};
use softflash_ftl::{Hint, Inventory, Superblock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// The result of a recovery, for logs and tests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// Superblocks of the domain.
    pub superblocks: u32,
    /// The number of the root; 0 if there was none.
    pub root: u64,
    /// Leaves that were read.
    pub leaves: u32,
    /// Frames behind the root.
    pub frames: u64,
    /// Mapping units of frames that were never durable, and that the power cut destroyed.
    pub torn: u64,
    /// Frames that were durable and cannot be found any more: what they wrote is lost.
    pub lost_frames: u32,
    /// Older roots that were taken because newer ones could not be read.
    pub lost_roots: u32,
}

/// A superblock of the domain.
struct FoundSuperblock {
    superblock: Superblock,
    block: u32,
    /// None if its opening header is lost.
    tag: Option<tag::Tag>,
}

/// A recovered domain, before anything is written to it.
pub(crate) struct Recovered {
    pub report: RecoveryReport,
    /// The number of the next frame.
    pub next_sequence: u64,
    /// All frames below were durable before the power failed.
    pub durable_below: u64,
    /// Valid places whose program the power cut may have interrupted, with their data: they could
    /// be read once, and may not be again.
    pub unstable: Vec<(u32, Vec<u8>)>,
    /// Some of what was recovered may not be there the next time, or what was torn may be.
    pub is_uncertain: bool,
    /// Superblocks without valid data. What replaced their data may not be durable yet.
    pub empty: Vec<u32>,
    /// Superblocks that never held anything durable, and nothing that a recovery could use.
    pub useless: Vec<u32>,
}

/// Rebuilds the state of a domain from the superblocks of a mount. The domain is empty before.
pub(crate) async fn recover(core: &Core, inventory: &Inventory) -> Result<Recovered, VolumeError> {
    let found = superblocks(core, inventory)?;
    for found in &found {
        core.superblocks.set(found.block, found.superblock);
    }
    let mut report = RecoveryReport {
        superblocks: cast::saturating_u32(found.len()),
        ..RecoveryReport::default()
    };
    let of_map = found.iter().filter(|found| found.tag.is_none_or(|tag| tag.class == Class::Map));
    let map_frames = frames_of(core, of_map).await;
    let mut roots = newest_roots(core, &map_frames, &mut report).await;
    let fallback = if roots.len() > 1 { roots.pop() } else { None };
    let root = roots.pop();
    let root_sequence = root.as_ref().map_or(0, |(root, _)| root.sequence);
    if let Some((root, _)) = &root {
        restore(core, root, &map_frames, &mut report).await?;
    }
    let needed = found.iter().filter(|found| is_needed(found, root.as_ref().map(|(root, _)| root)));
    let mut frames = frames_of(core, needed).await;
    frames.sort_by_key(|frame| frame.head.sequence);
    let last = frames.iter().chain(&map_frames).map(|frame| frame.head.sequence).max();
    frames.retain(|frame| frame.head.sequence >= root_sequence);
    let durable_below = frames.iter().map(|frame| frame.head.durable_below).max().unwrap_or(0);
    report.lost_frames = lost_frames(core, &frames, durable_below);
    let uncertain = uncertain_frames(core, &frames, durable_below);
    let Replayed { protected, mut read } =
        replay(core, &frames, &uncertain, durable_below, &mut report).await;
    let empty = finish(core, &found, &map_frames)?;
    // The newest root may not be durable: nothing that the one before needs is let go.
    let safe = fallback.as_ref().map_or(0, |(root, _)| root.sequence);
    core.root_sequence.set(safe);
    core.root.set(report.root);
    read.retain(|(place, _)| core.map.borrow().holder(*place).is_some());
    let kept: BTreeSet<u32> =
        [&root, &fallback].into_iter().flatten().flat_map(|root| blocks_of(core, root)).collect();
    let report_is_uncertain = report.torn > 0;
    Ok(Recovered {
        report,
        next_sequence: last.map_or(1, |last| last + 1).max(root_sequence),
        durable_below: durable_below.max(root_sequence),
        is_uncertain: report_is_uncertain || !uncertain.is_empty(),
        unstable: std::mem::take(&mut read),
        useless: useless(core, &found, &kept, &protected, &empty),
        empty,
    })
}

/// The superblocks of the map that a root needs.
fn blocks_of(core: &Core, (root, parts): &(Root, Vec<u32>)) -> BTreeSet<u32> {
    let leaves = root.leaves.iter().flat_map(|stored| stored.halves);
    leaves.chain(parts.iter().copied()).map(|place| core.geometry.block_of(place)).collect()
}

/// Frames that are missing before one that was durable, as they were too then. Behind the last
/// frame of a superblock, a lost one looks like one that was never written.
fn lost_frames(core: &Core, frames: &[FoundFrame], durable_below: u64) -> u32 {
    let mut by_place: Vec<&FoundFrame> = frames.iter().collect();
    by_place.sort_by_key(|frame| frame.first);
    let mut ends: HashMap<u32, u32> = HashMap::new();
    let mut lost = 0;
    for frame in by_place {
        let start = core.geometry.page_of(frame.first).0;
        let end = ends.insert(frame.block, start + frame.head.pages);
        // Frames that are not needed any more are not in the list.
        if end.is_some_and(|end| end < start) && frame.head.sequence < durable_below {
            tracing::error!(block = frame.block, page = start, "a frame before this page is lost");
            lost += 1;
        }
    }
    lost
}

/// The numbers of frames that were not known to be durable, and behind which too few pages follow
/// to show that their programs were complete: what can be read of them now may not be later.
fn uncertain_frames(core: &Core, frames: &[FoundFrame], durable_below: u64) -> BTreeSet<u64> {
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
struct Protected {
    blocks: BTreeSet<u32>,
}

/// Superblocks that can be released at once: those of the map that no whole root needs, and those
/// without valid data that recovery does not need and that no uncertain frame has emptied. Most
/// were released before the power failed, which only their erase makes permanent.
fn useless(
    core: &Core,
    found: &[FoundSuperblock],
    kept: &BTreeSet<u32>,
    protected: &Protected,
    empty: &[u32],
) -> Vec<u32> {
    let map_blocks = core.map_blocks.borrow();
    let root = core.root_sequence.get();
    let is_useless = |block: &u32| {
        if map_blocks.contains(block) {
            return !kept.contains(block);
        }
        empty.contains(block)
            && !protected.blocks.contains(block)
            && core.superblocks.is_unpinned(*block, root)
    };
    found.iter().map(|found| found.block).filter(is_useless).collect()
}

fn superblocks(core: &Core, inventory: &Inventory) -> Result<Vec<FoundSuperblock>, VolumeError> {
    let block = |superblock: &Superblock| core.geometry.block(superblock.unit.0, superblock.index);
    let mut all = Vec::new();
    for found in &inventory.superblocks {
        let Some(tag) = tag::decode(&found.tag) else {
            let reason = format!(
                "{} has a tag of a newer version, or of another layer; use a newer softflash",
                found.superblock
            );
            return Err(VolumeError::Damaged { reason });
        };
        let superblock = found.superblock;
        all.push(FoundSuperblock { superblock, block: block(&superblock), tag: Some(tag) });
    }
    for damaged in &inventory.damaged {
        let superblock = damaged.superblock;
        all.push(FoundSuperblock { superblock, block: block(&superblock), tag: None });
    }
    Ok(all)
}

/// Whether a superblock can have frames behind a root.
fn is_needed(found: &FoundSuperblock, root: Option<&Root>) -> bool {
    let Some(tag) = found.tag else { return true };
    let Some(root) = root else { return tag.class == Class::Data };
    let Superblock { unit, index, generation } = found.superblock;
    let was_open = root
        .open
        .iter()
        .any(|open| (open.unit, open.index, open.generation) == (unit.0, index, generation));
    tag.class == Class::Data && (tag.first_sequence >= root.sequence || was_open)
}

async fn frames_of(core: &Core, found: impl Iterator<Item = &FoundSuperblock>) -> Vec<FoundFrame> {
    let walks = found.map(|found| walk::frames(core, found.superblock));
    join_all(walks).await.into_iter().flatten().collect()
}

/// Parts of a root, by number: place and checksum.
type Parts = BTreeMap<u32, (u32, u64)>;

/// Reads the newest root of which every part is whole, and the one before it, with the places of
/// their parts: the newest may not be durable.
async fn newest_roots(
    core: &Core,
    frames: &[FoundFrame],
    report: &mut RecoveryReport,
) -> Vec<(Root, Vec<u32>)> {
    let mut roots: BTreeMap<u64, (u32, Parts)> = BTreeMap::new();
    for (entry, place) in frames.iter().flat_map(FoundFrame::places) {
        if let Entry::Root { root, part, parts, checksum } = entry {
            let (whole, found) = roots.entry(root).or_default();
            *whole = parts;
            found.insert(part, (place, checksum));
        }
    }
    let mut newest = Vec::new();
    for (number, (parts, found)) in roots.into_iter().rev() {
        report.root = report.root.max(number);
        // An interrupted checkpoint leaves a root without some of its parts.
        if cast::saturating_u32(found.len()) != parts {
            continue;
        }
        match read_root(core, number, parts, &found).await {
            Some(root) => newest.push((root, found.values().map(|&(place, _)| place).collect())),
            None => {
                report.lost_roots += 1;
                tracing::error!(number, "a root cannot be read; an older one is taken");
            }
        }
        if newest.len() == 2 {
            break;
        }
    }
    newest
}

async fn read_root(core: &Core, root: u64, parts: u32, found: &Parts) -> Option<Root> {
    let mut bytes = Vec::new();
    for (&part, &(place, checksum)) in found {
        let entry = Entry::Root { root, part, parts, checksum };
        bytes.extend(read_checked(core, place, entry.seed(), checksum).await?);
    }
    Root::decode(&bytes)
}

/// Reads a mapping unit; `None` if it cannot be read, or is not what was written.
async fn read_checked(core: &Core, place: u32, seed: u64, sum: u64) -> Option<Vec<u8>> {
    let superblock = core.superblocks.handle(core.geometry.block_of(place))?;
    let (page, inside) = core.geometry.page_of(place);
    let read = core.flash.read(&superblock, page, 1, Hint::FOREGROUND).await.ok()?;
    let at = cast::index(inside) * MAPPING_UNIT_BYTES;
    let data = read.bytes.get(at..at + MAPPING_UNIT_BYTES)?;
    (checksum::checksum64(seed, data) == sum).then(|| data.to_vec())
}

/// Restores images and leaves of a root.
async fn restore(
    core: &Core,
    root: &Root,
    frames: &[FoundFrame],
    report: &mut RecoveryReport,
) -> Result<(), VolumeError> {
    let stored: HashMap<u32, [u32; 2]> =
        root.leaves.iter().map(|stored| (stored.leaf, stored.halves)).collect();
    let checksums: HashMap<u32, Entry> =
        frames.iter().flat_map(FoundFrame::places).map(|(entry, place)| (place, entry)).collect();
    {
        let mut map = core.map.borrow_mut();
        map.images = root.images.clone();
        for (image, contents) in root.images.iter() {
            for (position, leaf) in (0..).zip(&contents.leaves) {
                let Some(leaf) = *leaf else { continue };
                let owner = LeafOwner { image, position };
                map.restore_leaf(leaf, owner, stored.get(&leaf).copied());
            }
        }
    }
    for stored in &root.leaves {
        report.leaves += 1;
        for (half, &place) in (0..).zip(&stored.halves) {
            let entry = checksums.get(&place).copied();
            let whole = match entry.and_then(Entry::checksum) {
                Some(sum) => {
                    let seed = Entry::Leaf { leaf: stored.leaf, half, checksum: sum }.seed();
                    read_checked(core, place, seed, sum).await
                }
                None => None,
            };
            let Some(bytes) = whole else {
                let leaf = stored.leaf;
                return Err(VolumeError::Damaged {
                    reason: format!("half {half} of leaf {leaf} of the map cannot be read"),
                });
            };
            let mut map = core.map.borrow_mut();
            let mut possible = true;
            leaf::decode(half, &bytes, |at, place, checksum| {
                possible &= map.restore(stored.leaf, at, place, checksum);
            });
            if !possible {
                let reason = format!("leaf {} names places that do not exist", stored.leaf);
                return Err(VolumeError::Damaged { reason });
            }
        }
    }
    Ok(())
}

/// Applies the frames behind the root in their order. Data that were never durable are compared
/// with their checksums first: a power cut may have torn them.
async fn replay(
    core: &Core,
    frames: &[FoundFrame],
    uncertain: &BTreeSet<u64>,
    durable_below: u64,
    report: &mut RecoveryReport,
) -> Replayed {
    let mut replayed = Replayed::default();
    for frame in frames {
        report.frames += 1;
        for (entry, place) in frame.places() {
            let seed = match entry {
                Entry::Data { image, lba, .. } | Entry::Moved { image, lba, .. } => {
                    core.map.borrow().seed_of(image, lba)
                }
                entry => entry.seed(),
            };
            let was_durable = frame.head.sequence < durable_below;
            let check = !was_durable && !planted::bug(Bug::TornUnitsTaken)
                || matches!(entry, Entry::Operation { .. });
            let data = match entry.checksum() {
                Some(sum) if check => match read_checked(core, place, seed, sum).await {
                    Some(data) => data,
                    None if was_durable => {
                        tracing::error!(block = frame.block, "an operation cannot be read");
                        report.lost_frames += 1;
                        continue;
                    }
                    None => {
                        report.torn += 1;
                        continue;
                    }
                },
                _ => Vec::new(),
            };
            let is_uncertain = uncertain.contains(&frame.head.sequence);
            if is_uncertain {
                replayed.protected.add(core, entry, &data);
            }
            apply(core, frame, entry, place, &data);
            if is_uncertain && matches!(entry, Entry::Data { .. } | Entry::Moved { .. }) {
                replayed.read.push((place, data));
            }
        }
    }
    replayed
}

/// What a replay has learned of uncertain frames.
#[derive(Default)]
struct Replayed {
    protected: Protected,
    /// Places of their data, with the data.
    read: Vec<(u32, Vec<u8>)>,
}

impl Protected {
    /// An uncertain entry is about to be applied.
    fn add(&mut self, core: &Core, entry: Entry, data: &[u8]) {
        match entry {
            Entry::Data { image, lba, .. } | Entry::Moved { image, lba, .. } => {
                self.add_range(core, image, lba..lba.saturating_add(1));
            }
            Entry::Discard { image, lba, count } => {
                self.add_range(core, image, lba..lba.saturating_add(count));
            }
            Entry::Operation { bytes, .. } => match operation(data, bytes) {
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

fn operation(data: &[u8], bytes: u32) -> Option<Operation> {
    data.get(..cast::index(bytes)).and_then(Operation::decode)
}

fn apply(core: &Core, frame: &FoundFrame, entry: Entry, place: u32, data: &[u8]) {
    let mut map = core.map.borrow_mut();
    match entry {
        Entry::Data { image, lba, checksum } => {
            if map.write(image, lba, place, checksum) {
                core.superblocks.pin(frame.block, frame.head.sequence);
            }
        }
        Entry::Moved { image, lba, checksum } => map.write_moved(image, lba, place, checksum),
        Entry::Discard { image, lba, count } => {
            map.discard(image, lba, count);
            core.superblocks.pin(frame.block, frame.head.sequence);
        }
        Entry::Operation { bytes, .. } => {
            match operation(data, bytes) {
                Some(operation) => map.apply(&operation),
                None => tracing::error!("an operation is not decodable; it is left out"),
            }
            core.superblocks.pin(frame.block, frame.head.sequence);
        }
        Entry::Void | Entry::Leaf { .. } | Entry::Root { .. } => {}
    }
}

/// Completes the map, and gives every superblock its state. Returns those without valid data.
fn finish(
    core: &Core,
    found: &[FoundSuperblock],
    map_frames: &[FoundFrame],
) -> Result<Vec<u32>, VolumeError> {
    let mut map = core.map.borrow_mut();
    map.recovered().map_err(|place| VolumeError::Damaged {
        reason: format!("two mapping units are at place {place}"),
    })?;
    let holds_map = |block: u32| {
        map_frames.iter().any(|frame| {
            frame.block == block
                && frame
                    .head
                    .entries
                    .iter()
                    .any(|entry| matches!(entry, Entry::Leaf { .. } | Entry::Root { .. }))
        })
    };
    let mut by_age: Vec<&FoundSuperblock> = found.iter().collect();
    by_age.sort_by_key(|found| found.tag.map_or(0, |tag| tag.first_sequence));
    let mut map_blocks = Vec::new();
    let mut empty = Vec::new();
    for found in by_age {
        let class = found.tag.map(|tag| tag.class);
        if class == Some(Class::Map) || class.is_none() && holds_map(found.block) {
            map_blocks.push(found.block);
        } else if map.blocks.valid_in(found.block) == 0 {
            empty.push(found.block);
        } else {
            let number = core.frontiers.next_closed(core.geometry.unit_of(found.block));
            map.blocks.close(found.block, number);
        }
    }
    *core.map_blocks.borrow_mut() = map_blocks;
    Ok(empty)
}
