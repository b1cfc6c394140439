//! Writes of clients: mapping units are gathered in a frame, which is appended to the least loaded
//! unit. The map names their new slots at once; reads of them wait for the frame.

use crate::classes::numbers::NO_HINT;
use crate::core::{Core, Shared};
use crate::domain_map::low;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::{Entry, data_seed};
use crate::frames::Completion;
use crate::frontier::{self, Appended};
use crate::open_frame::OpenFrame;
use crate::placement;
use crate::quota::{self, Inside};
use crate::stream::Stream;
use crate::tenant::{Growth, Tenant};
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, cast, checksum};
use softflash_ftl::Hint;
use softflash_runtime::yield_now;
use std::rc::Rc;

/// A frame that has been appended.
pub(crate) struct Sent {
    pub appended: Appended,
    pub entries: Vec<Entry>,
    pub completion: Completion,
}

/// Appends a frame, to another unit if its own takes no more data. `prepare` sees the entries
/// immediately before the frame is appended; the caller changes the map immediately after.
pub(crate) async fn send(
    core: &Shared,
    open_frame: OpenFrame,
    mut prepare: impl FnMut(&mut [Entry]),
) -> Result<Sent, VolumeError> {
    let (mut unit, mut stream, hint) = (open_frame.unit, open_frame.stream, open_frame.hint);
    let completion = open_frame.completion();
    let (mut buffer, mut entries) = open_frame.finished(core.geometry.page_units);
    let needed = cast::saturating_u32(buffer.len() / MAPPING_UNIT_BYTES);
    loop {
        core.order.opened().await;
        if frontier::room(core, unit, stream) >= needed {
            prepare(&mut entries);
            match frontier::append(core, unit, stream, hint, &entries, buffer, &completion) {
                Ok(appended) => return Ok(Sent { appended, entries, completion }),
                Err((VolumeError::Flash(error), back)) => {
                    tracing::warn!(%error, "a superblock takes no more frames; another does");
                    buffer = back;
                }
                Err((error, _)) => return Err(error),
            }
        }
        (unit, stream) = unit_for(core, stream, needed, Some(unit)).await?;
    }
}

/// Waits for a unit with an open superblock of a stream that has room for a frame; of another class
/// if no superblock can be opened for its own.
pub(crate) async fn unit_for(
    core: &Shared,
    stream: Stream,
    needed: u32,
    own: Option<u32>,
) -> Result<(u32, Stream), VolumeError> {
    let moves = matches!(stream, Stream::Collector(_) | Stream::Recovery);
    // The releases that there had been when collection was woken.
    let mut woken_after = None;
    loop {
        core.tasks.check_running()?;
        core.order.works().await;
        // Collection moves data inside their unit, so that it always ends, unless that leaves.
        let own = own.filter(|&own| moves && !core.space.is_draining(own));
        let chosen = own.or_else(|| placement::unit_for(core, stream));
        if chosen.is_none() && placement::is_held(core, stream) {
            core.space.changed().await;
            continue;
        }
        if let Some(unit) = chosen {
            if frontier::room(core, unit, stream) >= needed {
                return Ok((unit, stream));
            }
            if frontier::room(core, unit, stream) > 0 {
                frontier::close_covered(core, unit, stream);
            }
            if frontier::open(core, unit, stream)? {
                return Ok((unit, stream));
            }
        }
        if let Some(found) = frontier::other_class(core, stream, needed, own) {
            return Ok(found);
        }
        if core.is_worn_out(own) {
            return Err(VolumeError::WornOut);
        }
        let releases = core.counters().released;
        if !core.releases_wait(stream) {
            // Collection and the map have only releases to wait for, clients collection, too.
            let is_vain = woken_after == Some(releases) && core.nothing_is_collected();
            if !matches!(stream, Stream::Host(_)) || is_vain {
                return Err(core.out_of_space(core.map.borrow().used()));
            }
        }
        // A root that has failed for want of space needs a release first.
        if woken_after != Some(releases) || !core.roots.has_failed() {
            core.ask_for_releases();
        }
        if woken_after != Some(releases) {
            woken_after = Some(releases);
            core.wake_collection();
        }
        core.space.changed().await;
    }
}

