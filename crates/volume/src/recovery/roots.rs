//! The newest whole roots, and the leaves of one.

use super::RecoveryReport;
use crate::core::Core;
use crate::error::VolumeError;
use crate::format::entry::Entry;
use crate::format::leaf;
use crate::format::root::Root;
use crate::leaves::LeafOwner;
use crate::walk::{FoundFrame, read_checked};
use futures_util::future::join_all;
use softflash_base::cast;
use std::collections::{BTreeMap, HashMap};

/// Parts of a root, by number: place and checksum.
type Parts = BTreeMap<u32, (u32, u64)>;

/// A root of which every part is whole.
pub(super) struct WholeRoot {
    pub root: Root,
    pub number: u64,
    /// The places of its parts.
    pub parts: Vec<u32>,
    /// The number of its last frame.
    pub last_frame: u64,
}

/// Reads the newest whole root, and the one before it, if that is still there: then the newest may
/// not be durable.
pub(super) async fn newest_roots(
    core: &Core,
    frames: &[FoundFrame],
    report: &mut RecoveryReport,
) -> (Option<WholeRoot>, Option<WholeRoot>) {
    let mut roots: BTreeMap<u64, (u32, Parts, u64)> = BTreeMap::new();
    for frame in frames {
        for (entry, place) in frame.places() {
            if let Entry::Root { root, part, parts, checksum } = entry {
                let (whole, found, last_frame) = roots.entry(root).or_default();
                *whole = parts;
                *last_frame = frame.head.sequence.max(*last_frame);
                found.insert(part, (place, checksum));
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
        let parts = found.values().map(|&(place, _)| place).collect();
        match (read, newest) {
            (Some(root), None) => {
                newest = Some(WholeRoot { root, number, parts, last_frame });
            }
            (Some(root), Some(newest)) => {
                return (Some(newest), Some(WholeRoot { root, number, parts, last_frame }));
            }
            (None, Some(found)) => newest = Some(found),
            (None, None) => {
                report.lost_roots += 1;
                tracing::error!(number, "a root cannot be read; an older one is taken");
                newest = None;
            }
        }
    }
    (newest, None)
}

async fn read_root(core: &Core, root: u64, parts: u32, found: &Parts) -> Option<Root> {
    let mut bytes = Vec::new();
    for (&part, &(place, checksum)) in found {
        let entry = Entry::Root { root, part, parts, checksum };
        bytes.extend(read_checked(core, place, entry.seed(), checksum).await?);
    }
    Root::decode(&bytes)
}

/// Restores images and leaves of a root.
pub(super) async fn restore(
    core: &Core,
    root: &Root,
    frames: &[FoundFrame],
    report: &mut RecoveryReport,
) -> Result<(), VolumeError> {
    let stored: HashMap<u32, [u32; 2]> =
        root.leaves.iter().map(|stored| (stored.leaf, stored.halves)).collect();
    let mut entries: Vec<(Entry, u32)> = frames.iter().flat_map(FoundFrame::places).collect();
    entries.sort_unstable_by_key(|&(_, place)| place);
    let entry_at = |place: u32| {
        let found = entries.binary_search_by_key(&place, |&(_, place)| place).ok()?;
        Some(entries[found].0)
    };
    {
        let mut map = core.map.borrow_mut();
        map.images = root.images.clone();
        let leaves = root.images.iter().flat_map(|(_, image)| image.leaves.iter().flatten());
        map.grow(leaves.max().map_or(0, |&last| last + 1));
        for (image, contents) in root.images.iter() {
            for (position, leaf) in (0..).zip(&contents.leaves) {
                let Some(leaf) = *leaf else { continue };
                let owner = LeafOwner { image, position };
                map.restore_leaf(leaf, owner, stored.get(&leaf).copied());
            }
        }
    }
    for together in root.leaves.chunks(LEAVES_TOGETHER) {
        let halves = together.iter().flat_map(|stored| {
            (0..).zip(stored.halves).map(|(half, place)| Half { leaf: stored.leaf, half, place })
        });
        let halves: Vec<Half> = halves.collect();
        let reads = halves.iter().map(|half| half.read(core, entry_at(half.place)));
        for (half, bytes) in halves.iter().zip(join_all(reads).await) {
            half.restore(core, bytes)?;
        }
        report.leaves += cast::saturating_u32(together.len());
    }
    Ok(())
}

/// Leaves that are read at a time.
const LEAVES_TOGETHER: usize = 64;

/// One half of a leaf on the flash.
struct Half {
    leaf: u32,
    half: u32,
    place: u32,
}

impl Half {
    /// Its bytes, if they are those of the entry of its frame.
    async fn read(&self, core: &Core, entry: Option<Entry>) -> Option<Vec<u8>> {
        let checksum = entry.and_then(Entry::checksum)?;
        let seed = Entry::Leaf { leaf: self.leaf, half: self.half, checksum }.seed();
        read_checked(core, self.place, seed, checksum).await
    }

    fn restore(&self, core: &Core, bytes: Option<Vec<u8>>) -> Result<(), VolumeError> {
        let Half { leaf, half, .. } = *self;
        let Some(bytes) = bytes else {
            let reason = format!("half {half} of leaf {leaf} of the map cannot be read");
            return Err(VolumeError::Damaged { reason });
        };
        let mut map = core.map.borrow_mut();
        let mut possible = true;
        leaf::decode(half, &bytes, |at, place, checksum| {
            possible &= map.restore(leaf, at, place, checksum);
        });
        if !possible {
            let reason = format!("leaf {leaf} names places that do not exist");
            return Err(VolumeError::Damaged { reason });
        }
        Ok(())
    }
}
