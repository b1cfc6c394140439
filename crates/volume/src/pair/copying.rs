//! Copies what a member of a pair is behind in.

use super::Pair;
use super::behind::Source;
use super::course::{Figures, Member, partner};
use super::putting::{discard_at, is_fatal};
use crate::core::Shared;
use crate::domain_map::Found;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::image::ImageId;
use crate::reader;
use crate::writer;
use futures_util::future::join_all;
use softflash_base::cast;
use softflash_ftl::Hint;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// Mapping units that are copied as one.
const MOST_TOGETHER: u32 = 32;

/// Copies under way to a member for each of its units.
const COPIES_OF_A_UNIT: usize = 4;

/// Time before the next try of a copy for which there is no space.
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
        match copied {
            Ok(()) => {}
            Err(error) if is_fatal(&error) => pair.lose(member),
            Err(_) => {
                let tasks = &pair.member(member).tasks;
                tasks.sleep_until(tasks.now() + PAUSE).await;
            }
        }
        if pair.behind[member].is_empty() {
            pair.wake.notify_one();
        }
    }
}

/// Copies everything that a member is behind in. No client may write.
pub(super) async fn catch_up(pair: &Pair, member: Member) -> Result<(), VolumeError> {
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

/// A part of a range that comes from one source.
enum Part {
    Data(Vec<u8>),
    Zeros,
    Lost,
}

/// Copies a range of a volume as far as the member still lacks it.
async fn copy(
    pair: &Pair,
    member: Member,
    image: ImageId,
    range: Range<u32>,
) -> Result<(), VolumeError> {
    let core = pair.member(member);
    let Some(size) = core.map.borrow().images.get(image).map(|image| image.size) else {
        // It was deleted, or is not there yet.
        pair.behind[member].clear(image, &(0..u32::MAX));
        return Ok(());
    };
    // Beyond the end there is nothing to copy.
    pair.behind[member].clear(image, &(size..u32::MAX));
    let inside = range.start..range.end.min(size);
    let mut parts: Vec<(u32, u32, Part)> = Vec::new();
    for lba in inside {
        let Some(source) = pair.behind[member].source(image, lba) else { continue };
        let part = match source {
            Source::Staged(unit) => Part::Data(unit.to_vec()),
            Source::Partner => from_partner(pair, member, image, lba).await?,
        };
        match (parts.last_mut(), part) {
            (Some((first, count, Part::Data(all))), Part::Data(more)) if *first + *count == lba => {
                *count += 1;
                all.extend_from_slice(&more);
            }
            (Some((first, count, Part::Zeros)), Part::Zeros) if *first + *count == lba => {
                *count += 1;
            }
            (_, part) => parts.push((lba, 1, part)),
        }
    }
    for (lba, count, part) in parts {
        write(pair, member, (image, lba), count, part).await?;
    }
    pair.behind[member].clear(image, &range);
    Ok(())
}

/// What the partner has at a mapping unit.
async fn from_partner(
    pair: &Pair,
    member: Member,
    image: ImageId,
    lba: u32,
) -> Result<Part, VolumeError> {
    let core = pair.member(partner(member));
    if core.map.borrow().find(image, lba) == Found::Zeros {
        return Ok(Part::Zeros);
    }
    let mut data = vec![0; MAPPING_UNIT_BYTES];
    match reader::read(core, image, lba, &mut data, Hint::COLLECTION).await {
        Ok(()) => Ok(Part::Data(data)),
        Err(VolumeError::DataLoss { reason, .. }) => {
            Figures::add(&pair.figures.lost, 1);
            tracing::error!(%image, lba, reason, "the newest data of a pair are lost");
            Ok(Part::Lost)
        }
        Err(error) => Err(error),
    }
}

async fn write(
    pair: &Pair,
    member: Member,
    (image, lba): (ImageId, u32),
    count: u32,
    part: Part,
) -> Result<(), VolumeError> {
    let core: &Shared = pair.member(member);
    let tenant = pair.tenant_of_copies(member, image);
    match part {
        Part::Data(data) => writer::write(core, &tenant, lba, &data, Hint::COLLECTION).await,
        Part::Zeros => {
            let holds = |lba: u32| core.map.borrow().find(image, lba) != Found::Zeros;
            match (lba..lba + count).any(holds) {
                true => discard_at(core, image, lba..lba + count).await,
                false => Ok(()),
            }
        }
        // Older data must not come back: reads of it fail here, too.
        Part::Lost => writer::write_lost(core, &tenant, lba).await,
    }
}

/// Mapping units, in whole bytes.
pub(super) fn bytes_of(units: u32) -> usize {
    cast::index(units) * MAPPING_UNIT_BYTES
}
