//! Checkpoints: the leaves that have changed, and a root that names all leaves and images. Recovery
//! starts there, so superblocks that only older roots needed are released.

use crate::core::{Core, Shared};
use crate::domain_map::low;
use crate::error::VolumeError;
use crate::flusher::flush;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::Entry;
use crate::format::root::{NO_COPY, OpenSuperblock, Root, StoredHalf, StoredLeaf, UnitMark, parts};
use crate::frames::Completion;
use crate::frontier::{self, Appended};
use crate::image::Images;
use crate::map_space::checkpoint_units;
use crate::open_frame::OpenFrame;
use crate::releases::{release, release_unneeded};
use crate::stream::Stream;
use crate::writer::{Sent, send, unit_for};
use softflash_base::planted::{self, Bug};
use softflash_base::random::Rng;
use softflash_base::{IoBuf, cast, checksum};
use softflash_ftl::{Hint, Superblock};
use softflash_policy::VictimPolicy;
use softflash_policy::victim::{self, Candidates, NOT_CLOSED};
use std::collections::BTreeMap;

/// Returns when a checkpoint is durable that holds everything written so far.
pub(crate) async fn checkpoint(core: &Shared) -> Result<(), VolumeError> {
    core.tasks.checkpoint().await
}

/// Makes checkpoints until the domain is stopped.
pub(crate) async fn run(core: Shared) {
    let make = async || {
        core.order.works().await;
        try_make(&core).await
    };
    core.tasks.serve_checkpoints(make).await;
}

/// Makes a checkpoint. If it fails, the next one writes all that this one would have written.
pub(crate) async fn try_make(core: &Shared) -> Result<(), VolumeError> {
    let entries = core.roots.entries();
    let result = make(core).await;
    core.roots.note(result.is_err());
    if let Err(error) = &result {
        if !planted::bug(Bug::FailedCheckpointCounts) {
            core.map.borrow_mut().thaw();
        }
        core.roots.count_entries(entries);
        // Nothing that waits for this root can be released now.
        core.space.notify();
        tracing::warn!(%error, "a checkpoint was not made; the one before stays");
    }
    result
}

/// Makes the checkpoint of a mount, which opens a superblock of the map. Where the map takes too
/// much space, a second checkpoint writes the leaves of sparse superblocks again: mounts that a
/// power cut ends soon would use up the space otherwise.
pub(crate) async fn make_of_mount(core: &Shared) -> Result<(), VolumeError> {
    make(core).await?;
    if core.roots.is_sparse() {
        // The root that was made is enough to go on.
        drop(try_make(core).await);
    }
    Ok(())
}

/// Makes a checkpoint.
pub(crate) async fn make(core: &Shared) -> Result<(), VolumeError> {
    // The map lacks an operation that is being written, and the root would hide its frame.
    if !planted::bug(Bug::GatePassed) {
        core.order.opened().await;
    }
    // From here to the first wait, nothing changes: this is the state that the root describes.
    let (sequence, change) = (core.order.next_frame(), core.order.next_change());
    core.roots.restart_count();
    let (frozen, images, pair) = {
        let mut map = core.map.borrow_mut();
        let frozen = map.freeze();
        let (held, given_back): (Vec<u32>, Vec<u32>) =
            frozen.into_iter().partition(|&leaf| map.leaves.is_held(leaf));
        given_back.into_iter().for_each(|leaf| drop(map.take_frozen(leaf)));
        (held, map.images.clone(), map.pair.clone())
    };
    let mut leaves = stored_leaves(core, &images);
    let open = open_superblocks(core);

    let mut writer = MapWriter::twice(core);
    let mut stored = BTreeMap::new();
    for leaf in frozen {
        let halves = core.map.borrow_mut().take_frozen(leaf);
        let mut numbered = [(0, 0); 2];
        for (half, bytes) in (0..).zip(&halves) {
            let unsummed = Entry::Leaf { leaf, half, checksum: 0 };
            let checksum = checksum::checksum64(unsummed.seed(), bytes);
            let number = writer.add(Entry::Leaf { leaf, half, checksum }, bytes).await?;
            numbered[cast::index(half)] = (number, low(checksum));
        }
        stored.insert(leaf, numbered);
    }
    // Slots are known when their frames are appended.
    let slots = writer.finish().await?;
    let resolve = |(number, checksum)| {
        let (slot, copy) = slots[cast::index(number)];
        StoredHalf { slot, copy, checksum }
    };
    for (leaf, numbered) in stored {
        leaves.insert(leaf, numbered.map(resolve));
    }
    let leaves: Vec<StoredLeaf> =
        leaves.into_iter().map(|(leaf, halves)| StoredLeaf { leaf, halves }).collect();

    // The root may name data and leaves only when they are durable.
    flush(core).await?;
    let previous = Some(core.roots.durable());
    let units = unit_marks(core);
    let unit_slots = core.geometry.unit_slots.named();
    let change = Some(change);
    let root = Root { sequence, images, leaves, open, previous, change, units, unit_slots, pair };
    let under_way = core.order.begin_root();
    let root_slots = write_root(core, &root).await?;
    assert!(root.sequence <= core.order.next_frame(), "a root of frames that were not appended");
    let end = core.order.next_frame();
    flush(core).await?;
    drop(under_way);
    if !core.order.root_flushed(root.sequence, end) {
        let reason = "a frame behind the root could not be written".to_owned();
        return Err(VolumeError::Damaged { reason });
    }
    let proofs = prove(core).await?;
    core.count(|counters| counters.checkpoints += 1);
    change.into_iter().for_each(|change| core.order.covered_below(change));
    adopt(core, &root, &root_slots, &proofs);
    Ok(())
}

