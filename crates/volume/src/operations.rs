//! Operations and discards: changes that recovery must replay exactly where they were made among
//! the writes. No frame is appended between the frame of an operation and its effect.

use crate::core::Shared;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::Entry;
use crate::format::operation::Operation;
use crate::frames::Completion;
use crate::frontier;
use crate::image::{ImageId, Images};
use crate::placement;
use crate::stream::Stream;
use crate::writer::unit_for;
use softflash_base::{cast, checksum};

/// A change of the images or of what they hold.
pub(crate) enum Change {
    Operation(Operation),
    Discard { image: ImageId, lba: u32, count: u32 },
}

/// Writes and applies the change that `plan` makes of the images; on return it is programmed, which
/// is not yet durable.
pub(crate) async fn change<T>(
    core: &Shared,
    mut plan: impl FnMut(&Images) -> Result<(Change, T), VolumeError>,
) -> Result<T, VolumeError> {
    loop {
        // Room first: collection could not make any behind the gate.
        let stream = stream(core);
        let unit = unit_for(core, stream, 2 + core.geometry.page_units, None).await?;
        core.gate.wait().await;
        if frontier::room(core, unit, stream) < 2 + core.geometry.page_units {
            continue;
        }
        let (change, result) = plan(&core.map.borrow().images)?;
        core.gate.reset();
        let written = write(core, unit, stream, &change).await;
        if written == Ok(true) {
            apply(core, &change);
        }
        core.gate.set();
        match written {
            Ok(true) => return Ok(result),
            Ok(false) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The stream of the next change: discards and deletions make space, so they may use the reserve of
/// collection where clients have no room left.
fn stream(core: &Shared) -> Stream {
    match placement::least_loaded(core, Stream::Host) {
        Some(_) => Stream::Host,
        None => Stream::Collector,
    }
}

/// Appends the frame of a change. False if the superblock failed: another must be tried.
async fn write(
    core: &Shared,
    unit: u32,
    stream: Stream,
    change: &Change,
) -> Result<bool, VolumeError> {
    let mut building = frontier::begin(core, unit, stream, 1);
    match change {
        Change::Operation(operation) => {
            let bytes = operation.encode();
            let mut data = bytes.clone();
            data.resize(MAPPING_UNIT_BYTES, 0);
            let length = cast::saturating_u32(bytes.len());
            let unsummed = Entry::Operation { bytes: length, checksum: 0 };
            let checksum = checksum::checksum64(unsummed.seed(), &data);
            building.add(Entry::Operation { bytes: length, checksum }, &data);
        }
        Change::Discard { image, lba, count } => {
            building.add_without_data(Entry::Discard { image: *image, lba: *lba, count: *count });
        }
    }
    let completion: Completion = building.completion();
    let (buffer, entries) = building.finished(core.geometry.page_units);
    let appended = frontier::append(core, unit, stream, &entries, buffer, &completion);
    let appended = match appended {
        Ok(appended) => appended,
        Err(_) => return Ok(false),
    };
    let (sequence, block, first) = (appended.sequence, appended.block, appended.first);
    core.superblocks.pin(block, sequence);
    core.count_entries(1);
    let (result, _) = appended.programmed.await;
    if result.is_err() {
        frontier::give_up(core, block);
    }
    core.superblocks.end_frame(block, first);
    core.frames.end(sequence);
    completion.end(Ok(()));
    Ok(result.is_ok())
}

fn apply(core: &Shared, change: &Change) {
    let mut map = core.map.borrow_mut();
    match change {
        Change::Operation(operation) => map.apply(operation),
        Change::Discard { image, lba, count } => map.discard(*image, *lba, *count),
    }
    drop(map);
    core.space.notify_all();
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
    u32::try_from(bytes / unit).map_err(|_| bad("a volume has at most 16 TiB less 4096 bytes"))
}
