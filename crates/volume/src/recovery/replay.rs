//! Applies the frames behind a root in their order.

use super::report::RecoveryReport;
use super::uncertain::Protected;
use crate::core::Core;
use crate::error::VolumeError;
use crate::format::entry::Entry;
use crate::format::operation::Operation;
use crate::format::record::{Contents, Record, Run};
use crate::frame_scan::{FoundFrame, read_checked_with};
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use std::collections::BTreeSet;

/// Applies the frames behind the root in their order, and the records of lost ones among them. Data
/// that were never durable are compared with their checksums first: a power cut may have torn them.
pub(super) async fn replay(
    core: &Core,
    frames: &[FoundFrame],
    lost: &[Record],
    uncertain: &BTreeSet<u64>,
    durable_below: u64,
    report: &mut RecoveryReport,
) -> Result<Replayed, VolumeError> {
    let mut replayed = Replayed::default();
    let mut lost = lost.iter().peekable();
    for frame in frames {
        while let Some(record) = lost.next_if(|record| record.sequence < frame.head.sequence) {
            apply_lost(core, record);
        }
        report.frames += 1;
        core.superblocks.pin(frame.block, frame.head.sequence);
        core.map.borrow().prefetch_all(&frame.head.entries);
        let was_durable = frame.head.sequence < durable_below;
        let is_uncertain = uncertain.contains(&frame.head.sequence);
        for (entry, slot) in frame.slots() {
            let is_operation = matches!(entry, Entry::Operation { .. });
            let may_be_torn = !was_durable && !planted::bug(Bug::TornUnitsTaken);
            let read = match entry.checksum() {
                Some(sum) if may_be_torn || is_operation || is_uncertain => {
                    Some(read_checked_with(core, slot, &seeds(core, entry), sum).await)
                }
                _ => None,
            };
            match read {
                Some(None) if !was_durable => {
                    report.torn += 1;
                    continue;
                }
                Some(None) if is_operation => {
                    match recorded_operation(frames, frame.head.change) {
                        Some(operation) => core.map.borrow_mut().apply(&operation),
                        None => return Err(unreadable(core, slot)),
                    }
                    continue;
                }
                // Data that were durable are named by the map: a read says that they are lost.
                _ => {}
            }
            if !was_durable && is_of_another(core, entry) {
                continue;
            }
            let data = read.flatten();
            let bytes = data.as_deref().unwrap_or_default();
            if is_uncertain {
                replayed.protected.add(core, entry, operation(bytes, entry));
            }
            apply(core, entry, slot, bytes);
            if is_uncertain
                && matches!(entry, Entry::Data { .. } | Entry::Moved { .. })
                && let Some(data) = data
            {
                replayed.read.push((slot, data));
            }
        }
    }
    lost.for_each(|record| apply_lost(core, record));
    Ok(replayed)
}

/// Whether an entry names moved data that are not those of the image. The frame of an operation
/// before it, which gave them to the image, was not durable and is not there: without a rollback, a
/// volume has other data than its snapshot. They are where they were, too: their superblock is
/// released only once both frames are durable.
fn is_of_another(core: &Core, entry: Entry) -> bool {
    let Entry::Moved { image, lba, checksum } = entry else { return false };
    !core.map.borrow().shows(image, lba, checksum) && !planted::bug(Bug::MovesTakenForTheImages)
}

/// The operation of a frame whose own copy of it is lost.
fn recorded_operation(frames: &[FoundFrame], change: u64) -> Option<Operation> {
    let mut records = frames.iter().flat_map(|frame| &frame.head.records);
    let record = records.find(|record| record.change == change && change > 0)?;
    match &record.contents {
        Contents::Operation(bytes) => Operation::decode(bytes),
        Contents::Data(_) | Contents::Discard { .. } => None,
    }
}

fn unreadable(core: &Core, slot: u32) -> VolumeError {
    let superblock = core.superblocks.handle(core.geometry.block_of(slot));
    let at = superblock.map_or_else(String::new, |superblock| format!(" in {superblock}"));
    let page = core.geometry.page_of(slot).0;
    let reason = format!("a durable change of volumes or snapshots{at}, page {page}, is lost");
    VolumeError::Damaged { reason }
}

/// Applies a lost frame: its discard or operation, or that its data are lost.
fn apply_lost(core: &Core, record: &Record) {
    let mut map = core.map.borrow_mut();
    match &record.contents {
        Contents::Data(runs) => {
            for Run { image, lba, count, moved } in runs.iter().copied() {
                for lba in (lba..).take(count.into()) {
                    match moved {
                        true => map.lose_moved(image, lba),
                        false => map.lose(image, lba),
                    }
                }
            }
        }
        Contents::Discard { image, lba, count } => map.discard(*image, *lba, *count),
        Contents::Operation(bytes) => match Operation::decode(bytes) {
            Some(operation) => map.apply(&operation),
            None => tracing::error!("an operation is not decodable; it is left out"),
        },
    }
}

fn seeds(core: &Core, entry: Entry) -> Vec<u64> {
    match entry {
        Entry::Data { image, lba, .. } | Entry::Moved { image, lba, .. } => {
            core.map.borrow().seeds_of(image, lba).collect()
        }
        entry => vec![entry.seed()],
    }
}

/// The results of a replay about uncertain frames.
#[derive(Default)]
pub(super) struct Replayed {
    pub protected: Protected,
    /// Slots of their data, with the data.
    pub read: Vec<(u32, Vec<u8>)>,
}

fn operation(data: &[u8], entry: Entry) -> Option<Operation> {
    match entry {
        Entry::Operation { bytes, .. } => {
            data.get(..cast::index(bytes)).and_then(Operation::decode)
        }
        _ => None,
    }
}

fn apply(core: &Core, entry: Entry, slot: u32, data: &[u8]) {
    let mut map = core.map.borrow_mut();
    match entry {
        Entry::Data { image, lba, checksum } => map.write(image, lba, slot, checksum),
        Entry::Moved { image, lba, checksum } => map.write_moved(image, lba, slot, checksum),
        Entry::Discard { image, lba, count } => map.discard(image, lba, count),
        Entry::Operation { .. } => match operation(data, entry) {
            Some(operation) => map.apply(&operation),
            None => tracing::error!("an operation is not decodable; it is left out"),
        },
        Entry::Void | Entry::Leaf { .. } | Entry::Root { .. } => {}
    }
}
