//! Recovery: the newest whole root and its leaves, then the frames behind it in their order.

mod found;
pub(crate) mod giving_up;
mod handed_over;
pub(crate) mod leaves;
mod lost;
mod missing;
pub(crate) mod nameless;
mod rebuild;
mod replay;
mod report;
mod roots;
mod uncertain;

use crate::checkpoint::COPIES;
use crate::core::Core;
use crate::domain_map::low;
use crate::error::VolumeError;
use crate::format::entry::Entry;
use crate::format::root::{Root, StoredHalf};
use crate::format::tag::Purpose;
use crate::frame_scan::FoundFrame;
use found::{FoundSuperblock, frames_of, is_rewritten, superblocks, unreadable_unit};
use missing::{Missing, missing};
use replay::{Replayed, replay};
pub use report::{RecoveryReport, StaleUnit};
use roots::{WholeRoot, block_with_lost_frames, newest_roots};
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use softflash_ftl::{Inventory, Superblock};
use std::collections::{BTreeSet, HashMap};
use uncertain::{Protected, uncertain_frames};

/// A recovered domain, before anything is written to it.
pub(crate) struct Recovered {
    pub report: RecoveryReport,
    /// The number of the next frame.
    pub next_sequence: u64,
    /// All frames below were durable before the power failed.
    pub durable_below: u64,
    /// The number of the next change.
    pub next_change: u64,
    /// All changes below were proven.
    pub proven_below: u64,
    /// Valid slots whose program the power cut may have interrupted, with their data: they could
    /// be read once, and may not be again.
    pub unstable: Vec<(u32, Vec<u8>)>,
    /// The next recovery may not find some of the recovered frames, or may read torn ones.
    pub is_uncertain: bool,
    /// The root or a leaf has one copy only: the next unit that fails may have it.
    pub lacks_copy: bool,
    /// Superblocks without valid data. The newer data may not be durable yet.
    pub empty: Vec<u32>,
    /// Superblocks of the map that no recovery can need, also from the root before: they are
    /// released at once.
    pub useless_map: Vec<u32>,
    /// Superblocks that no recovery can need from this root on.
    pub useless: Vec<u32>,
    /// Whether the frame that says that the root is durable may be readable now and not the next
    /// time: another one is written before the useless ones are released.
    pub needs_proof: bool,
}

