//! Copies what a member of a pair is behind in.

use super::Pair;
use super::behind::Source;
use super::course::{Figures, Member, partner};
use super::putting::is_fatal;
use super::transfer::{clear, holds, transfer};
use crate::core::Shared;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::image::ImageId;
use crate::writer;
use futures_util::future::join_all;
use softflash_base::cast;
use softflash_ftl::Hint;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// Mapping units that are copied as one.
const MOST_TOGETHER: u32 = 32;

/// Mapping units of discards that are looked at in one turn, and copied as one.
const MOST_DISCARDED: u32 = 1 << 14;

/// Copies under way to a member for each of its units.
const COPIES_OF_A_UNIT: usize = 4;

/// Time before the next try of a copy after one that has failed.
const PAUSE: Duration = Duration::from_millis(100);

/// Copies to a member until the pair ends.
pub(super) async fn run(pair: Rc<Pair>, member: Member) {
    let units = pair.member(member).geometry.unit_count();
    let copiers = (0..usize::from(units) * COPIES_OF_A_UNIT).map(|_| copy_in_turn(&pair, member));
    join_all(copiers).await;
}

async fn copy_in_turn(pair: &Rc<Pair>, member: Member) {
    while !pair.is_stopped() {
        let next = match pair.course.borrow().takes_copies(member) {
            true => pair.behind[member].next(MOST_TOGETHER),
            false => None,
        };
        let Some((image, range)) = next else {
            pair.wake_copies[member].notified().await;
            continue;
        };
        // Other copiers take the next ones meanwhile.
        pair.wake_copies[member].notify_one();
        let passage = pair.traffic.enter(image, range.clone()).await;
        if pair.is_stopped() || !pair.course.borrow().takes_copies(member) {
            continue;
        }
        let copied = copy(pair, member, image, range).await;
        drop(passage);
        if let Err(error) = copied {
            if is_fatal(&error) {
                pair.lose(member);
            }
            // One that is being built is lost already, until its copy ends with this error, too.
            let tasks = &pair.member(member).tasks;
            tasks.sleep_until(tasks.now() + PAUSE).await;
        }
        if pair.behind[member].is_empty() {
            pair.wake.notify_one();
        }
    }
}

/// Copies everything that a member is behind in. No client may write.
pub(super) async fn catch_up(pair: &Pair, member: Member) -> Result<(), VolumeError> {
    match copy_all(pair, member).await {
        Err(VolumeError::OutOfSpace { .. }) => {
            copy_discards(pair, member).await?;
            copy_all(pair, member).await
        }
        caught_up => caught_up,
    }
}

/// Mapping units that the data which a member lacks take of its space: not those of overwrites.
pub(super) fn growth(pair: &Pair, member: Member) -> u64 {
    let (core, other) = (pair.member(member), pair.member(partner(member)));
    let behind = &pair.behind[member];
    let staged = behind.staged_places().into_iter();
    let staged = staged.filter(|&(image, lba)| !holds(core, image, lba)).count();
    let marked = behind.marked().into_iter().flat_map(|(image, range)| {
        let size = core.map.borrow().images.get(image).map_or(0, |image| image.size);
        (range.start..range.end.min(size)).map(move |lba| (image, lba))
    });
    let grows = |&(image, lba): &(ImageId, u32)| {
        matches!(behind.source(image, lba), Some(Source::Partner))
            && !holds(core, image, lba)
            && holds(other, image, lba)
    };
    cast::wide(staged + marked.filter(grows).count())
}

