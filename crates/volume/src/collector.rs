//! Collection: moves the data of a superblock to another one of its unit, so that it can be erased.
//! One task for each unit.

use crate::building::Building;
use crate::checkpoint::checkpoint;
use crate::core::{Collected, Core, Shared};
use crate::domain_map::low;
use crate::error::VolumeError;
use crate::flusher::flush;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::Entry;
use crate::frontier;
use crate::stream::Stream;
use crate::writer::{Sent, finish, send, unit_for};
use softflash_base::planted::{self, Bug};
use softflash_base::random::Rng;
use softflash_base::{IoBuf, cast, checksum};
use softflash_ftl::Hint;
use softflash_mapping::{Policies, VictimPolicy, WearPolicy};

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
    if core.free_superblocks(unit) >= core.config.low_superblocks {
        return false;
    }
    // Superblocks that wait for a root are free soon: more of them would use up what the root
    // needs.
    if core.free_superblocks(unit) < KEPT_FOR_ROOTS && !core.to_release.borrow().is_empty() {
        return checkpoint(core).await.is_ok();
    }
    let Some(victim) = choose(core, unit, policies) else {
        // Superblocks may wait for a root.
        release_collected(core).await;
        return false;
    };
    match collect(core, unit, victim).await {
        Ok(()) => {
            let end = core.frames.next();
            core.collected.borrow_mut().push(Collected { block: victim, end });
            release_collected(core).await;
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
    let mut map = core.map.borrow_mut();
    let victim = map.blocks.choose_victim(unit, now, policies)?;
    // What fits a superblock in full frames, each with a head.
    let frame = core.config.frame_units;
    let fits = core.geometry.block_units * frame / (frame + 1);
    if map.blocks.valid_in(victim) + 1 >= fits {
        map.blocks.close(victim, now);
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
    let mut at = places.start;
    loop {
        let next = core.map.borrow().next_valid(at, places.end);
        let Some(first) = next else { return Ok(()) };
        at = move_chunk(core, unit, first, places.end).await?;
    }
}

/// Moves the valid data from a place on that fit a frame; returns the place behind them.
async fn move_chunk(core: &Shared, unit: u32, first: u32, end: u32) -> Result<u32, VolumeError> {
    let target = unit_for(core, Stream::Collector, 2, Some(unit)).await?;
    let mut moving = Moving::to(core, target);
    let mut at = first;
    while at < end && !moving.building.is_full() {
        let valid = core.map.borrow().next_valid(at, end);
        let Some(place) = valid else {
            at = end;
            break;
        };
        let run = run_length(core, place, end, moving.building.room());
        moving.add(core, place, run).await?;
        at = place + run;
    }
    append_moved(core, moving).await?;
    Ok(at)
}

/// Writes data that were read from these places again, as clients do: for frames that the next
/// recovery may not find, with their effects on snapshots.
pub(crate) async fn write_again(
    core: &Shared,
    data: Vec<(u32, Vec<u8>)>,
) -> Result<(), VolumeError> {
    let mut left = data.into_iter().peekable();
    while left.peek().is_some() {
        let target = unit_for(core, Stream::Collector, 2, None).await?;
        let mut moving = Moving::to(core, target);
        moving.as_written = true;
        while !moving.building.is_full()
            && let Some((place, data)) = left.next()
        {
            moving.add_one(core, place, Some(&data));
        }
        append_moved(core, moving).await?;
    }
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
    fn to(core: &Core, unit: u32) -> Moving {
        let building = frontier::begin(core, unit, Stream::Collector, core.config.frame_units);
        Moving { building, from: Vec::new(), as_written: false }
    }

    /// Reads and adds the valid ones of neighbouring places.
    async fn add(&mut self, core: &Core, first: u32, count: u32) -> Result<(), VolumeError> {
        if let Some(read) = read_places(core, first, count).await? {
            for place in first..first + count {
                self.add_one(core, place, Some(read.unit(place)));
            }
            return Ok(());
        }
        // One bad page fails the whole read: each is read alone.
        for place in first..first + count {
            if core.map.borrow().holder(place).is_some() {
                let read = read_places(core, place, 1).await?;
                self.add_one(core, place, read.as_ref().map(|read| read.unit(place)));
            }
        }
        Ok(())
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

/// Places from a valid one on that are read together, of which at most `most` are valid.
fn run_length(core: &Core, place: u32, end: u32, most: usize) -> u32 {
    let map = core.map.borrow();
    let mut last = place;
    map.expect_move(place);
    for _ in 1..most {
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

/// Releases the superblocks whose data have moved: after a flush, so that the copies are durable.
/// Those that recovery still needs wait for the next root.
pub(crate) async fn release_collected(core: &Shared) {
    let moved = core.collected.borrow().clone();
    let needs_flush = !moved.is_empty() && !planted::bug(Bug::MovesNotFlushed);
    if needs_flush && flush(core).await.is_err() {
        // Without durable copies they are never released; the device has failed.
        return;
    }
    // The collection of another unit may have released some of them meanwhile.
    let (durable, rest) = core.collected.take().into_iter().partition(|one| moved.contains(one));
    core.collected.replace(rest);
    let durable: Vec<Collected> = durable;
    core.to_release.borrow_mut().extend(durable.into_iter().map(|one| one.block));
    release_unneeded(core);
    core.ask_for_releases();
}

/// Releases the collected superblocks that recovery from the durable root does not need. All copies
/// of their data must be durable.
pub(crate) fn release_unneeded(core: &Core) {
    let waiting = std::mem::take(&mut *core.to_release.borrow_mut());
    let root = core.root_sequence.get();
    let (free, kept): (Vec<u32>, Vec<u32>) =
        waiting.into_iter().partition(|&block| core.superblocks.is_unpinned(block, root));
    core.to_release.borrow_mut().extend(kept);
    for block in free {
        release(core, block);
    }
}

/// Releases a superblock without data.
pub(crate) fn release(core: &Core, block: u32) {
    let valid = core.map.borrow().blocks.valid_in(block);
    assert!(valid == 0, "block {block} is released with {valid} valid places");
    if let Some(superblock) = core.superblocks.take(block) {
        core.flash.release(&superblock);
        core.counters.update(|counters| counters.released += 1);
    }
    core.space.notify_all();
}