/// Rebuilds the state of a domain from the superblocks of a mount. The domain is empty before.
pub(crate) async fn recover(core: &Core, inventory: &Inventory) -> Result<Recovered, VolumeError> {
    let found = superblocks(core, inventory).await?;
    let mut report = RecoveryReport {
        superblocks: cast::saturating_u32(found.len()),
        ..RecoveryReport::default()
    };
    let of_map =
        found.iter().filter(|found| found.tag.is_none_or(|tag| tag.purpose == Purpose::Map));
    let mut map_frames = frames_of(core, of_map).await;
    // Of a frame that was appended twice, because its program failed, the second copy counts.
    map_frames.sort_by_key(|frame| frame.head.sequence);
    let mut lost_roots = Vec::new();
    let (newest, before) = newest_roots(core, &map_frames, &mut report, &mut lost_roots).await;
    // Its leaves are released only when the newest root is durable.
    let before = before.filter(|before| has_leaves(before, &map_frames));
    let kept_before = before.as_ref().map(|before| blocks_of(core, before)).unwrap_or_default();
    // The first root has none before: without it, recovery begins with the first frame.
    let is_first = newest.as_ref().is_some_and(|newest| newest.root.previous == Some(0));
    let oldest = match (&before, &newest) {
        (None, Some(_)) if is_first => None,
        (before, newest) => before.as_ref().or(newest.as_ref()).map(|oldest| &oldest.root),
    };
    let needed = found.iter().filter(|found| holds_changes(found) && is_needed(found, oldest));
    let mut frames = frames_of(core, needed).await;
    frames.sort_by_key(|frame| frame.head.sequence);
    // No number is used twice, also not those of an interrupted recovery.
    let rewritten = frames_of(core, found.iter().filter(|found| is_rewritten(found))).await;
    let is_behind = |found: &&FoundSuperblock| is_rewritten(found) && is_needed(found, oldest);
    let behind: BTreeSet<u32> = found.iter().filter(is_behind).map(|found| found.block).collect();
    let all = frames.iter().chain(&map_frames).chain(&rewritten);
    if all.clone().next().is_none()
        && let Some(unit) = unreadable_unit(core, &found).await
    {
        let reason = format!("unit {unit} cannot be read, and no other unit holds anything");
        return Err(VolumeError::Damaged { reason });
    }
    let tags = found.iter().filter_map(|found| found.tag);
    // A frame at the beginning of a superblock may be found later only: its number is taken.
    let opened = tags.clone().map(|tag| tag.first_sequence);
    let last = all.map(|frame| frame.head.sequence).chain(opened).max();
    let heads = frames.iter().chain(&map_frames).map(|frame| &frame.head);
    let durable_below = heads.map(|head| head.durable_below).max().unwrap_or(0);
    let proven_by_tags = tags.map(|tag| tag.proven_below).max().unwrap_or(0);
    let durable_below = durable_below.max(behind_proven(&frames, proven_by_tags));
    let is_root_lost = lost_roots.iter().any(|lost| lost.was_durable(durable_below));
    let rewritten = match is_root_lost {
        // Nothing else names the data that the recovery before that root has written again.
        true => rewritten.into_iter().filter(|frame| behind.contains(&frame.block)).collect(),
        // A power cut has torn it, so they are where they were, too.
        false => Vec::new(),
    };
    frames.extend(rewritten.iter().cloned());
    frames.sort_by_key(|frame| frame.head.sequence);
    if newest.is_none()
        && let Some(block) = block_with_lost_frames(core, &found, &map_frames)
    {
        let superblock = core.superblocks.handle(block);
        let at = superblock.map_or_else(String::new, |superblock| format!(" in {superblock}"));
        let reason = format!("there is no root, and durable frames of the map are lost{at}");
        return Err(VolumeError::Damaged { reason });
    }
    // Nothing was released for a root of which no frame says that it is durable: the one before has
    // all that it needs. Version 1 had no such frames.
    let is_proven = newest
        .as_ref()
        .is_none_or(|newest| newest.last_frame < durable_below || newest.root.previous.is_none());
    // What only the root before needed is there until the newest is durable.
    let changes_of = |root: Option<&WholeRoot>| {
        missing(&frames, root.map(|root| &root.root), durable_below, proven_by_tags)
    };
    let is_complete = |missing: &Missing| missing.lost.is_empty() && missing.unknown.is_none();
    let passes_over = !is_proven
        && (before.is_some() || is_first)
        && (is_complete(&changes_of(before.as_ref())) || newest.is_none());
    let root = if passes_over { before } else { newest };
    let changes = changes_of(root.as_ref());
    if let Some((first, count)) = changes.unknown {
        let reason = format!(
            "{count} writes that were durable are lost, from change {first} on, and nothing says \
             which data they held"
        );
        return Err(VolumeError::Damaged { reason });
    }
    let root_sequence = root.as_ref().map_or(0, |root| root.root.sequence);
    if let Some(root) = &root {
        // A power cut between the copies of a root leaves one without proof. Older roots had one.
        let has_all_copies = is_proven && root.root.change.is_some();
        let missing_copies = if has_all_copies { root.missing_copies } else { 0 };
        let lost_copies: u32 =
            lost_roots.iter().map(|lost| lost.damaged_copies(durable_below)).sum();
        report.damaged_root_copies = root.damaged_copies + missing_copies + lost_copies;
        leaves::restore(core, &root.root, &map_frames, &found, &mut report).await?;
    }
    core.roots.found(root_sequence, root.as_ref().map_or(0, |root| root.number));
    // The domain has frames from before changes had numbers.
    let is_unnumbered = root.as_ref().is_some_and(|root| root.root.change.is_none())
        || frames.iter().any(|frame| frame.head.proven_below == 0);
    let has_hidden_frames = may_hide_frames(&found, &frames, root.as_ref());
    frames.retain(|frame| frame.head.sequence >= root_sequence);
    let mut uncertain = uncertain_frames(core, &frames, durable_below).await;
    // They count in this recovery only: the next one may find another root.
    uncertain.extend(rewritten.iter().map(|frame| frame.head.sequence));
    let Replayed { protected, mut read } =
        replay(core, &frames, &changes.lost, &uncertain, durable_below, &mut report).await?;
    let empty = finish(core, &found, &map_frames)?;
    core.roots.found_newest(report.root);
    let marks = root.as_ref().map(|root| &root.root.units[..]).unwrap_or_default();
    lost::report(core, &changes.lost, marks, &mut report);
    read.retain(|(slot, _)| core.map.borrow().holder(*slot).is_some());
    let kept = root.as_ref().map(|root| blocks_of(core, root)).unwrap_or_default();
    let proof = Proof::of(root.as_ref(), &frames, &map_frames, durable_below);
    let is_of_map = |block: &u32| core.roots.has_block(*block);
    let (useless_map, useless) =
        useless(core, &found, &kept, &protected, &empty).into_iter().partition(|block| {
            is_of_map(block) && !proof.blocks.contains(block) && !kept_before.contains(block)
        });
    // A later frame would say that the root which was passed over, or could not be read, is
    // durable: another root comes before.
    let is_uncertain = report.torn > 0
        || !uncertain.is_empty()
        || passes_over
        || report.lost_roots > 0 && !is_root_lost
        || changes.needs_root
        || is_unnumbered
        || has_hidden_frames
        || report.rebuilt_halves + report.lost_halves > 0;
    // A root that cannot be read is passed over again in each mount, until there is a newer one.
    let lacks_copy = root.as_ref().is_some_and(|root| root.whole_copies < COPIES) || is_root_lost;
    // The next recovery may find frames that this one did not, fewer than there are pages: the root
    // of this mount is above all of their numbers.
    let skips = is_uncertain && !planted::bug(Bug::UnseenAboveRoot);
    let unseen = if skips { core.geometry.slots() } else { 0 };
    Ok(Recovered {
        lacks_copy: lacks_copy || report.copied_halves > 0,
        report,
        next_sequence: last.map_or(1, |last| last + 1).max(root_sequence) + u64::from(unseen),
        durable_below: durable_below.max(root_sequence),
        // A recovery that does not find the first root with numbers misses the first change.
        next_change: changes.next.max(if is_unnumbered { 2 } else { 1 }),
        proven_below: changes.proven_below,
        is_uncertain,
        unstable: read,
        useless_map,
        useless,
        needs_proof: !proof.is_durable && root.is_some(),
        empty,
    })
}