/// Writes empty frames, on two units if there are, whose heads say that the root is durable, and
/// makes them durable: only then may be released what the root before needs. Returns their blocks.
pub(crate) async fn prove(core: &Shared) -> Result<Vec<u32>, VolumeError> {
    let mut blocks: Vec<u32> = Vec::new();
    for _ in 0..MOST_ATTEMPTS {
        core.order.works().await;
        let avoided = blocks.last().map(|&block| core.geometry.unit_of(block));
        let Some(unit) = unit_apart(core, avoided).await? else { break };
        let mut buffer = core.flash.buffer(core.flash.page_bytes());
        buffer.fill(0);
        let completion = Completion::default();
        let stream = Stream::Map;
        let appended = frontier::append(core, unit, stream, Hint::MAP, &[], buffer, &completion);
        let Ok(appended) = appended else { continue };
        let block = appended.block;
        if frontier::end_alone(core, appended, &completion).await.is_ok() {
            blocks.push(block);
        }
        if blocks.len() == COPIES {
            break;
        }
    }
    if blocks.is_empty() {
        return Err(VolumeError::Damaged { reason: "no superblock takes the map".to_owned() });
    }
    flush(core).await?;
    Ok(blocks)
}

/// Copies of a root, and of the frame that says that it is durable.
pub(crate) const COPIES: usize = 2;

/// A unit that takes a frame of the map: another one than the avoided, or that one, if no other
/// does. Waits for space if none is to be avoided.
async fn unit_apart(core: &Shared, avoided: Option<u32>) -> Result<Option<u32>, VolumeError> {
    let Some(avoided) = avoided else {
        return Ok(Some(unit_for(core, Stream::Map, 2, None).await?.0));
    };
    let mut others = (core.geometry.numbers()).filter(|&unit| unit != avoided);
    let has_room = |unit: &u32| frontier::room(core, *unit, Stream::Map) > 1;
    let able = others.clone().find(has_room);
    let able = able.or_else(|| others.find(|&unit| takes_map(core, unit)));
    Ok(able.or_else(|| (has_room(&avoided) || takes_map(core, avoided)).then_some(avoided)))
}

/// Whether a unit has room for a frame of the map, perhaps in a superblock that is opened for it.
fn takes_map(core: &Core, unit: u32) -> bool {
    frontier::open(core, unit, Stream::Map).is_ok_and(|is_open| is_open)
}

/// The greatest generation on each unit.
fn unit_marks(core: &Core) -> Vec<UnitMark> {
    let mark = |unit| UnitMark { unit, generation: core.flash.newest_generation(unit) };
    core.geometry.units().iter().map(mark).collect()
}

