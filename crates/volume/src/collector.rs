//! Collection: moves the data of a superblock to others of its unit, by class, so that the first
//! can be erased. One task for each unit.

use crate::building::Building;
use crate::checkpoint::checkpoint;
use crate::core::{Collected, Core, Shared};
use crate::domain_map::low;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::Entry;
use crate::frontier;
use crate::placement::by_hint::NO_HINT;
use crate::releases::release_collected;
use crate::stream::Stream;
use crate::writer::{Sent, finish, send, unit_for};
use softflash_base::planted::{self, Bug};
use softflash_base::random::Rng;
use softflash_base::{IoBuf, cast, checksum};
use softflash_ftl::Hint;
use softflash_mapping::{Policies, VictimPolicy, WearPolicy};
use std::collections::{BTreeMap, BTreeSet, btree_map};

/// Collects a unit until the domain is stopped.
pub(crate) async fn run(core: Shared, unit: u32) {
    let rng = Rng::seeded(core.config.seed ^ u64::from(unit) << 32);
    let mut policies = Policies::new(VictimPolicy::Greedy, WearPolicy::Fifo, rng);
    while !core.stopped.get() {
        if !collect_one(&core, unit, &mut policies).await {
            core.collection_rests[cast::index(unit)].set(true);
            // Writers that wait for space may have to be refused.
            core.space.notify_all();
            core.collect[cast::index(unit)].notified().await;
        }
    }
}

/// Free superblocks of a unit that are not used to collect more while others wait for a root.
const KEPT_FOR_ROOTS: u32 = 3;

/// Collects one superblock, if the unit needs space. False if it needs none, or none can be had.
async fn collect_one(core: &Shared, unit: u32, policies: &mut Policies) -> bool {
    let (free, coming) = (core.free_superblocks(unit), core.collected_in(unit));
    if free + coming >= core.config.low_superblocks {
        return false;
    }
    // Those that wait for a flush or a root are free soon: to collect more would use up the
    // superblocks that the root needs.
    if free < KEPT_FOR_ROOTS && coming > 0 {
        return release_collected(core).await.is_ok();
    }
    if free < KEPT_FOR_ROOTS && !core.to_release.borrow().is_empty() {
        return checkpoint(core).await.is_ok();
    }
    let Some(victim) = choose(core, unit, policies) else {
        // Superblocks may wait for a flush or a root.
        core.release.notify_one();
        return false;
    };
    match collect(core, unit, victim).await {
        Ok(()) => {
            let end = core.frames.next();
            core.collected.borrow_mut().push(Collected { block: victim, end });
            core.release.notify_one();
            true
        }
        Err(error) => {
            tracing::warn!(%error, unit, "collection has stopped at a superblock");
            let number = core.frontiers.closed(unit);
            core.map.borrow_mut().blocks.close(victim, number);
            false
        }
    }
}

/// The superblock to collect; `None` if no collection would make space.
fn choose(core: &Core, unit: u32, policies: &mut Policies) -> Option<u32> {
    let now = core.frontiers.closed(unit);
    let victim = core.map.borrow_mut().blocks.choose_victim(unit, now, policies)?;
    let valid = core.map.borrow().blocks.valid_in(victim);
    // What fits a superblock in full frames, each with a head.
    let frame = core.config.frame_units;
    let fits = core.geometry.block_units * frame / (frame + 1);
    // Each class leaves a frame that is not full.
    let may_gain = valid + u32::from(core.classes.count()) < fits;
    if !may_gain && valid + classes_in(core, victim) >= fits {
        core.map.borrow_mut().blocks.close(victim, now);
        return None;
    }
    Some(victim)
}

/// Moves all valid data of a superblock.
async fn collect(core: &Shared, unit: u32, victim: u32) -> Result<(), VolumeError> {
    while core.superblocks.is_busy(victim) {
        let end = core.frames.next();
        core.frames.ended_below(end).await;
    }
    let places = core.geometry.places_of(victim);
    let mut by_class = BTreeMap::new();
    let mut at = places.start;
    loop {
        let next = core.map.borrow().next_valid(at, places.end);
        let Some(first) = next else { break };
        at = first + run_length(core, first, places.end);
        if let Some(read) = read_places(core, first, at - first).await? {
            for place in first..at {
                add_to_class(core, unit, &mut by_class, place, Some(read.unit(place))).await?;
            }
            continue;
        }
        // One bad page fails the whole read: each is read alone.
        for place in first..at {
            let read = read_places(core, place, 1).await?;
            let data = read.as_ref().map(|read| read.unit(place));
            add_to_class(core, unit, &mut by_class, place, data).await?;
        }
    }
    for moving in by_class.into_values() {
        append_moved(core, moving).await?;
    }
    Ok(())
}