/// The number behind the last frame whose change is below this one: all of them were durable, also
/// if the head that says so is lost.
fn behind_proven(frames: &[FoundFrame], proven_below: u64) -> u64 {
    let proven = frames.iter().filter(|frame| (1..proven_below).contains(&frame.head.change));
    proven.map(|frame| frame.head.sequence + 1).max().unwrap_or(0)
}

/// Whether all leaves that a root names are there, each of them in one copy at least.
fn has_leaves(whole: &WholeRoot, map_frames: &[FoundFrame]) -> bool {
    let leaves = map_frames.iter().flat_map(FoundFrame::slots);
    let found: HashMap<(u32, u32, u32), u32> = leaves
        .filter_map(|(entry, slot)| match entry {
            Entry::Leaf { leaf, half, checksum } => Some(((leaf, half, slot), low(checksum))),
            _ => None,
        })
        .collect();
    let has_checksums = whole.root.change.is_some();
    let is_there = |leaf: u32, half: u32, stored: StoredHalf| {
        stored.slots().any(|slot| {
            let checksum = found.get(&(leaf, half, slot));
            checksum.is_some_and(|&found| !has_checksums || found == stored.checksum)
        })
    };
    whole.root.leaves.iter().all(|stored| {
        (0..).zip(stored.halves).all(|(half, found)| is_there(stored.leaf, half, found))
    })
}

/// The frames that say that the root is durable.
struct Proof {
    /// Superblocks of the map that have some.
    blocks: BTreeSet<u32>,
    /// Whether one of them is known to be durable.
    is_durable: bool,
}

impl Proof {
    fn of(
        root: Option<&WholeRoot>,
        frames: &[FoundFrame],
        map_frames: &[FoundFrame],
        durable_below: u64,
    ) -> Proof {
        let last_frame = root.map_or(0, |root| root.last_frame);
        let is_proof = |frame: &&FoundFrame| frame.head.durable_below > last_frame;
        let mut all = frames.iter().chain(map_frames).filter(is_proof);
        Proof {
            blocks: map_frames.iter().filter(is_proof).map(|frame| frame.block).collect(),
            is_durable: all.any(|frame| frame.head.sequence < durable_below),
        }
    }
}

