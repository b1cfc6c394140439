//! Checkpoints: the leaves that have changed, and a root that names all leaves and images. Recovery
//! starts there, so superblocks that only older roots needed are released.

use crate::building::Building;
use crate::core::{Core, Shared};
use crate::error::VolumeError;
use crate::flusher::flush;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::Entry;
use crate::format::root::{OpenSuperblock, Root, StoredLeaf, parts};
use crate::frames::Completion;
use crate::frontier::{self, Appended};
use crate::image::Images;
use crate::releases::{release, release_unneeded};
use crate::stream::Stream;
use crate::writer::{Sent, send, unit_for};
use softflash_base::planted::{self, Bug};
use softflash_base::{cast, checksum};
use std::collections::{BTreeMap, BTreeSet};

/// Returns when a checkpoint is durable that holds everything written so far.
pub(crate) async fn checkpoint(core: &Shared) -> Result<(), VolumeError> {
    core.check_running()?;
    let completion = Completion::default();
    core.checkpoint_waiters.borrow_mut().push(completion.clone());
    core.checkpoint.notify_one();
    completion.wait().await
}

/// Makes checkpoints until the domain is stopped.
pub(crate) async fn run(core: Shared) {
    loop {
        core.checkpoint.notified().await;
        if core.stopped.get() {
            return;
        }
        let waiting = std::mem::take(&mut *core.checkpoint_waiters.borrow_mut());
        let entries = core.entries_since_root.get();
        let result = make(&core).await;
        core.root_failed.set(result.is_err());
        if let Err(error) = &result {
            if !planted::bug(Bug::FailedCheckpointCounts) {
                core.map.borrow_mut().thaw();
            }
            core.entries_since_root.set(core.entries_since_root.get() + entries);
            // Nothing that waits for this root can be released now.
            core.space.notify_all();
            tracing::warn!(%error, "a checkpoint was not made; the one before stays");
        }
        for completion in waiting {
            completion.end(result.clone());
        }
    }
}

/// Makes a checkpoint.
pub(crate) async fn make(core: &Shared) -> Result<(), VolumeError> {
    // The map lacks an operation that is being written, and the root would hide its frame.
    if !planted::bug(Bug::GatePassed) {
        core.gate.wait().await;
    }
    // From here to the first wait, nothing changes: this is the state that the root describes.
    let sequence = core.frames.next();
    core.entries_since_root.set(0);
    let (frozen, images) = {
        let mut map = core.map.borrow_mut();
        (map.freeze(), map.images.clone())
    };
    let mut leaves = stored_leaves(core, &images);
    let open = open_superblocks(core);

    let mut writer = MapWriter { core, building: None, written: Vec::new() };
    let mut stored = BTreeMap::new();
    for leaf in frozen {
        let halves = core.map.borrow_mut().take_frozen(leaf);
        let mut places = [0; 2];
        for (half, bytes) in (0..).zip(&halves) {
            let unsummed = Entry::Leaf { leaf, half, checksum: 0 };
            let checksum = checksum::checksum64(unsummed.seed(), bytes);
            let place = writer.add(Entry::Leaf { leaf, half, checksum }, bytes).await?;
            places[cast::index(half)] = place;
        }
        stored.insert(leaf, places);
    }
    // Places are known when their frames are appended.
    let places = writer.finish().await?;
    let resolve = |number: u32| places[cast::index(number)];
    for (leaf, numbers) in stored {
        leaves.insert(leaf, numbers.map(resolve));
    }
    let leaves: Vec<StoredLeaf> =
        leaves.into_iter().map(|(leaf, halves)| StoredLeaf { leaf, halves }).collect();

    // The root may name data and leaves only when they are durable.
    flush(core).await?;
    let previous = Some(core.durable_root.get());
    let root = Root { sequence, images, leaves, open, previous };
    let root_places = write_root(core, &root).await?;
    let end = core.frames.next();
    flush(core).await?;
    core.frames.forgive_below(root.sequence);
    core.frames.settle();
    core.frames.set_durable_below(end);
    if core.frames.durable_below() < end {
        let reason = "a frame behind the root could not be written".to_owned();
        return Err(VolumeError::Damaged { reason });
    }
    let proof = prove(core).await?;
    core.counters.update(|counters| counters.checkpoints += 1);
    adopt(core, &root, &root_places, proof);
    Ok(())
}

/// Writes an empty frame, whose head says that the root is durable, and makes the frame durable:
/// only then may be released what the root before needs. Returns its block.
pub(crate) async fn prove(core: &Shared) -> Result<u32, VolumeError> {
    for _ in 0..MOST_ATTEMPTS {
        let (unit, stream) = unit_for(core, Stream::Map, 2, None).await?;
        let mut buffer = core.flash.buffer(core.flash.page_bytes());
        buffer.fill(0);
        let completion = Completion::default();
        let Ok(appended) = frontier::append(core, unit, stream, &[], buffer, &completion) else {
            continue;
        };
        let block = appended.block;
        if frontier::end_alone(core, appended, &completion).await.is_ok() {
            flush(core).await?;
            return Ok(block);
        }
    }
    Err(VolumeError::Damaged { reason: "no superblock takes the map".to_owned() })
}

