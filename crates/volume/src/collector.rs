//! Collection: moves the data of a superblock to others of its unit, by class, so that the first
//! can be erased; of a unit that leaves the domain, to others. One task for each unit.

use crate::checkpoint::checkpoint;
use crate::classes::numbers::NO_HINT;
use crate::core::{Core, Shared};
use crate::draining::next_closed;
use crate::error::VolumeError;
use crate::frontier;
use crate::map_space::kept_for_checkpoint;
use crate::moving::{self, Moving, read_slots, run_length};
use crate::releases::{ask_if_short, release_collected};
use crate::retiring::Collected;
use crate::stream::Stream;
use crate::writer::unit_for;
use futures_util::future::join_all;
use softflash_base::cast;
use softflash_base::random::Rng;
use softflash_ftl::Hint;
use softflash_policy::{Policies, WearPolicy};
use std::collections::{BTreeMap, BTreeSet, btree_map};

/// Collects a unit until it leaves the domain, or the domain is stopped.
pub(crate) async fn run(core: Shared, unit: u32) {
    let of_unit = core.tasks.collection().of(unit);
    let mut collection = UnitCollection { policies: policies(&core, unit), levels: true };
    while !core.tasks.is_stopped() && !of_unit.has_ended() {
        if !collect_one(&core, unit, &mut collection).await {
            of_unit.rest();
            // Writers that wait for space may have to be refused.
            core.space.notify();
            of_unit.woken().await;
        }
    }
}

/// The state of a unit's collection.
struct UnitCollection {
    policies: Policies,
    /// Whether the next victim may be one that lags behind in wear.
    levels: bool,
}

/// The policies of a unit's collection.
pub(crate) fn policies(core: &Core, unit: u32) -> Policies {
    let rng = Rng::seeded(core.config.seed ^ u64::from(unit) << 32);
    // The FTL takes the least worn superblock, and `worth_moving` levels those with cold data.
    Policies::new(core.config.victim, WearPolicy::FIFO, rng)
}

/// Free superblocks of a unit, beside those of the next checkpoint, that are not used to collect
/// more while others wait for a root.
const KEPT_BESIDE: u32 = 2;

/// Collects one superblock, if the unit needs space. False if it needs none, or none can be had.
async fn collect_one(core: &Shared, unit: u32, collection: &mut UnitCollection) -> bool {
    if core.space.is_draining(unit) {
        drain(core, unit).await;
        return false;
    }
    if core.is_worn_out(Some(unit)) {
        return false;
    }
    let (free, coming) =
        (core.free_superblocks(unit), core.retiring.awaiting_flush_in(&core.geometry, unit));
    let waiting = core.retiring.awaiting_root_in(&core.geometry, unit);
    let for_checkpoint = kept_for_checkpoint(core);
    let enough = core.config.low_superblocks + for_checkpoint.with_copies - 1;
    let soon = free + coming + waiting;
    if soon >= enough {
        // One root releases all that wait for it.
        ask_if_short(core);
        return false;
    }
    // Those that wait for a flush or a root are free soon: to collect more would use up the
    // superblocks that the root needs.
    let kept = for_checkpoint.least + KEPT_BESIDE;
    if free < kept && coming > 0 {
        return release_collected(core).await.is_ok();
    }
    if free < kept && core.retiring.any_waits_for_root() {
        return checkpoint(core).await.is_ok();
    }
    // At most every second one, so that clients do not wait for all cold data of the unit.
    collection.levels &= free > kept;
    if std::mem::replace(&mut collection.levels, true)
        && let Some(victim) = lagging(core, unit)
    {
        collection.levels = false;
        core.tasks.collection().begin_levelling(unit);
        return empty(core, victim).await.is_ok();
    }
    let Some(victim) = choose(core, unit, &mut collection.policies) else {
        // Superblocks may wait for a flush or a root.
        core.retiring.ask();
        return false;
    };
    let reserve = frontier::reserve(core, Stream::Host(NO_HINT));
    let beyond = |superblocks: u32| superblocks.saturating_sub(reserve);
    let work = work_of(core, &victim);
    core.tasks.collection().begin(unit, work, (beyond(soon), beyond(enough)));
    empty(core, victim).await.is_ok()
}

/// The mapping units that a victim's data take in frames, and the room that they leave.
fn work_of(core: &Core, victim: &Victim) -> (u32, u32) {
    let valid = core.map.borrow().blocks.valid_in(victim.block);
    let moved = valid + valid.div_ceil(core.config.frame_units.max(1));
    (moved, core.geometry.data_units().saturating_sub(moved))
}