/// Writes mapping units of a volume from `lba` on, in frames that are at least as urgent as this
/// hint; returns when they are programmed, which is not yet durable.
pub(crate) async fn write(
    core: &Shared,
    tenant: &Rc<Tenant>,
    lba: u32,
    data: &[u8],
    hint: Hint,
) -> Result<(), VolumeError> {
    let volume = tenant.volume;
    let units = cast::saturating_u32(data.len() / MAPPING_UNIT_BYTES);
    let _outstanding = core.clients.classes().predicted().map(|predicted| predicted.begin(units));
    let mut waits: Vec<Completion> = Vec::new();
    let mut refused = Ok(());
    for (lba, unit) in (lba..).zip(data.chunks_exact(MAPPING_UNIT_BYTES)) {
        let sum = checksum::checksum64(data_seed(volume, lba), unit);
        let entry = Entry::Data { image: volume, lba, checksum: sum };
        let completion = match add(core, tenant, lba, entry, unit, hint).await {
            Ok(completion) => completion,
            Err(error) => {
                // Those added before are written nevertheless: nothing changes after the return.
                refused = Err(error);
                break;
            }
        };
        if waits.last().is_none_or(|last| !last.is(&completion)) {
            waits.push(completion);
        }
    }
    // Lets tasks that are ready add their writes to the frame.
    yield_now().await;
    send_if_idle(core);
    let mut result = refused;
    for completion in waits {
        let ended = completion.wait().await;
        result = result.and(ended);
    }
    result
}

/// Lets reads of a mapping unit fail, as its newest data are lost: as a write of data that fit no
/// checksum.
pub(crate) async fn write_lost(
    core: &Shared,
    tenant: &Rc<Tenant>,
    lba: u32,
) -> Result<(), VolumeError> {
    let data = [0; MAPPING_UNIT_BYTES];
    let checksum = !checksum::checksum64(data_seed(tenant.volume, lba), &data);
    let entry = Entry::Data { image: tenant.volume, lba, checksum };
    let completion = add(core, tenant, lba, entry, &data, Hint::COLLECTION).await?;
    send_if_idle(core);
    completion.wait().await
}

/// Adds a mapping unit to the frame that is being filled.
async fn add(
    core: &Shared,
    tenant: &Rc<Tenant>,
    lba: u32,
    entry: Entry,
    data: &[u8],
    hint: Hint,
) -> Result<Completion, VolumeError> {
    let mut growth = growth(core, tenant, lba).await?;
    let class = class_of(core, tenant, lba, hint);
    loop {
        core.tasks.check_running()?;
        if !core.order.is_open() {
            core.order.opened().await;
            continue;
        }
        core.map.borrow().images.get(tenant.volume).ok_or(VolumeError::Deleted)?;
        if let Some((completion, is_full)) =
            core.clients.frames().add(class, hint, entry, data, &mut growth)
        {
            if is_full {
                send_frame(core, class);
            }
            return Ok(completion);
        }
        let (unit, stream) = unit_for(core, Stream::Host(class), 2, None).await?;
        let takes_frame = frontier::room(core, unit, stream) >= 2 && core.order.is_open();
        let begin = || {
            let mut frame = frontier::begin(core, unit, stream, core.config.frame_units);
            frame.hint = hint.lasting(frame.hint.lifetime);
            frame
        };
        core.clients.frames().begin(class, || takes_frame.then(begin));
    }
}

/// The class of a mapping unit: that of its hints, or without any the predicted one.
fn class_of(core: &Core, tenant: &Tenant, lba: u32, hint: Hint) -> u8 {
    let classes = core.clients.classes();
    let of_hints = classes.of_write(tenant.settings().lifetime, hint.lifetime);
    let (NO_HINT, Some(predicted)) = (of_hints, classes.predicted()) else { return of_hints };
    let map = core.map.borrow();
    let Some(volume) = map.images.get(tenant.volume) else { return NO_HINT };
    let (logical, slot) = map.place(volume, lba);
    let old = slot.map(|slot| core.geometry.block_of(slot));
    classes.of_predicted(predicted.of_write(logical, old))
}

/// What a mapping unit takes of the space, once there is some for it.
async fn growth(
    core: &Shared,
    tenant: &Rc<Tenant>,
    lba: u32,
) -> Result<Option<Growth>, VolumeError> {
    loop {
        match quota::count(core, tenant, lba)? {
            Inside::Yes(growth) => return Ok(growth),
            Inside::Unknown => {
                let before = core.space.growing().units();
                for class in core.clients.classes().round_robin() {
                    send_frame(core, class);
                }
                if core.space.growing().units() >= before {
                    core.space.growing().fewer().await;
                }
            }
        }
    }
}

/// Appends the frames that are being filled, unless the device has enough frames to work on: then
/// the end of one of them does.
fn send_if_idle(core: &Shared) {
    let most = u32::from(core.geometry.unit_count()) * core.config.frames_per_unit;
    for class in core.clients.classes().round_robin() {
        if core.clients.frames().under_way() >= most {
            return;
        }
        if send_frame(core, class) {
            core.clients.classes().served(class);
        }
    }
}

/// Appends the frame of a class that is being filled, if there is one, in a task of its own: its
/// other writers wait for it, too. It takes its pages at once, so that the next frame begins with
/// as much room as there is left. Returns whether there was one.
fn send_frame(core: &Shared, class: u8) -> bool {
    let Some(open_frame) = core.clients.frames().take(class) else { return false };
    let shared = Rc::clone(core);
    core.tasks.spawn_begun(async move {
        let completion = open_frame.completion();
        let result = send_and_finish(&shared, open_frame).await;
        shared.clients.frames().end();
        completion.end(result);
        yield_now().await;
        send_if_idle(&shared);
    });
    true
}

