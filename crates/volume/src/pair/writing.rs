//! Writes and discards of clients: to both members, or to one while the other gets them later.

use super::Pair;
use super::behind::Behind;
use super::course::{Course, Member, partner};
use super::putting::{discard_at, is_fatal};
use crate::core::Shared;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::frames::Completion;
use crate::image::ImageId;
use crate::tenant::Tenant;
use crate::writer;
use futures_util::future::join;
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use softflash_ftl::Hint;
use std::ops::Range;
use std::rc::Rc;

/// What a client changes.
#[derive(Clone)]
enum Content {
    Data(Rc<[u8]>),
    Zeros,
}

/// A change of a range of a volume.
struct Request {
    image: ImageId,
    range: Range<u32>,
    content: Content,
    hint: Hint,
}

/// Writes mapping units of a volume; returns when each member that takes writes has them.
pub(crate) async fn write(
    pair: &Rc<Pair>,
    (image, lba): (ImageId, u32),
    data: &[u8],
    hint: Hint,
) -> Result<(), VolumeError> {
    let units = cast::saturating_u32(data.len() / MAPPING_UNIT_BYTES);
    let range = lba..lba.saturating_add(units);
    carry_out(pair, Request { image, range, content: Content::Data(data.into()), hint }).await
}

/// Lets mapping units of a volume read as zeros.
pub(crate) async fn discard(
    pair: &Rc<Pair>,
    image: ImageId,
    range: Range<u32>,
) -> Result<(), VolumeError> {
    let (content, hint) = (Content::Zeros, Hint::FOREGROUND);
    carry_out(pair, Request { image, range, content, hint }).await
}

/// Carries a change out in a task of its own: both members have it, or it is known which lacks it,
/// also if nobody waits any more.
async fn carry_out(pair: &Rc<Pair>, request: Request) -> Result<(), VolumeError> {
    let (shared, completion) = (Rc::clone(pair), Completion::default());
    let ended = completion.clone();
    pair.lead().tasks.spawn(async move {
        ended.end(apply(&shared, &request).await);
    });
    completion.wait().await
}

async fn apply(pair: &Rc<Pair>, request: &Request) -> Result<(), VolumeError> {
    let Request { image, range, .. } = request;
    loop {
        pair.check_running()?;
        let passage = pair.traffic.enter(*image, range.clone()).await;
        pair.check_running()?;
        if has_room_for_changes(pair) {
            check_space(pair, request)?;
            let result = to_writers(pair, request).await;
            drop(passage);
            pair.wake_copies.iter().for_each(|wake| wake.notify_one());
            match pair.lost_by(&result) {
                true => pair.found_alone().await,
                false => return result,
            }
            continue;
        }
        drop(passage);
        pair.turned.notified().await;
    }
}

impl Pair {
    /// Whether a write has failed because the only member that took it takes no more, and the other
    /// one will.
    fn lost_by(self: &Rc<Self>, result: &Result<(), VolumeError>) -> bool {
        let writer = match &*self.course.borrow() {
            course @ Course::Turns(_) => course.lead(),
            Course::Together | Course::Alone { .. } => return false,
        };
        let is_lost = result.as_ref().is_err_and(is_fatal);
        if is_lost {
            self.lose(writer);
        }
        is_lost && !self.is_lost(partner(writer))
    }
}

/// Whether the members that take writes can record one more change before the next turn.
fn has_room_for_changes(pair: &Pair) -> bool {
    let writers = pair.course.borrow().writers();
    let mut has_room = true;
    for member in [0, 1].into_iter().filter(|&member| writers[member]) {
        let (changed, most) = pair.changed(member);
        // The first change begins the time until the next turn.
        if changed == 0 || 2 * changed >= most {
            pair.wake.notify_one();
        }
        has_room &= changed < most;
    }
    has_room
}

/// Refuses a write for which a member has no space, before the other one has it: that which gets it
/// later, or either of both.
fn check_space(pair: &Rc<Pair>, request: &Request) -> Result<(), VolumeError> {
    let Content::Data(_) = request.content else { return Ok(()) };
    let course = pair.course.borrow();
    match &*course {
        Course::Turns(_) => {
            let later = partner(course.lead());
            if pair.member(later).is_worn_out(None) {
                drop(course);
                pair.lose(later);
                return Ok(());
            }
            check_space_of(pair, later, request)
        }
        Course::Together => [0, 1].into_iter().try_for_each(|of| check_space_of(pair, of, request)),
        Course::Alone { .. } => Ok(()),
    }
}