/// The superblock that lags behind in wear, if there is one: its data are cold, and it takes part
/// again once they have moved.
fn lagging(core: &Core, unit: u32) -> Option<Victim> {
    let unit = core.unit_id(unit);
    let block_of = |index| core.geometry.block(unit, index);
    let mut map = core.map.borrow_mut();
    // Superblocks of the map are rewritten by checkpoints.
    let is_closed = |index| map.blocks.is_closed(block_of(index));
    let block = block_of(core.flash.worth_moving(unit, is_closed)?.index);
    map.blocks.reopen(block);
    let into = core.geometry.unit_of(block);
    let (mixes, keeps_unreadable, cause) = (false, false, Hint::LEVELLING);
    Some(Victim { block, into, mixes, keeps_unreadable, cause })
}

/// Moves all data of a unit that leaves the domain, until some cannot be moved: as many superblocks
/// at a time as there are other units. More gain a tenth of the time, and clients wait longer.
async fn drain(core: &Shared, unit: u32) {
    let together = core.staying_units().map(|_| drain_in_turn(core, unit));
    let failure = join_all(together).await;
    if let Some(failure) = failure.into_iter().find_map(Result::err) {
        core.space.note_drain_failure(failure);
    }
}

/// Moves one superblock after the other, while other tasks move others.
async fn drain_in_turn(core: &Shared, unit: u32) -> Result<(), VolumeError> {
    while let Some(block) = next_closed(core, unit) {
        core.map.borrow_mut().blocks.reopen(block);
        drain_one(core, block).await?;
    }
    Ok(())
}

/// Moves the data of a superblock to a unit that would take data of clients: it leaves what
/// collection needs there.
async fn drain_one(core: &Shared, block: u32) -> Result<(), VolumeError> {
    match unit_for(core, Stream::Host(NO_HINT), 2, None).await {
        Ok((into, _)) => {
            let cause = Hint::COLLECTION;
            empty(core, Victim { block, into, mixes: false, keeps_unreadable: true, cause }).await
        }
        Err(error) => {
            close_again(core, block);
            Err(error)
        }
    }
}

/// Collects a superblock, which is released once that is durable.
async fn empty(core: &Shared, victim: Victim) -> Result<(), VolumeError> {
    match collect(core, victim, Stream::Collector(NO_HINT)).await {
        Ok(()) => {
            let end = core.order.next_frame();
            core.retiring.add(Collected { block: victim.block, end });
            Ok(())
        }
        Err(error) => {
            let unit = core.geometry.unit_of(victim.block);
            tracing::warn!(%error, unit, "collection has stopped at a superblock");
            close_again(core, victim.block);
            Err(error)
        }
    }
}

/// A superblock may be collected again: its collection has stopped.
fn close_again(core: &Core, block: u32) {
    let closed = core.frontiers.closed(core.geometry.unit_of(block));
    core.map.borrow_mut().blocks.close(block, closed);
}

/// A superblock to collect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Victim {
    pub block: u32,
    /// The unit to which its data move.
    into: u32,
    /// Classes are not kept apart: each would have a frame of its own, with a head, and all
    /// together would take as much space as the superblock has.
    mixes: bool,
    /// Data that cannot be read end the collection. Otherwise they are lost, and move as such.
    keeps_unreadable: bool,
    /// Why its data move.
    cause: Hint,
}

/// The superblock to collect; `None` if no collection would make space.
pub(crate) fn choose(core: &Core, unit: u32, policies: &mut Policies) -> Option<Victim> {
    let now = core.frontiers.closed(unit);
    let fits = core.most_data_of_block();
    let below = fits.saturating_sub(1);
    let victim = core.map.borrow_mut().blocks.choose_sparse_victim(unit, now, below, policies)?;
    let valid = core.map.borrow().blocks.valid_in(victim);
    // Each class leaves a frame that is not full.
    let gains = |classes: u32| valid + classes < fits;
    let mixes = !gains(core.clients.classes().count().into()) && !gains(classes_in(core, victim));
    let (keeps_unreadable, cause) = (false, Hint::COLLECTION);
    Some(Victim { block: victim, into: unit, mixes, keeps_unreadable, cause })
}