/// The leaves of these images that an earlier checkpoint wrote.
fn stored_leaves(core: &Core, images: &Images) -> BTreeMap<u32, [u32; 2]> {
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
    building: Option<Building>,
    /// The place of each mapping unit added, once its frame is appended.
    written: Vec<u32>,
}

impl MapWriter<'_> {
    /// Adds a mapping unit; returns its number in the list of places.
    async fn add(&mut self, entry: Entry, data: &[u8]) -> Result<u32, VolumeError> {
        if self.building.as_ref().is_some_and(Building::is_full) {
            self.send().await?;
        }
        let core = self.core;
        let mut building = match self.building.take() {
            Some(building) => building,
            None => {
                let (unit, _) = unit_for(core, Stream::Map, 2, None).await?;
                frontier::begin(core, unit, Stream::Map, core.config.frame_units)
            }
        };
        let number = self.written.len() + building.len();
        building.add(entry, data);
        self.building = Some(building);
        Ok(cast::saturating_u32(number))
    }

    /// Appends the frame that is being filled, and waits until it is programmed: a failed one is
    /// appended again, elsewhere.
    async fn send(&mut self) -> Result<(), VolumeError> {
        let core = self.core;
        let mut next = self.building.take();
        for _ in 0..MOST_ATTEMPTS {
            let Some(building) = next.take() else { return Ok(()) };
            let Sent { appended, entries, .. } = send(core, building, |_| {}).await?;
            let Appended { sequence, block, first, programmed } = appended;
            let (result, buffer) = programmed.await;
            frontier::end(core, block, first, sequence);
            match (result, buffer) {
                (Ok(()), _) => {
                    self.written.extend((first + 1..).take(entries.len()));
                    return Ok(());
                }
                (Err(error), Some(buffer)) => {
                    tracing::warn!(%error, "a frame of the map is appended elsewhere");
                    frontier::give_up(core, block);
                    let unit = core.geometry.unit_of(block);
                    next = Some(Building::again(unit, Stream::Map, buffer, entries));
                }
                (Err(error), None) => return Err(error.into()),
            }
        }
        Err(VolumeError::Damaged { reason: "no superblock takes the map".to_owned() })
    }

    /// The places of all that was added.
    async fn finish(mut self) -> Result<Vec<u32>, VolumeError> {
        self.send().await?;
        Ok(self.written)
    }
}

/// Attempts to append a frame of the map: more mean that the device is lost.
const MOST_ATTEMPTS: usize = 8;

async fn write_root(core: &Shared, root: &Root) -> Result<Vec<u32>, VolumeError> {
    let bytes = root.encode();
    let (number, parts) = (core.root.get() + 1, parts(bytes.len()));
    core.root.set(number);
    let mut writer = MapWriter { core, building: None, written: Vec::new() };
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
fn adopt(core: &Core, root: &Root, root_places: &[u32], proof: u32) {
    let mut map = core.map.borrow_mut();
    let mut live = BTreeMap::new();
    let mut count = |place: u32| *live.entry(core.geometry.block_of(place)).or_insert(0_u32) += 1;
    root_places.iter().for_each(|&place| count(place));
    for stored in &root.leaves {
        map.leaves.get_mut(stored.leaf).stored = Some(stored.halves);
        stored.halves.iter().for_each(|&place| count(place));
    }
    drop(map);
    core.durable_root.set(core.root.get());
    core.root_sequence.set(root.sequence);
    let open = |block: u32| {
        core.superblocks.handle(block).is_some_and(|open| core.frontiers.is_open(&open))
    };
    let blocks = std::mem::take(&mut *core.map_blocks.borrow_mut());
    let (kept, unneeded): (Vec<u32>, Vec<u32>) = blocks
        .into_iter()
        .partition(|&block| live.contains_key(&block) || block == proof || open(block));
    *core.map_blocks.borrow_mut() = kept;
    unneeded.into_iter().for_each(|block| release(core, block));
    release_unneeded(core);
    rewrite_sparse(core, root, &live);
}

/// Lets the next checkpoint write the leaves of the emptiest superblock of the map again, if the
/// map takes more than twice its space.
fn rewrite_sparse(core: &Core, root: &Root, live: &BTreeMap<u32, u32>) {
    let blocks = cast::saturating_u32(core.map_blocks.borrow().len());
    let places: u32 = live.values().sum();
    if blocks <= 2 + 2 * places.div_ceil(core.geometry.block_units) {
        return;
    }
    let Some((&sparse, _)) = live.iter().min_by_key(|&(&block, &count)| (count, block)) else {
        return;
    };
    let inside = |stored: &&StoredLeaf| {
        stored.halves.iter().any(|&place| core.geometry.block_of(place) == sparse)
    };
    let leaves: BTreeSet<u32> =
        root.leaves.iter().filter(inside).map(|stored| stored.leaf).collect();
    let mut map = core.map.borrow_mut();
    leaves.into_iter().for_each(|leaf| map.touch(leaf));
}