/// Adds the data of a place, if it is valid, to the frame of their class, which is appended when it
/// is full.
async fn add_to_class(
    core: &Shared,
    unit: u32,
    by_class: &mut BTreeMap<u8, Moving>,
    place: u32,
    data: Option<&[u8]>,
) -> Result<(), VolumeError> {
    if core.map.borrow().holder(place).is_none() {
        return Ok(());
    }
    let class = class_at(core, place);
    let moving = match by_class.entry(class) {
        btree_map::Entry::Occupied(found) => found.into_mut(),
        btree_map::Entry::Vacant(none) => {
            let own = Some(unit);
            let (unit, stream) = unit_for(core, Stream::Collector(class), 2, own).await?;
            none.insert(Moving::to(core, unit, stream))
        }
    };
    moving.add_one(core, place, data);
    match moving.building.is_full().then(|| by_class.remove(&class)).flatten() {
        Some(full) => append_moved(core, full).await,
        None => Ok(()),
    }
}

/// The classes of the valid data of a superblock.
fn classes_in(core: &Core, block: u32) -> u32 {
    let places = core.geometry.places_of(block);
    let is_valid = |place: &u32| core.map.borrow().holder(*place).is_some();
    let classes: BTreeSet<u8> =
        places.filter(is_valid).map(|place| class_at(core, place)).collect();
    cast::saturating_u32(classes.len().max(1))
}

/// The class of the data at a place.
fn class_at(core: &Core, place: u32) -> u8 {
    if core.classes.count() == 1 {
        return NO_HINT;
    }
    let map = core.map.borrow();
    let volume = map.holder(place).map(|(image, _)| map.volume_of(image));
    let settings = volume.and_then(|volume| Some(map.images.get(volume)?.settings));
    settings.map_or(NO_HINT, |settings| core.classes.of(settings.lifetime))
}

/// Writes data that were read from these places again, as clients do: for frames that the next
/// recovery may not find, with their effects on snapshots.
pub(crate) async fn write_again(
    core: &Shared,
    data: Vec<(u32, Vec<u8>)>,
) -> Result<(), VolumeError> {
    let mut left = data.into_iter().peekable();
    while left.peek().is_some() {
        let (unit, stream) = unit_for(core, Stream::Recovery, 2, None).await?;
        let mut moving = Moving::to(core, unit, stream);
        moving.as_written = true;
        while !moving.building.is_full()
            && let Some((place, data)) = left.next()
        {
            moving.add_one(core, place, Some(&data));
        }
        append_moved(core, moving).await?;
    }
    let units = 0..u32::from(core.geometry.units);
    units.for_each(|unit| frontier::close(core, unit, Stream::Recovery));
    Ok(())
}

/// A frame of data that move, with the places where they come from.
struct Moving {
    building: Building,
    from: Vec<u32>,
    /// Data of volumes are recorded as written instead of moved.
    as_written: bool,
}

impl Moving {
    fn to(core: &Core, unit: u32, stream: Stream) -> Moving {
        let building = frontier::begin(core, unit, stream, core.config.frame_units);
        Moving { building, from: Vec::new(), as_written: false }
    }

    /// Adds the data of a place, if it is valid; `None` if it cannot be read.
    fn add_one(&mut self, core: &Core, place: u32, data: Option<&[u8]>) {
        let map = core.map.borrow();
        let Some((image, lba)) = map.holder(place) else { return };
        let data = data.unwrap_or(&[0; MAPPING_UNIT_BYTES]);
        let mut sum = checksum::checksum64(map.seed_of(image, lba), data);
        if low(sum) != map.checksum_at(place) {
            // The map keeps the checksum of the lost data: no read takes these bytes for them.
            sum = !sum;
            core.counters.update(|counters| counters.lost += 1);
            tracing::error!(%image, lba, "data are lost: collection cannot read them");
        }
        self.building.add(Entry::Moved { image, lba, checksum: sum }, data);
        self.from.push(place);
    }
}