async fn send_and_finish(core: &Shared, mut open_frame: OpenFrame) -> Result<(), VolumeError> {
    let growths = std::mem::take(&mut open_frame.growths);
    let sent = send(core, open_frame, |_| {}).await?;
    map_entries(core, &sent.appended, &sent.entries);
    drop(growths);
    finish(core, sent).await
}

/// Names the slots of a frame's data in the map.
fn map_entries(core: &Core, appended: &Appended, entries: &[Entry]) {
    let mut map = core.map.borrow_mut();
    for (slot, entry) in (appended.first + 1..).zip(entries) {
        if let Entry::Data { image, lba, checksum } = *entry {
            map.write(image, lba, slot, checksum);
        }
    }
    drop(map);
    core.count_entries(entries.len());
}

/// Waits until the data of a frame are programmed: after a failure, those that the map still names
/// are appended elsewhere.
pub(crate) async fn finish(core: &Shared, sent: Sent) -> Result<(), VolumeError> {
    let Sent { mut appended, entries, .. } = sent;
    let (result, buffer) = appended.programmed(core).await;
    let result = match (result, buffer) {
        (Ok(()), _) => Ok(()),
        (Err(_), _) if planted::bug(Bug::FailedFrameDropped) => Ok(()),
        (Err(error), Some(buffer)) => {
            tracing::warn!(%error, "the data of a frame are written elsewhere");
            rewrite(core, appended.first, &entries, &buffer).await
        }
        (Err(error), None) => Err(error.into()),
    };
    if result.is_err() {
        core.order.data_failed(appended.sequence);
    }
    frontier::end(core, &appended);
    result
}

/// Appends the data that the map names at the slots of a failed frame to other superblocks;
/// returns the first error.
async fn rewrite(
    core: &Shared,
    first: u32,
    entries: &[Entry],
    data: &IoBuf,
) -> Result<(), VolumeError> {
    let units = data.chunks_exact(MAPPING_UNIT_BYTES).skip(1).zip(first + 1..).zip(entries);
    let mut result = Ok(());
    for ((unit, slot), entry) in units {
        let mut from = slot;
        for attempt in 1.. {
            match rewrite_unit(core, from, *entry, unit).await {
                Ok(()) => break,
                Err((error, _))
                    if attempt == MOST_REWRITES
                        || matches!(
                            error,
                            VolumeError::OutOfSpace { .. } | VolumeError::WornOut
                        ) =>
                {
                    result = result.and(Err(error));
                    break;
                }
                Err((_, at)) => from = at,
            }
        }
    }
    result
}

/// Attempts to write a mapping unit elsewhere: more mean that the device is lost.
const MOST_REWRITES: usize = 8;

/// Appends a mapping unit elsewhere, if the map still names its slot; returns the error and the
/// slot that the map names then. It waits for nothing: flushes and checkpoints, which make space,
/// wait for it, and so do operations.
async fn rewrite_unit(
    core: &Shared,
    from: u32,
    entry: Entry,
    data: &[u8],
) -> Result<(), (VolumeError, u32)> {
    let holder = core.map.borrow().holder(from);
    let entry = match (holder, entry) {
        (Some((image, lba)), Entry::Data { checksum, .. }) => Entry::Data { image, lba, checksum },
        (Some((image, lba)), Entry::Moved { checksum, .. }) => {
            Entry::Moved { image, lba, checksum }
        }
        _ => return Ok(()),
    };
    let unit = frontier::unit_now(core, 2).map_err(|error| (error, from))?;
    let Some(unit) = unit else {
        return Err((core.out_of_space(core.map.borrow().used()), from));
    };
    let stream = Stream::Collector(NO_HINT);
    let mut open_frame = frontier::begin(core, unit, stream, 1);
    open_frame.add(entry, data);
    let (completion, hint) = (open_frame.completion(), open_frame.hint);
    let (buffer, entries) = open_frame.finished(core.geometry.page_units);
    let appended = frontier::append(core, unit, stream, hint, &entries, buffer, &completion);
    let appended = appended.map_err(|(error, _)| (error, from))?;
    core.order.rewrite_begun();
    let to = appended.first + 1;
    core.map.borrow_mut().relocate(from, to);
    core.count_entries(1);
    frontier::end_alone(core, appended, &completion).await.map_err(|error| (error, to))
}

/// The lower half of a checksum, as the map keeps it, fits the data.
pub(crate) fn is_whole(seed: u64, data: &[u8], sum: u32) -> bool {
    low(checksum::checksum64(seed, data)) == sum
}