/// Moves all valid data of a superblock to frames of a stream, by class.
pub(crate) async fn collect(
    core: &Shared,
    victim: Victim,
    stream: Stream,
) -> Result<(), VolumeError> {
    let Victim { block: victim, into, mixes, keeps_unreadable, cause } = victim;
    while core.superblocks.is_busy(victim) {
        core.order.all_ended().await;
    }
    let slots = core.geometry.slots_of(victim);
    let target = Target { into, stream, mixes, unhinted: class_without_hint(core, victim) };
    let mut frames = BTreeMap::new();
    let mut at = slots.start;
    loop {
        core.order.works().await;
        let next = core.map.borrow().next_valid(at, slots.end);
        let Some(first) = next else { break };
        at = first + run_length(core, first, slots.end);
        if let Some(read) = read_slots(core, first, at - first, cause).await? {
            for slot in first..at {
                let data = Some(read.unit(slot));
                let target = target.at(core, slot);
                add(core, (target, cause), &mut frames, slot, data).await?;
            }
            continue;
        }
        // One bad page fails the whole read: each is read alone.
        for slot in first..at {
            let read = read_slots(core, slot, 1, cause).await?;
            if read.is_none() && keeps_unreadable && core.map.borrow().holder(slot).is_some() {
                let unit = core.unit_id(core.geometry.unit_of(victim));
                let reason = "data in it cannot be read".to_owned();
                return Err(VolumeError::NotDrained { unit, reason });
            }
            let data = read.as_ref().map(|read| read.unit(slot));
            let target = target.at(core, slot);
            add(core, (target, cause), &mut frames, slot, data).await?;
        }
    }
    for frame in frames.into_values() {
        moving::append(core, frame).await?;
    }
    Ok(())
}

/// Adds the data of a slot, if it is valid, to the frame of their stream, which is appended when
/// it is full.
async fn add(
    core: &Shared,
    ((into, stream), cause): ((u32, Stream), Hint),
    frames: &mut BTreeMap<Stream, Moving>,
    slot: u32,
    data: Option<&[u8]>,
) -> Result<(), VolumeError> {
    if core.map.borrow().holder(slot).is_none() {
        return Ok(());
    }
    let frame = match frames.entry(stream) {
        btree_map::Entry::Occupied(found) => found.into_mut(),
        btree_map::Entry::Vacant(none) => {
            let (unit, stream) = unit_for(core, stream, 2, Some(into)).await?;
            let moving = Moving::to(core, unit, stream);
            none.insert(match stream {
                Stream::Collector(_) => moving.because(cause.origin),
                _ => moving,
            })
        }
    };
    frame.add_one(core, slot, data);
    match frame.is_full().then(|| frames.remove(&stream)).flatten() {
        Some(full) => moving::append(core, full).await,
        None => Ok(()),
    }
}

/// Where the data of a superblock move.
struct Target {
    /// The unit.
    into: u32,
    stream: Stream,
    mixes: bool,
    /// The class of data without hints.
    unhinted: u8,
}

impl Target {
    /// The unit and the stream of the data at a slot: of their class, unless classes mix.
    fn at(&self, core: &Core, slot: u32) -> (u32, Stream) {
        let stream = match (self.mixes, class_at(core, slot)) {
            (true, _) => self.stream,
            (false, NO_HINT) => self.stream.with_class(self.unhinted),
            (false, class) => self.stream.with_class(class),
        };
        (self.into, stream)
    }
}

/// The class of the data without hints of a superblock that is collected.
fn class_without_hint(core: &Core, victim: u32) -> u8 {
    let predicted = core.clients.classes().predicted().map(|predicted| predicted.of_moved(victim));
    predicted.map_or(NO_HINT, |class| core.clients.classes().of_predicted(class))
}

/// The classes of the valid data of a superblock.
fn classes_in(core: &Core, block: u32) -> u32 {
    let slots = core.geometry.slots_of(block);
    let is_valid = |slot: &u32| core.map.borrow().holder(*slot).is_some();
    let classes: BTreeSet<u8> = slots.filter(is_valid).map(|slot| class_at(core, slot)).collect();
    cast::saturating_u32(classes.len().max(1))
}

/// The class of the data at a slot.
fn class_at(core: &Core, slot: u32) -> u8 {
    if core.clients.classes().count() == 1 {
        return NO_HINT;
    }
    let map = core.map.borrow();
    let volume = map.holder(slot).map(|(image, _)| map.volume_of(image));
    let settings = volume.and_then(|volume| Some(map.images.get(volume)?.settings));
    settings.map_or(NO_HINT, |settings| core.clients.classes().of(settings.lifetime))
}
