//! Reads of a pair: from the member that only reads, or that has less to do; from staged data where
//! it lacks the newest; from the other one where it cannot be read.

use super::Pair;
use super::behind::Source;
use super::copying::bytes_of;
use super::course::{Figures, Member, partner};
use crate::classes::numbers::NO_HINT;
use crate::core::Shared;
use crate::domain_map::Found;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::image::ImageId;
use crate::moving::{self, Moving};
use crate::reader;
use crate::stream::Stream;
use crate::writer::unit_for;
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use softflash_ftl::Hint;
use std::rc::Rc;

/// Where neighbouring mapping units are read.
enum From {
    Staged(super::behind::Unit),
    Member(Member),
}

/// Reads mapping units of an image from `lba` on.
pub(crate) async fn read(
    pair: &Rc<Pair>,
    image: ImageId,
    lba: u32,
    into: &mut [u8],
    hint: Hint,
) -> Result<(), VolumeError> {
    let units = cast::saturating_u32(into.len() / MAPPING_UNIT_BYTES);
    let mut at = 0;
    while at < units {
        // A member may have been lost meanwhile: nothing is known then of what it lacks.
        let first = prefer(pair, image, lba + at);
        let (from, count) = source(pair, first, image, lba + at, units - at);
        let part = &mut into[bytes_of(at)..bytes_of(at + count)];
        match from {
            From::Staged(unit) => {
                Figures::add(&pair.figures.staged_reads, 1);
                part.copy_from_slice(&unit);
            }
            From::Member(member) => {
                read_from(pair, member, (image, lba + at), part, hint).await?;
            }
        }
        at += count;
    }
    Ok(())
}

/// The member to read first.
fn prefer(pair: &Pair, image: ImageId, lba: u32) -> Member {
    if let Some(member) = pair.course.borrow().reader() {
        return member;
    }
    let loads = [0, 1].map(|member| load(pair.member(member), image, lba));
    match loads[0].cmp(&loads[1]) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Greater => 1,
        std::cmp::Ordering::Equal => {
            let next = pair.next_read.get();
            pair.next_read.set(partner(next));
            next
        }
    }
}

/// The commands before a read of a mapping unit.
fn load(core: &Shared, image: ImageId, lba: u32) -> u32 {
    match core.map.borrow().find(image, lba) {
        Found::At { slot, .. } => {
            let unit = core.geometry.unit_of(core.geometry.block_of(slot));
            core.flash.load(core.unit_id(unit))
        }
        Found::Zeros | Found::Lost { .. } => 0,
    }
}

/// Where the next mapping units are read, and how many of them.
fn source(pair: &Pair, first: Member, image: ImageId, lba: u32, most: u32) -> (From, u32) {
    let behind = &pair.behind[first];
    if !behind.lacks(image, &(lba..lba + most)) || planted::bug(Bug::ReadFromStaleCopy) {
        return (From::Member(first), most);
    }
    match behind.source(image, lba) {
        Some(Source::Staged(unit)) => (From::Staged(unit), 1),
        Some(Source::Partner) => {
            let is_same = |at: &u32| behind.source(image, *at) == Some(Source::Partner);
            let same = (lba..lba + most).take_while(is_same);
            (From::Member(partner(first)), cast::saturating_u32(same.count()))
        }
        None => {
            let has = (lba..lba + most).take_while(|&at| behind.source(image, at).is_none());
            (From::Member(first), cast::saturating_u32(has.count()))
        }
    }
}

/// Reads from a member; what it cannot read from the other one, if that has the same data.
async fn read_from(
    pair: &Rc<Pair>,
    member: Member,
    (image, lba): (ImageId, u32),
    into: &mut [u8],
    hint: Hint,
) -> Result<(), VolumeError> {
    let Err(error) = reader::read(pair.member(member), image, lba, into, hint).await else {
        return Ok(());
    };
    if matches!(error, VolumeError::Deleted | VolumeError::Stopped) {
        return Err(error);
    }
    for (lba, unit) in (lba..).zip(into.chunks_exact_mut(MAPPING_UNIT_BYTES)) {
        let Err(error) = reader::read(pair.member(member), image, lba, unit, hint).await else {
            continue;
        };
        let other = partner(member);
        if let Some(Source::Staged(staged)) = pair.behind[other].source(image, lba) {
            // What the other one has still to get is the newest.
            unit.copy_from_slice(&staged);
            continue;
        }
        let has_it =
            pair.course.borrow().can_read(other) && pair.behind[other].source(image, lba).is_none();
        if !has_it || reader::read(pair.member(other), image, lba, unit, hint).await.is_err() {
            return Err(error);
        }
        Figures::add(&pair.figures.healed, 1);
        tracing::warn!(%image, lba, %error, "data were read from the other set of the pair");
        heal(pair, member, (image, lba), unit);
    }
    Ok(())
}

/// Writes data again that a member could not read: they are the same, by their checksum.
fn heal(pair: &Rc<Pair>, member: Member, (image, lba): (ImageId, u32), data: &[u8]) {
    let core = pair.member(member);
    let map = core.map.borrow();
    match map.find(image, lba) {
        Found::At { slot, origin, checksum } if map.fits(origin, lba, data, checksum) => {
            core.tasks.spawn(write_again(Rc::clone(core), slot, data.to_vec()));
        }
        // The map has no place for them any more: they are written as new ones.
        Found::Lost { .. } if map.images.get(image).is_some_and(|image| image.is_volume()) => {
            pair.behind[member].mark(image, lba..lba + 1);
            pair.wake_copies[member].notify_one();
        }
        Found::At { .. } | Found::Lost { .. } | Found::Zeros => {}
    }
}

/// Moves the data of a slot that cannot be read to another one, in the turn of the member.
async fn write_again(core: Shared, slot: u32, data: Vec<u8>) {
    let Ok((unit, stream)) = unit_for(&core, Stream::Collector(NO_HINT), 2, None).await else {
        return;
    };
    let mut moving = Moving::to(&core, unit, stream);
    // Nothing, if the slot is not valid any more.
    moving.add_one(&core, slot, Some(&data));
    if let Err(error) = moving::append(&core, moving).await {
        tracing::warn!(%error, "data that could not be read are not written again");
    }
}
