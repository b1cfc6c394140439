//! The newest whole roots.

use super::found::FoundSuperblock;
use super::report::RecoveryReport;
use crate::checkpoint::COPIES;
use crate::core::Core;
use crate::format::entry::Entry;
use crate::format::root::Root;
use crate::format::tag::Purpose;
use crate::frame_scan::{FoundFrame, read_checked};
use softflash_base::cast;
use std::collections::BTreeMap;

/// Parts of a root, by number: slots and checksums of the copies.
type Parts = BTreeMap<u32, Vec<(u32, u64)>>;

/// A root of which every part is whole.
pub(super) struct WholeRoot {
    pub root: Root,
    pub number: u64,
    /// The slots of its parts.
    pub parts: Vec<u32>,
    /// The number of its last frame.
    pub last_frame: u64,
    /// Copies of its parts that cannot be read.
    pub damaged_copies: u32,
    /// Copies of its parts that no frame has, of those that were written if it was completed.
    pub missing_copies: u32,
    /// Copies of it that are whole, at least.
    pub whole_copies: usize,
}

/// A root of which every part is there, and one cannot be read from any copy.
pub(super) struct LostRoot {
    /// The number of its last frame.
    last_frame: u64,
    /// Copies of its parts.
    copies: u32,
}

impl LostRoot {
    /// Whether a frame says that it was durable. Nothing was released for one that was not.
    pub fn was_durable(&self, durable_below: u64) -> bool {
        self.last_frame < durable_below
    }

    /// Copies that are damaged: a power cut destroys those of a root that was never durable.
    pub fn damaged_copies(&self, durable_below: u64) -> u32 {
        if self.was_durable(durable_below) { self.copies } else { 0 }
    }
}

/// Reads the newest whole root, and the one before it, if that is still there: then the newest may
/// not be durable. Adds newer ones that cannot be read to `lost`.
pub(super) async fn newest_roots(
    core: &Core,
    frames: &[FoundFrame],
    report: &mut RecoveryReport,
    lost: &mut Vec<LostRoot>,
) -> (Option<WholeRoot>, Option<WholeRoot>) {
    let mut roots: BTreeMap<u64, (u32, Parts, u64)> = BTreeMap::new();
    for frame in frames {
        for (entry, slot) in frame.slots() {
            if let Entry::Root { root, part, parts, checksum } = entry {
                let (whole, found, last_frame) = roots.entry(root).or_default();
                *whole = parts;
                *last_frame = frame.head.sequence.max(*last_frame);
                found.entry(part).or_default().push((slot, checksum));
            }
        }
    }
    let mut newest: Option<WholeRoot> = None;
    for (number, (parts, found, last_frame)) in roots.into_iter().rev() {
        report.root = report.root.max(number);
        let previous = newest.as_ref().and_then(|newest| newest.root.previous);
        // An interrupted checkpoint leaves a root without some of its parts.
        let is_whole = cast::saturating_u32(found.len()) == parts;
        if !is_whole || previous.is_some_and(|previous| number != previous) {
            continue;
        }
        let read = read_root(core, number, parts, &found).await;
        let parts: Vec<u32> = found.values().flatten().map(|&(slot, _)| slot).collect();
        let missing = |copies: &Vec<_>| COPIES.saturating_sub(copies.len());
        let missing_copies = cast::saturating_u32(found.values().map(missing).sum());
        match (read, newest) {
            (Some(ReadRoot { root, damaged_copies, whole_copies }), found) => {
                let read = WholeRoot {
                    root,
                    number,
                    parts,
                    last_frame,
                    damaged_copies,
                    missing_copies,
                    whole_copies,
                };
                match found {
                    None => newest = Some(read),
                    Some(newest) => return (Some(newest), Some(read)),
                }
            }
            (None, Some(found)) => newest = Some(found),
            (None, None) => {
                report.lost_roots += 1;
                lost.push(LostRoot { last_frame, copies: cast::saturating_u32(parts.len()) });
                tracing::error!(number, "a root cannot be read; an older one is taken");
                newest = None;
            }
        }
    }
    (newest, None)
}

/// A superblock of the map in which durable frames are missing: their heads are lost. If no root is
/// found either, these frames may have been one.
pub(super) fn block_with_lost_frames(
    core: &Core,
    found: &[FoundSuperblock],
    map_frames: &[FoundFrame],
) -> Option<u32> {
    let is_map =
        |found: &&FoundSuperblock| found.tag.is_some_and(|tag| tag.purpose == Purpose::Map);
    let mut blocks = found.iter().filter(is_map).map(|found| found.block);
    blocks.find(|&block| has_lost_frames(core, block, map_frames))
}

/// Whether frames of a superblock are missing although a later frame in it says that they were
/// durable. Behind a program that failed the superblock has no such frame: it takes none any more.
fn has_lost_frames(core: &Core, block: u32, map_frames: &[FoundFrame]) -> bool {
    let mut frames: Vec<&FoundFrame> =
        map_frames.iter().filter(|frame| frame.block == block).collect();
    frames.sort_by_key(|frame| frame.first);
    let durable_below = frames.iter().map(|frame| frame.head.durable_below).max().unwrap_or(0);
    let mut expected = core.geometry.slots_of(block).start;
    frames.into_iter().any(|frame| {
        let follows_gap = frame.first > expected;
        expected = frame.first + frame.head.pages * core.geometry.page_units;
        follows_gap && frame.head.sequence <= durable_below
    })
}

/// The contents of a root.
struct ReadRoot {
    root: Root,
    damaged_copies: u32,
    whole_copies: usize,
}

/// Reads all copies of a root; `None` if a part of it cannot be read from any.
async fn read_root(core: &Core, root: u64, parts: u32, found: &Parts) -> Option<ReadRoot> {
    let (mut bytes, mut damaged_copies, mut whole_copies) = (Vec::new(), 0, usize::MAX);
    for (&part, copies) in found {
        let (mut whole, mut of_part) = (None, 0);
        for &(slot, checksum) in copies {
            let entry = Entry::Root { root, part, parts, checksum };
            match read_checked(core, slot, entry.seed(), checksum).await {
                Some(read) => (whole, of_part) = (Some(read), of_part + 1),
                None => damaged_copies += 1,
            }
        }
        bytes.extend(whole?);
        whole_copies = whole_copies.min(of_part);
    }
    Some(ReadRoot { root: Root::decode(&bytes)?, damaged_copies, whole_copies })
}