/// The leaves of these images that an earlier checkpoint wrote.
fn stored_leaves(core: &Core, images: &Images) -> BTreeMap<u32, [StoredHalf; 2]> {
    let map = core.map.borrow();
    let leaves = images.iter().flat_map(|(_, image)| image.leaves.iter().flatten());
    leaves.filter_map(|&leaf| Some((leaf, map.leaves.get(leaf).stored?))).collect()
}

fn open_superblocks(core: &Core) -> Vec<OpenSuperblock> {
    let open = core.frontiers.open_for_data();
    open.iter()
        .map(|superblock| OpenSuperblock {
            unit: superblock.unit.0,
            index: superblock.index,
            generation: superblock.generation,
        })
        .collect()
}

/// Appends leaves and roots in frames.
struct MapWriter<'a> {
    core: &'a Shared,
    /// The unit for all frames, as long as it takes them.
    unit: Option<u32>,
    open_frame: Option<OpenFrame>,
    /// Whether each frame is appended a second time, to another unit if one takes it.
    is_twice: bool,
    /// The slots of each mapping unit added, once its frame is appended: that of the second one is
    /// [`NO_COPY`] without one.
    written: Vec<(u32, u32)>,
}

impl<'a> MapWriter<'a> {
    fn new(core: &'a Shared, unit: Option<u32>) -> MapWriter<'a> {
        MapWriter { core, unit, open_frame: None, is_twice: false, written: Vec::new() }
    }

    fn twice(core: &'a Shared) -> MapWriter<'a> {
        MapWriter { is_twice: true, ..MapWriter::new(core, None) }
    }

    /// Adds a mapping unit; returns its number in the list of slots.
    async fn add(&mut self, entry: Entry, data: &[u8]) -> Result<u32, VolumeError> {
        if self.open_frame.as_ref().is_some_and(OpenFrame::is_full) {
            self.send().await?;
        }
        let core = self.core;
        let mut open_frame = match self.open_frame.take() {
            Some(open_frame) => open_frame,
            None => {
                core.order.works().await;
                let own = self.unit.filter(|&unit| takes_map(core, unit));
                let unit = match own {
                    Some(unit) => unit,
                    None => unit_for(core, Stream::Map, 2, None).await?.0,
                };
                frontier::begin(core, unit, Stream::Map, core.config.frame_units)
            }
        };
        let number = self.written.len() + open_frame.len();
        open_frame.add(entry, data);
        self.open_frame = Some(open_frame);
        Ok(cast::saturating_u32(number))
    }

    /// Appends the frame that is being filled, and waits until it is programmed.
    async fn send(&mut self) -> Result<(), VolumeError> {
        let Some(open_frame) = self.open_frame.take() else { return Ok(()) };
        let Programmed { first, entries, buffer } = program(self.core, open_frame).await?;
        let copy = match (self.is_twice, buffer) {
            (true, Some(buffer)) => copy(self.core, first, buffer, entries.clone()).await,
            _ => None,
        };
        let slots = (first + 1..).take(entries.len());
        let distance = copy.map(|copy| copy.wrapping_sub(first));
        let second = |slot: u32| distance.map_or(NO_COPY, |distance| slot.wrapping_add(distance));
        self.written.extend(slots.map(|slot| (slot, second(slot))));
        Ok(())
    }

    /// The slots of all that was added.
    async fn finish(mut self) -> Result<Vec<(u32, u32)>, VolumeError> {
        self.send().await?;
        Ok(self.written)
    }
}

/// A frame of the map that is programmed.
struct Programmed {
    /// The slot of its head.
    first: u32,
    entries: Vec<Entry>,
    buffer: Option<IoBuf>,
}

/// Appends a frame and waits until it is programmed: a failed one is appended again, elsewhere.
async fn program(core: &Shared, open_frame: OpenFrame) -> Result<Programmed, VolumeError> {
    let mut next = open_frame;
    for _ in 0..MOST_ATTEMPTS {
        let Sent { mut appended, entries, .. } = send(core, next, |_| {}).await?;
        let (result, buffer) = appended.programmed(core).await;
        frontier::end(core, &appended);
        let Appended { block, first, .. } = appended;
        match (result, buffer) {
            (Ok(()), buffer) => return Ok(Programmed { first, entries, buffer }),
            (Err(error), Some(buffer)) => {
                tracing::warn!(%error, "a frame of the map is appended elsewhere");
                let unit = core.geometry.unit_of(block);
                next = OpenFrame::again(unit, buffer, entries);
            }
            (Err(error), None) => return Err(error.into()),
        }
    }
    Err(VolumeError::Damaged { reason: "no superblock takes the map".to_owned() })
}

/// Appends a frame again, to another unit if one takes it; returns the slot of its head. A map
/// without copies is whole, so this takes no space that its other frames may need, and may fail.
async fn copy(core: &Shared, first: u32, buffer: IoBuf, entries: Vec<Entry>) -> Option<u32> {
    core.order.works().await;
    let own = core.geometry.unit_of(core.geometry.block_of(first));
    let needed = cast::saturating_u32(buffer.len() / MAPPING_UNIT_BYTES);
    if !allows_copies(core, needed) {
        return None;
    }
    let has_room =
        |unit: &u32| frontier::room(core, *unit, Stream::Map) >= needed || takes_map(core, *unit);
    let others = (core.geometry.numbers()).filter(|&unit| unit != own);
    let unit = others.chain([own]).find(has_room)?;
    let copied = program(core, OpenFrame::again(unit, buffer, entries)).await;
    copied.map(|copied| copied.first).ok()
}

/// Whether a checkpoint that takes so many mapping units for copies keeps the space for the leaves
/// that it has still to write, the root, and a superblock in case that one fails.
fn allows_copies(core: &Core, units: u32) -> bool {
    let data_units = core.geometry.data_units();
    let space = |unit| {
        let free = core.free_superblocks(unit).saturating_mul(data_units);
        frontier::room(core, unit, Stream::Map).saturating_add(free)
    };
    let all = core.geometry.numbers();
    let space = all.map(space).fold(0, u32::saturating_add);
    let map = core.map.borrow();
    let left = checkpoint_units(core, &map, map.leaves.unwritten());
    let needed = left.saturating_add(data_units);
    space >= needed.saturating_add(units)
}

/// Attempts to append a frame of the map: more mean that the device is lost.
const MOST_ATTEMPTS: usize = 8;

/// Writes the copies of a root; the others are on another unit than the first, if one takes them.
/// Returns the slots of all.
async fn write_root(core: &Shared, root: &Root) -> Result<Vec<u32>, VolumeError> {
    let bytes = root.encode();
    let number = core.roots.next();
    let mut slots = Vec::new();
    let mut avoided = None;
    for _ in 0..COPIES {
        core.order.works().await;
        let Some(unit) = unit_apart(core, avoided).await? else { break };
        let copy = match write_copy(core, number, &bytes, unit).await {
            Ok(copy) => copy,
            // One copy releases the space for the next.
            Err(VolumeError::OutOfSpace { .. }) if !slots.is_empty() => break,
            Err(error) => return Err(error),
        };
        // A unit that fails leaves the copy to another one.
        avoided =
            copy.first().map(|&(slot, _)| core.geometry.unit_of(core.geometry.block_of(slot)));
        slots.extend(copy.into_iter().map(|(slot, _)| slot));
    }
    Ok(slots)
}

async fn write_copy(
    core: &Shared,
    number: u64,
    bytes: &[u8],
    unit: u32,
) -> Result<Vec<(u32, u32)>, VolumeError> {
    let parts = parts(bytes.len());
    let mut writer = MapWriter::new(core, Some(unit));
    for (part, data) in (0..).zip(bytes.chunks(MAPPING_UNIT_BYTES)) {
        let mut padded = data.to_vec();
        padded.resize(MAPPING_UNIT_BYTES, 0);
        let unsummed = Entry::Root { root: number, part, parts, checksum: 0 };
        let checksum = checksum::checksum64(unsummed.seed(), &padded);
        writer.add(Entry::Root { root: number, part, parts, checksum }, &padded).await?;
    }
    writer.finish().await
}

/// The root is durable: releases the superblocks that only an older one needed.
fn adopt(core: &Core, root: &Root, root_slots: &[u32], proofs: &[u32]) {
    assert!(!root_slots.is_empty(), "the root of frame {} is in no slot", root.sequence);
    assert!(
        !proofs.is_empty(),
        "no frame says that the root of frame {} is durable",
        root.sequence
    );
    let mut map = core.map.borrow_mut();
    let mut live = BTreeMap::new();
    let mut count = |slot: u32| *live.entry(core.geometry.block_of(slot)).or_insert(0_u32) += 1;
    root_slots.iter().for_each(|&slot| count(slot));
    for stored in &root.leaves {
        map.leaves.get_mut(stored.leaf).stored = Some(stored.halves);
        stored.halves.iter().flat_map(|half| half.slots()).for_each(&mut count);
    }
    drop(map);
    core.roots.adopt(root.sequence);
    // Also a full one in which a frame is being programmed: an empty frame, which proves the end.
    let takes_frames = |block: u32| {
        let is_open = |handle: Superblock| core.frontiers.is_open(&handle);
        core.superblocks.is_busy(block) || core.superblocks.handle(block).is_some_and(is_open)
    };
    let unneeded = core.roots.retain(|block| {
        live.contains_key(&block) || proofs.contains(&block) || takes_frames(block)
    });
    unneeded.into_iter().for_each(|block| release(core, block));
    release_unneeded(core);
    rewrite_some(core, root, &live);
}

/// Lets the next checkpoint write some leaves again: those of the superblocks with the fewest, if
/// the map takes more than twice its space, and those of superblocks that lag behind in wear.
fn rewrite_some(core: &Core, root: &Root, live: &BTreeMap<u32, u32>) {
    let blocks = |stored: &StoredLeaf| {
        let slots = stored.halves.iter().flat_map(|half| half.slots());
        slots.map(|slot| core.geometry.block_of(slot)).collect::<Vec<u32>>()
    };
    let mut halves: BTreeMap<u32, u32> = BTreeMap::new();
    root.leaves.iter().flat_map(blocks).for_each(|block| *halves.entry(block).or_default() += 1);
    let mut rewritten = sparsest(core, &halves, live.values().sum());
    core.roots.note_sparse(!rewritten.is_empty());
    rewritten.extend(lagging(core, &halves));
    if rewritten.is_empty() {
        return;
    }
    let mut map = core.map.borrow_mut();
    for stored in &root.leaves {
        if blocks(stored).iter().any(|block| rewritten.contains(block)) {
            map.touch(stored.leaf);
        }
    }
}

/// The superblocks with the fewest halves of leaves, as many as the map has more than twice the
/// space of its `slots`. The choice is greedy whatever data are collected by: all leaves are as
/// old as their last change, and a policy of ages would leave the map larger than its bound.
fn sparsest(core: &Core, halves: &BTreeMap<u32, u32>, slots: u32) -> Vec<u32> {
    let most = 2 + 2 * slots.div_ceil(core.geometry.block_units);
    let excess = core.roots.blocks().saturating_sub(most);
    let blocks: Vec<u32> = halves.keys().copied().collect();
    let counts = halves.values().map(|count| u16::try_from(*count).unwrap_or(u16::MAX));
    let mut valid: Vec<u16> = counts.map(|count| count.min(NOT_CLOSED - 1)).collect();
    let (closed, mut rng) = (vec![0; blocks.len()], Rng::seeded(0));
    let choose = |_| {
        let pages = core.geometry.block_units;
        let candidates = Candidates { valid: &valid, closed: &closed, now: 1, pages };
        let chosen = victim::choose(VictimPolicy::GREEDY, &candidates, &mut rng)?;
        valid[cast::index(chosen)] = NOT_CLOSED;
        blocks.get(cast::index(chosen)).copied()
    };
    (0..excess).map_while(choose).collect()
}

/// The superblock of each unit whose leaves are so cold that it lags behind in wear.
fn lagging(core: &Core, halves: &BTreeMap<u32, u32>) -> Vec<u32> {
    let of_unit = |unit: u16| {
        let block_of = |index| core.geometry.block(unit, index);
        let has_leaves = |index| halves.contains_key(&block_of(index));
        Some(block_of(core.flash.worth_moving(unit, has_leaves)?.index))
    };
    core.geometry.units().iter().filter_map(of_unit).collect()
}
