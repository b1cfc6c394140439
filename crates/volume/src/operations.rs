//! Operations and discards: changes that recovery must replay exactly where they were made among
//! the writes. No frame is appended between the frame of an operation and its effect.

use crate::classes::numbers::NO_HINT;
use crate::core::{Core, Shared};
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::Entry;
use crate::format::operation::Operation;
use crate::frames::Completion;
use crate::frontier;
use crate::image::{ImageId, Images};
use crate::stream::Stream;
use crate::writer::unit_for;
use softflash_base::{cast, checksum};
use std::rc::Rc;

/// A change of the images or of their contents.
pub(crate) enum Change {
    Operation(Operation),
    Discard { image: ImageId, lba: u32, count: u32 },
}

/// Writes and applies the change that `plan` makes of the images; on return it is programmed, which
/// is not yet durable.
pub(crate) async fn change<T>(
    core: &Shared,
    plan: impl Fn(&Images) -> Result<(Change, T), VolumeError>,
) -> Result<T, VolumeError> {
    let needed = 2 + core.geometry.page_units;
    loop {
        // Room first: collection could not make any behind the gate.
        let (unit, stream) = unit_for(core, stream(core), needed, None).await?;
        core.order.opened().await;
        let gate = core.order.close();
        // Data of failed frames are written elsewhere before the operation: behind it they would be
        // replayed as newer than it.
        core.order.all_ended().await;
        if frontier::room(core, unit, stream) < needed {
            continue;
        }
        let (change, result) = plan(&core.map.borrow().images)?;
        // In a task of its own: the frame ends also if nobody waits any more.
        let (shared, completion) = (Rc::clone(core), Completion::default());
        let ended = completion.clone();
        core.tasks.spawn(async move {
            let written = write(&shared, unit, stream, &change).await;
            if written.is_ok() {
                apply(&shared, &change);
            }
            drop(gate);
            if written.is_err() {
                // Recovery could read a frame that was reported as failed.
                shared.tasks.ask_for_checkpoint();
            }
            ended.end(written);
        });
        completion.wait().await?;
        return Ok(result);
    }
}

/// The stream of the next change. Changes may use the reserve of collection where clients have no
/// room left: most of them make space.
fn stream(core: &Core) -> Stream {
    let mut units = core.geometry.numbers();
    match units.any(|unit| frontier::can_append(core, unit, Stream::Host(NO_HINT))) {
        true => Stream::Host(NO_HINT),
        false => Stream::Collector(NO_HINT),
    }
}

/// Appends the frame of a change, elsewhere if its program fails.
async fn write(
    core: &Shared,
    mut unit: u32,
    mut stream: Stream,
    change: &Change,
) -> Result<(), VolumeError> {
    let needed = 2 + core.geometry.page_units;
    let mut last = VolumeError::WornOut;
    for _ in 0..MOST_ATTEMPTS {
        // Padding takes room, too.
        if frontier::room(core, unit, stream) < needed {
            // Without room elsewhere the reason why it failed here counts.
            let Some(next) = frontier::unit_now(core, needed)? else { return Err(last) };
            (unit, stream) = (next, Stream::Collector(NO_HINT));
        }
        match write_once(core, unit, stream, change).await {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Attempts to write a change: more mean that the device is lost.
const MOST_ATTEMPTS: usize = 8;

async fn write_once(
    core: &Shared,
    unit: u32,
    stream: Stream,
    change: &Change,
) -> Result<(), VolumeError> {
    let mut open_frame = frontier::begin(core, unit, stream, 1);
    match change {
        Change::Operation(operation) => {
            let bytes = operation.encode();
            let length = cast::saturating_u32(bytes.len());
            let mut data = bytes;
            data.resize(MAPPING_UNIT_BYTES, 0);
            let unsummed = Entry::Operation { bytes: length, checksum: 0 };
            let checksum = checksum::checksum64(unsummed.seed(), &data);
            open_frame.add(Entry::Operation { bytes: length, checksum }, &data);
        }
        Change::Discard { image, lba, count } => {
            open_frame.add_without_data(Entry::Discard { image: *image, lba: *lba, count: *count });
        }
    }
    let (completion, hint) = (open_frame.completion(), open_frame.hint);
    let (buffer, entries) = open_frame.finished(core.geometry.page_units);
    let appended = frontier::append(core, unit, stream, hint, &entries, buffer, &completion);
    let appended = appended.map_err(|(error, _)| error)?;
    core.count_entries(1);
    frontier::end_alone(core, appended, &completion).await
}

fn apply(core: &Shared, change: &Change) {
    let mut map = core.map.borrow_mut();
    match change {
        Change::Operation(operation) => map.apply(operation),
        Change::Discard { image, lba, count } => map.discard(*image, *lba, *count),
    }
    drop(map);
    if let Change::Operation(_) = change {
        core.adopt_settings();
    }
    // What was discarded may make superblocks worth collecting.
    core.tasks.collection().wake_all();
}

/// Names have 1 to 64 of these characters, so that they fit exports, files and commands.
pub(crate) fn check_name(name: &str) -> Result<(), VolumeError> {
    let reason = if name.is_empty() || name.len() > 64 {
        "names have 1 to 64 characters"
    } else if !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        "names have letters, digits, `-`, `_` and `.` only"
    } else if name.starts_with(['-', '.']) {
        "names do not start with `-` or `.`"
    } else {
        return Ok(());
    };
    Err(VolumeError::BadName { name: name.to_owned(), reason })
}

/// The size of a volume in mapping units.
pub(crate) fn check_size(bytes: u64) -> Result<u32, VolumeError> {
    let unit = cast::wide(MAPPING_UNIT_BYTES);
    let bad = |reason| VolumeError::BadSize { bytes, reason };
    if bytes == 0 || !bytes.is_multiple_of(unit) {
        return Err(bad("sizes are multiples of 4096 bytes, and not 0"));
    }
    // Leaves of 1024 mapping units are numbered with 32 bits in all images together.
    u32::try_from(bytes / unit)
        .map_err(|_| bad("a volume has at most 16 TiB less 4096 bytes; use several volumes"))
}