fn check_space_of(pair: &Pair, member: Member, request: &Request) -> Result<(), VolumeError> {
    let core = pair.member(member);
    let map = core.map.borrow();
    let Some(volume) = map.images.get(request.image) else { return Ok(()) };
    let grows = request.range.clone().filter(|&lba| map.grows(volume, lba)).count();
    // What either lacks takes space of this one, or of a write that replaces it.
    let waiting: u64 = pair.behind.iter().map(Behind::units).sum();
    let growing = u64::from(core.space.growing().units());
    let needed = u64::from(map.used()) + growing + waiting + cast::wide(grows);
    match grows > 0 && needed > core.space.usable().into() {
        true => Err(core.out_of_space(map.used())),
        false => Ok(()),
    }
}

async fn to_writers(pair: &Rc<Pair>, request: &Request) -> Result<(), VolumeError> {
    let writers = pair.course.borrow().writers();
    match writers {
        [true, true] => {
            let both = join(to_member(pair, 0, request), to_member(pair, 1, request)).await;
            settle_both(pair, request, both)
        }
        _ => {
            let member = usize::from(writers[1]);
            let result = to_member(pair, member, request).await;
            settle_one(pair, request, member, &result);
            result
        }
    }
}

async fn to_member(pair: &Pair, member: Member, request: &Request) -> Result<(), VolumeError> {
    let core = pair.member(member);
    // The quota counts once.
    let tenant = match pair.course.borrow().lead() == member {
        true => tenant(core, request.image),
        false => pair.tenant_of_copies(member, request.image),
    };
    put(core, &tenant, request).await
}

async fn put(core: &Shared, tenant: &Rc<Tenant>, request: &Request) -> Result<(), VolumeError> {
    let Request { image, range, content, hint } = request;
    match content {
        Content::Data(data) => writer::write(core, tenant, range.start, data, *hint).await,
        Content::Zeros => discard_at(core, *image, range.clone()).await,
    }
}

fn tenant(core: &Shared, image: ImageId) -> Rc<Tenant> {
    core.clients.tenant(image, &core.map.borrow().images)
}

/// Notes what the members lack after a write to both.
fn settle_both(
    pair: &Rc<Pair>,
    request: &Request,
    both: (Result<(), VolumeError>, Result<(), VolumeError>),
) -> Result<(), VolumeError> {
    let Request { image, range, .. } = request;
    match both {
        (Ok(()), Ok(())) => {
            pair.behind.iter().for_each(|behind| behind.clear(*image, range));
            Ok(())
        }
        (Ok(()), Err(error)) => settle_failed(pair, request, 1, error),
        (Err(error), Ok(())) => settle_failed(pair, request, 0, error),
        (Err(error), Err(_)) => {
            disagree(pair, request, 0);
            Err(error)
        }
    }
}

/// One member has failed to write what the other has. If it takes no more writes at all, the pair
/// goes on without it.
fn settle_failed(
    pair: &Rc<Pair>,
    request: &Request,
    failed: Member,
    error: VolumeError,
) -> Result<(), VolumeError> {
    let Request { image, range, .. } = request;
    pair.behind[failed].mark(*image, range.clone());
    pair.behind[partner(failed)].clear(*image, range);
    match is_fatal(&error) {
        true => {
            pair.lose(failed);
            Ok(())
        }
        false => Err(error),
    }
}

/// A member has failed a write of which it may have a part: its data count where it lacked nothing.
fn disagree(pair: &Pair, request: &Request, member: Member) {
    let Request { image, range, .. } = request;
    let (own, other) = (&pair.behind[member], &pair.behind[partner(member)]);
    let is_known =
        |lba: u32| own.source(*image, lba).is_some() || other.source(*image, lba).is_some();
    let unknown = range.clone().filter(|&lba| !is_known(lba));
    unknown.for_each(|lba| other.mark(*image, lba..lba + 1));
}

/// Notes what the members lack after a write to one.
fn settle_one(
    pair: &Rc<Pair>,
    request: &Request,
    member: Member,
    result: &Result<(), VolumeError>,
) {
    let Request { image, range, content, .. } = request;
    let (own, later) = (&pair.behind[member], &pair.behind[partner(member)]);
    if matches!(*pair.course.borrow(), Course::Alone { builds: false, .. }) {
        return;
    }
    match (result, content) {
        (Ok(()), Content::Data(data)) => {
            for (lba, unit) in range.clone().zip(data.chunks_exact(MAPPING_UNIT_BYTES)) {
                if planted::bug(Bug::OlderStagedWriteWins) && later.lacks(*image, &(lba..lba + 1)) {
                    continue;
                }
                later.stage(*image, lba, unit);
            }
            own.clear(*image, range);
        }
        (Ok(()), Content::Zeros) if planted::bug(Bug::DiscardOfOneSet) => {}
        (Ok(()), Content::Zeros) => {
            later.mark(*image, range.clone());
            own.clear(*image, range);
        }
        (Err(_), _) => disagree(pair, request, member),
    }
    if later.staged_bytes().1 {
        pair.wake.notify_one();
    }
}