/// Places without valid data that are read with those around them: fewer, longer reads cost less.
const MOST_BETWEEN: u32 = 4;

/// Places from a valid one on that are read together, of which a frame takes the valid ones.
fn run_length(core: &Core, place: u32, end: u32) -> u32 {
    let map = core.map.borrow();
    let mut last = place;
    map.expect_move(place);
    for _ in 1..core.config.frame_units {
        match map.next_valid(last + 1, end) {
            Some(next) if next - last <= MOST_BETWEEN + 1 => {
                map.expect_move(next);
                last = next;
            }
            _ => break,
        }
    }
    last + 1 - place
}

/// Pages that were read.
struct Read {
    bytes: IoBuf,
    /// The first place in them.
    first: u32,
}

impl Read {
    fn unit(&self, place: u32) -> &[u8] {
        let at = cast::index(place - self.first) * MAPPING_UNIT_BYTES;
        &self.bytes[at..at + MAPPING_UNIT_BYTES]
    }
}

/// Reads places of a superblock; `None` if one of them cannot be read.
async fn read_places(core: &Core, first: u32, count: u32) -> Result<Option<Read>, VolumeError> {
    let block = core.geometry.block_of(first);
    let Some(superblock) = core.superblocks.handle(block) else {
        let reason = format!("block {block} is collected and has no superblock");
        return Err(VolumeError::Damaged { reason });
    };
    let start = core.geometry.places_of(block).start;
    let (first_page, _) = core.geometry.page_of(first);
    let pages = core.geometry.page_of(first + count - 1).0 - first_page + 1;
    let first = start + first_page * core.geometry.page_units;
    match core.flash.read(&superblock, first_page, pages, Hint::COMPACTION).await {
        Ok(read) => Ok(Some(Read { bytes: read.bytes, first })),
        Err(error) => {
            tracing::warn!(%error, count, "places cannot be read for collection");
            Ok(None)
        }
    }
}

/// Appends moved data and names their new places, of those that are still valid.
async fn append_moved(core: &Core, moving: Moving) -> Result<(), VolumeError> {
    let Moving { building, from, as_written } = moving;
    if from.is_empty() {
        return Ok(());
    }
    let sent =
        send(core, building, |entries| name_holders(core, &from, as_written, entries)).await?;
    name_places(core, &from, &sent);
    core.count_entries(from.len());
    let (completion, first) = (sent.completion.clone(), sent.appended.first);
    let result = finish(core, sent).await;
    if result.is_err() {
        // The data are where they came from: that superblock is not released.
        take_back(core, first, &from);
    }
    completion.end(result.clone());
    result
}

/// Names the new places of moved data in the map.
fn name_places(core: &Core, from: &[u32], sent: &Sent) {
    let mut map = core.map.borrow_mut();
    for ((to, &from), entry) in (sent.appended.first + 1..).zip(from).zip(&sent.entries) {
        if *entry != Entry::Void {
            map.relocate(from, to);
        }
    }
}

/// Names the places again from which data were moved to a frame that could not be written.
fn take_back(core: &Core, first: u32, from: &[u32]) {
    let mut map = core.map.borrow_mut();
    for (to, &from) in (first + 1..).zip(from) {
        if map.holder(to).is_some() {
            map.relocate(to, from);
        }
    }
}

/// Lets the entries name the images that hold the data now: a snapshot may have taken them, or
/// nothing holds them any more.
fn name_holders(core: &Core, from: &[u32], as_written: bool, entries: &mut [Entry]) {
    let map = core.map.borrow();
    for (&place, entry) in from.iter().zip(entries) {
        *entry = match (map.holder(place), *entry) {
            (Some((image, lba)), Entry::Moved { checksum, .. } | Entry::Data { checksum, .. }) => {
                let is_volume = || map.images.get(image).is_some_and(|image| image.is_volume());
                match (as_written || planted::bug(Bug::MovesAsWrites)) && is_volume() {
                    true => Entry::Data { image, lba, checksum },
                    false => Entry::Moved { image, lba, checksum },
                }
            }
            _ => Entry::Void,
        };
    }
}
