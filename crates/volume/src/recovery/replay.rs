//! Applies the frames behind a root in their order.

use super::RecoveryReport;
use super::uncertain::Protected;
use crate::core::Core;
use crate::format::entry::Entry;
use crate::format::operation::Operation;
use crate::walk::{FoundFrame, read_checked};
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use std::collections::BTreeSet;

/// Applies the frames behind the root in their order. Data that were never durable are compared
/// with their checksums first: a power cut may have torn them.
pub(super) async fn replay(
    core: &Core,
    frames: &[FoundFrame],
    uncertain: &BTreeSet<u64>,
    durable_below: u64,
    report: &mut RecoveryReport,
) -> Replayed {
    let mut replayed = Replayed::default();
    for frame in frames {
        report.frames += 1;
        core.map.borrow().expect_all(&frame.head.entries);
        let was_durable = frame.head.sequence < durable_below;
        let is_uncertain = uncertain.contains(&frame.head.sequence);
        for (entry, place) in frame.places() {
            let is_operation = matches!(entry, Entry::Operation { .. });
            let may_be_torn = !was_durable && !planted::bug(Bug::TornUnitsTaken);
            let read = match entry.checksum() {
                Some(sum) if may_be_torn || is_operation || is_uncertain => {
                    Some(read_checked(core, place, seed(core, entry), sum).await)
                }
                _ => None,
            };
            match read {
                Some(None) if !was_durable => {
                    report.torn += 1;
                    continue;
                }
                Some(None) if is_operation => {
                    tracing::error!(block = frame.block, "an operation cannot be read");
                    report.lost_frames += 1;
                    continue;
                }
                // Data that were durable are named by the map: a read says that they are lost.
                _ => {}
            }
            let data = read.flatten();
            let bytes = data.as_deref().unwrap_or_default();
            if is_uncertain {
                replayed.protected.add(core, entry, operation(bytes, entry));
            }
            apply(core, frame, entry, place, bytes);
            if is_uncertain
                && matches!(entry, Entry::Data { .. } | Entry::Moved { .. })
                && let Some(data) = data
            {
                replayed.read.push((place, data));
            }
        }
    }
    replayed
}

fn seed(core: &Core, entry: Entry) -> u64 {
    match entry {
        Entry::Data { image, lba, .. } | Entry::Moved { image, lba, .. } => {
            core.map.borrow().seed_of(image, lba)
        }
        entry => entry.seed(),
    }
}

/// The results of a replay about uncertain frames.
#[derive(Default)]
pub(super) struct Replayed {
    pub protected: Protected,
    /// Places of their data, with the data.
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

fn apply(core: &Core, frame: &FoundFrame, entry: Entry, place: u32, data: &[u8]) {
    let mut map = core.map.borrow_mut();
    match entry {
        Entry::Data { image, lba, checksum } => {
            if map.write(image, lba, place, checksum) {
                core.superblocks.pin(frame.block, frame.head.sequence);
            }
        }
        Entry::Moved { image, lba, checksum } => map.write_moved(image, lba, place, checksum),
        Entry::Discard { image, lba, count } => {
            map.discard(image, lba, count);
            core.superblocks.pin(frame.block, frame.head.sequence);
        }
        Entry::Operation { .. } => {
            match operation(data, entry) {
                Some(operation) => map.apply(&operation),
                None => tracing::error!("an operation is not decodable; it is left out"),
            }
            core.superblocks.pin(frame.block, frame.head.sequence);
        }
        Entry::Void | Entry::Leaf { .. } | Entry::Root { .. } => {}
    }
}