/// The superblocks of the map that a root needs.
fn blocks_of(core: &Core, whole: &WholeRoot) -> BTreeSet<u32> {
    let leaves = whole.root.leaves.iter().flat_map(|stored| stored.halves);
    let leaves = leaves.flat_map(StoredHalf::slots);
    leaves.chain(whole.parts.iter().copied()).map(|slot| core.geometry.block_of(slot)).collect()
}

/// Superblocks that can be released at once: those of the map that no whole root needs, and those
/// without valid data that recovery does not need and that no uncertain frame has emptied. Most
/// were released before the power failed, which only their erase makes permanent.
fn useless(
    core: &Core,
    found: &[FoundSuperblock],
    kept: &BTreeSet<u32>,
    protected: &Protected,
    empty: &[u32],
) -> Vec<u32> {
    let root = core.roots.sequence();
    let is_useless = |block: &u32| {
        if core.roots.has_block(*block) {
            return !kept.contains(block);
        }
        empty.contains(block)
            && !protected.blocks.contains(block)
            && core.superblocks.is_unpinned(*block, root)
    };
    found.iter().map(|found| found.block).filter(is_useless).collect()
}

/// Whether a superblock that was opened behind a root has no frame: a later recovery may read its
/// first page where this one could not, and would find a change of a number that was given again.
fn may_hide_frames(
    found: &[FoundSuperblock],
    frames: &[FoundFrame],
    root: Option<&WholeRoot>,
) -> bool {
    let root_sequence = root.map_or(0, |root| root.root.sequence);
    let opened_behind = |found: &&FoundSuperblock| {
        let of_data = found.tag.filter(|tag| tag.purpose == Purpose::Data);
        of_data.is_some_and(|tag| tag.first_sequence >= root_sequence)
    };
    let with_frames: BTreeSet<u32> = frames.iter().map(|frame| frame.block).collect();
    found.iter().filter(opened_behind).any(|found| !with_frames.contains(&found.block))
}

/// Whether a superblock can have frames with changes.
fn holds_changes(found: &FoundSuperblock) -> bool {
    found.tag.is_none_or(|tag| tag.purpose == Purpose::Data)
}

/// Whether a superblock can have frames behind a root.
fn is_needed(found: &FoundSuperblock, root: Option<&Root>) -> bool {
    let (Some(tag), Some(root)) = (found.tag, root) else { return true };
    let Superblock { unit, index, generation } = found.superblock;
    let has_joined = || !root.units.iter().any(|mark| mark.unit == unit.0);
    if planted::bug(Bug::JoinedUnitNotReplayed) && has_joined() {
        return false;
    }
    let was_open = root
        .open
        .iter()
        .any(|open| (open.unit, open.index, open.generation) == (unit.0, index, generation));
    tag.first_sequence >= root.sequence || was_open
}

/// Completes the map, and gives every superblock its state. Returns those without valid data.
fn finish(
    core: &Core,
    found: &[FoundSuperblock],
    map_frames: &[FoundFrame],
) -> Result<Vec<u32>, VolumeError> {
    let mut map = core.map.borrow_mut();
    map.recovered().map_err(|slot| VolumeError::Damaged {
        reason: format!("two mapping units are at slot {slot}"),
    })?;
    let holds_map = |block: u32| {
        map_frames.iter().any(|frame| {
            frame.block == block
                && frame
                    .head
                    .entries
                    .iter()
                    .any(|entry| matches!(entry, Entry::Leaf { .. } | Entry::Root { .. }))
        })
    };
    let mut by_age: Vec<&FoundSuperblock> = found.iter().collect();
    by_age.sort_by_key(|found| found.tag.map_or(0, |tag| tag.first_sequence));
    let mut empty = Vec::new();
    for found in by_age {
        let purpose = found.tag.map(|tag| tag.purpose);
        let is_empty = map.blocks.valid_in(found.block) == 0;
        if purpose == Some(Purpose::Map) || purpose.is_none() && is_empty && holds_map(found.block)
        {
            core.roots.add_block(found.block);
        } else if is_empty {
            empty.push(found.block);
        } else {
            let number = core.frontiers.next_closed(core.geometry.unit_of(found.block));
            map.blocks.close(found.block, number);
        }
    }
    Ok(empty)
}