/// Copies the discards that a member lacks, which make space for the data: neighbouring ones in one
/// frame, as one frame each would take more space than they make.
async fn copy_discards(pair: &Pair, member: Member) -> Result<(), VolumeError> {
    let (core, behind) = (pair.member(member), &pair.behind[member]);
    let other = pair.member(partner(member));
    let is_discarded = |image, lba| {
        matches!(behind.source(image, lba), Some(Source::Partner))
            && holds(core, image, lba)
            && !holds(other, image, lba)
    };
    for (image, range) in behind.marked() {
        let size = core.map.borrow().images.get(image).map_or(0, |image| image.size);
        let end = range.end.min(size);
        let mut at = range.start;
        while at < end {
            let most = end.min(at.saturating_add(MOST_DISCARDED));
            let Some(first) = (at..most).find(|&lba| is_discarded(image, lba)) else {
                at = most;
                core.tasks.runtime().turn().await;
                continue;
            };
            let most = end.min(first.saturating_add(MOST_DISCARDED));
            let behind_last = (first..most).find(|&lba| !is_discarded(image, lba)).unwrap_or(most);
            clear(core, image, first..behind_last).await?;
            behind.clear(image, &(first..behind_last));
            at = behind_last;
            core.tasks.runtime().turn().await;
        }
    }
    Ok(())
}

async fn copy_all(pair: &Pair, member: Member) -> Result<(), VolumeError> {
    let units = usize::from(pair.member(member).geometry.unit_count());
    while !pair.behind[member].is_empty() {
        pair.check_running()?;
        let mut together: Vec<(ImageId, Range<u32>)> = Vec::new();
        while together.len() < units * COPIES_OF_A_UNIT
            && let Some(next) = pair.behind[member].next(MOST_TOGETHER)
            && !together.contains(&next)
        {
            together.push(next);
        }
        if together.is_empty() {
            return Ok(());
        }
        let copies = together.into_iter().map(|(image, range)| copy(pair, member, image, range));
        join_all(copies).await.into_iter().collect::<Result<(), _>>()?;
    }
    Ok(())
}

/// Copies a range of a volume as far as the member still lacks it.
async fn copy(
    pair: &Pair,
    member: Member,
    image: ImageId,
    range: Range<u32>,
) -> Result<(), VolumeError> {
    let (core, behind) = (pair.member(member), &pair.behind[member]);
    let other = pair.member(partner(member));
    let size_in = |core: &Shared| core.map.borrow().images.get(image).map(|image| image.size);
    let Some(size) = size_in(core) else {
        // It was deleted, or is not there yet.
        behind.clear(image, &(0..u32::MAX));
        return Ok(());
    };
    // Beyond both ends there is nothing to copy. Beyond its own the member has to grow first.
    let end = size.max(size_in(other).unwrap_or(0));
    behind.clear(image, &(end..u32::MAX));
    if range.start >= size && range.start < end {
        let bytes = |units: u32| u64::from(units) * cast::wide(MAPPING_UNIT_BYTES);
        let (offset, end, size) = (bytes(range.start), bytes(range.end), bytes(size));
        return Err(VolumeError::BeyondEnd { offset, end, size });
    }
    let tenant = pair.tenant_of_copies(member, image);
    let (mut at, end) = (range.start, range.end.min(size));
    while at < end {
        let kind_at = |lba: u32| match behind.source(image, lba)? {
            Source::Staged(_) => Some(Kind::Staged),
            Source::Partner if holds(other, image, lba) => Some(Kind::Data),
            Source::Partner => Some(Kind::Zeros),
        };
        let kind = kind_at(at);
        let same = (at..end).take_while(|&lba| kind_at(lba) == kind).count();
        let run = at..at + cast::saturating_u32(same);
        at = run.end;
        match kind {
            None => continue,
            Some(Kind::Staged) => {
                let data = behind.staged(image, &run);
                writer::write(core, &tenant, run.start, &data, Hint::COLLECTION).await?;
            }
            Some(Kind::Data) => {
                let lost = transfer((other, image), (core, &tenant), run.clone()).await?;
                Figures::add(&pair.figures.lost, lost);
            }
            Some(Kind::Zeros) => clear(core, image, run.clone()).await?,
        }
        behind.clear(image, &run);
    }
    Ok(())
}

/// Where neighbouring mapping units come from that a member lacks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// From memory.
    Staged,
    /// From the partner.
    Data,
    /// The partner holds nothing there.
    Zeros,
}

/// Mapping units, in whole bytes.
pub(super) fn bytes_of(units: u32) -> usize {
    cast::index(units) * MAPPING_UNIT_BYTES
}
