//! The newest whole roots, and the leaves of one.

use super::RecoveryReport;
use crate::core::Core;
use crate::domain_map::{LOST, low};
use crate::error::VolumeError;
use crate::format::entry::Entry;
use crate::format::leaf;
use crate::format::root::{Root, StoredHalf};
use crate::leaves::LeafOwner;
use crate::walk::{FoundFrame, read_checked, read_unit};
use crate::writer::is_whole;
use futures_util::future::join_all;
use softflash_base::cast;
use softflash_base::checksum::checksum64;
use softflash_base::planted::{self, Bug};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Parts of a root, by number: places and checksums of the copies.
type Parts = BTreeMap<u32, Vec<(u32, u64)>>;

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
                found.entry(part).or_default().push((place, checksum));
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
        let parts = found.values().flatten().map(|&(place, _)| place).collect();
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
    for (&part, copies) in found {
        let mut read = None;
        for &(place, checksum) in copies {
            let entry = Entry::Root { root, part, parts, checksum };
            if read.is_none() {
                read = read_checked(core, place, entry.seed(), checksum).await;
            }
        }
        bytes.extend(read?);
    }
    Root::decode(&bytes)
}

/// Restores images and leaves of a root. Data in other superblocks than the `older` ones, which can
/// hold some that the root names, are lost or have moved since.
pub(super) async fn restore(
    core: &Core,
    root: &Root,
    frames: &[FoundFrame],
    older: &BTreeSet<u32>,
    report: &mut RecoveryReport,
) -> Result<(), VolumeError> {
    let stored: HashMap<u32, [StoredHalf; 2]> =
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
            (0..).zip(stored.halves).map(|(half, stored_half)| Half {
                leaf: stored.leaf,
                half,
                place: stored_half.place,
                checksum: root.change.map(|_| stored_half.checksum),
            })
        });
        let halves: Vec<Half> = halves.collect();
        let reads = halves.iter().map(|half| half.read(core, entry_at(half.place)));
        for (half, bytes) in halves.iter().zip(join_all(reads).await) {
            half.restore(core, older, bytes)?;
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
    /// The lower half of its checksum, in roots that have it.
    checksum: Option<u32>,
}

impl Half {
    fn seed(&self) -> u64 {
        Entry::Leaf { leaf: self.leaf, half: self.half, checksum: 0 }.seed()
    }

    /// Its bytes, if they are those that the root names; in roots without checksums of leaves,
    /// those of the entry of its frame.
    async fn read(&self, core: &Core, entry: Option<Entry>) -> Option<Vec<u8>> {
        match self.checksum.filter(|_| !planted::bug(Bug::LeafOfOtherLife)) {
            Some(checksum) => {
                let bytes = read_unit(core, self.place).await?;
                is_whole(self.seed(), &bytes, checksum).then_some(bytes)
            }
            None => {
                let checksum = entry.and_then(Entry::checksum)?;
                read_checked(core, self.place, self.seed(), checksum).await
            }
        }
    }

    fn restore(
        &self,
        core: &Core,
        older: &BTreeSet<u32>,
        bytes: Option<Vec<u8>>,
    ) -> Result<(), VolumeError> {
        let Half { leaf, half, .. } = *self;
        let Some(bytes) = bytes else {
            let reason = format!("half {half} of leaf {leaf} of the map cannot be read");
            return Err(VolumeError::Damaged { reason });
        };
        let mut map = core.map.borrow_mut();
        if let Some(stored) = &mut map.leaves.get_mut(leaf).stored {
            stored[cast::index(half)].checksum = low(checksum64(self.seed(), &bytes));
        }
        let (mut possible, places) = (true, core.geometry.places());
        leaf::decode(half, &bytes, |at, place, checksum| {
            let is_there = place >= places || older.contains(&core.geometry.block_of(place));
            possible &= map.restore(leaf, at, if is_there { place } else { LOST }, checksum);
        });
        if !possible {
            let reason = format!("leaf {leaf} names places that do not exist");
            return Err(VolumeError::Damaged { reason });
        }
        Ok(())
    }
}
