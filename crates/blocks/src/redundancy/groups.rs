//! Parity groups: patches that share a parity block.
//!
//! A patch that is deleted while other patches of its group are in use stays on the flash,
//! *pinned*, until the group is rewritten without it: the other patches could not be reconstructed
//! otherwise.

use super::Redundancy;
use super::parity_group::{GroupChange, Member, ParityGroup};
use crate::layer::BlockLayer;
use crate::tag::BlockId;
use hashbrown::HashMap;
use softflash_base::planted::{self, Bug};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// All groups of a shard.
#[derive(Default)]
pub(crate) struct Groups {
    /// By the ids of their parity blocks.
    known: BTreeMap<BlockId, Known>,
    /// The group of each block.
    of: HashMap<BlockId, BlockId>,
    /// Changes that the log has not recorded.
    unrecorded: GroupChange,
    /// Rises with every change of a group or of a member's place.
    version: u64,
}

struct Known {
    group: Rc<ParityGroup>,
    /// Members that are deleted.
    pinned: BTreeSet<BlockId>,
    /// A deleted member may be damaged.
    is_suspect: bool,
}

/// The state of a group.
pub struct GroupState {
    /// The group.
    pub group: Rc<ParityGroup>,
    /// Its members that are deleted.
    pub pinned: BTreeSet<BlockId>,
    /// A deleted member may be damaged.
    pub is_suspect: bool,
}

impl GroupState {
    /// The members that are in use.
    pub fn needed(&self) -> impl Iterator<Item = Member> {
        let is_needed = |member: &&Member| !self.pinned.contains(&BlockId(member.block));
        self.group.members.iter().filter(is_needed).copied()
    }

    /// The other blocks: deleted members, and the parity.
    pub fn rest(&self) -> impl Iterator<Item = Member> {
        let is_needed = |block: &Member| self.needed().any(|member| member.block == block.block);
        self.group.blocks().filter(move |block| !is_needed(block))
    }
}

/// Whether the erase of a deleted block is deferred for its group.
pub(crate) enum Deferral {
    /// It is in no group.
    No,
    /// It is pinned.
    Pinned,
    /// All members of its group are deleted: these blocks are free.
    GroupIsFree(Vec<BlockId>),
}

impl Known {
    fn parity(&self) -> BlockId {
        BlockId(self.group.parity)
    }

    fn state(&self) -> GroupState {
        let Known { group, pinned, is_suspect } = self;
        GroupState { group: Rc::clone(group), pinned: pinned.clone(), is_suspect: *is_suspect }
    }
}

impl Groups {
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn note_change(&mut self) {
        self.version += 1;
    }

    fn insert(&mut self, group: ParityGroup, pinned: BTreeSet<BlockId>) {
        let parity = BlockId(group.parity);
        // The decoder of the log refuses such a group.
        assert!(!group.members.is_empty(), "the parity group of {parity} has no members");
        self.of.extend(group.blocks().map(|block| (BlockId(block.block), parity)));
        let known = Known { group: Rc::new(group), pinned, is_suspect: false };
        self.known.insert(parity, known);
        self.version += 1;
    }

    fn remove(&mut self, parity: BlockId) -> Option<Known> {
        let known = self.known.remove(&parity)?;
        for block in known.group.blocks() {
            let block = BlockId(block.block);
            if self.of.get(&block) == Some(&parity) {
                self.of.remove(&block);
            }
        }
        self.version += 1;
        Some(known)
    }

    pub(crate) fn of(&self, id: BlockId) -> Option<Rc<ParityGroup>> {
        let known = self.known.get(self.of.get(&id)?)?;
        Some(Rc::clone(&known.group))
    }

    pub(crate) fn contains(&self, id: BlockId) -> bool {
        self.of.contains_key(&id)
    }

    pub(crate) fn defer_erase(&mut self, id: BlockId, is_suspect: bool) -> Deferral {
        let Some(&parity) = self.of.get(&id) else { return Deferral::No };
        let Some(known) = self.known.get_mut(&parity) else { return Deferral::No };
        if id != parity {
            known.pinned.insert(id);
            known.is_suspect |= is_suspect;
        }
        if known.pinned.len() < known.group.members.len() {
            return Deferral::Pinned;
        }
        let known = self.remove(parity);
        let blocks = known.iter().flat_map(|known| known.group.blocks());
        Deferral::GroupIsFree(blocks.map(|block| BlockId(block.block)).collect())
    }
}

impl BlockLayer {
    /// Patches that a new group may have; 0 where there is no parity.
    pub fn group_width(&self) -> usize {
        self.parts.pools.main.group_width()
    }

    /// Whether a new block survives the loss of a unit.
    pub fn is_redundant(&self) -> bool {
        self.parts.pools.main.is_redundant()
    }

    /// Whether each patch should be in a group.
    pub fn has_parity(&self) -> bool {
        matches!(self.parts.redundancy, Redundancy::Parity { .. })
    }

    /// Whether the log has two copies.
    pub fn keeps_log_copies(&self) -> bool {
        self.parts.redundancy.is_some()
    }

    /// Adds a group that is whole and durable. The log records it with the next edit of a tree.
    pub fn form_group(&self, group: ParityGroup) {
        let mut groups = self.parts.groups.borrow_mut();
        groups.unrecorded.added.push(group.clone());
        groups.insert(group.clone(), BTreeSet::new());
        drop(groups);
        self.note_misplaced(&group);
    }

    /// Adds the groups that the log records, before any block is read.
    pub fn adopt_groups(&self, recorded: impl IntoIterator<Item = ParityGroup>) {
        for group in recorded {
            let blocks: Vec<BlockId> = group.blocks().map(|block| BlockId(block.block)).collect();
            self.parts.groups.borrow_mut().insert(group.clone(), BTreeSet::new());
            for id in blocks {
                // The mount noted the block as degraded before its group was known.
                let was_degraded = self.is_degraded(id);
                self.parts.health.forget(id);
                if was_degraded || !self.contains(id) {
                    self.note_degraded(id);
                }
            }
            self.note_misplaced(&group);
        }
    }

    /// Drops the adopted groups without any of `patches`, which are the patches in use. In the
    /// other groups, members that are not in use are pinned.
    pub fn settle_groups(&self, patches: &BTreeSet<BlockId>) {
        self.drop_groups_without(patches);
        let ungrouped = patches.iter().filter(|id| self.has_parity() && !self.in_group(**id));
        ungrouped.for_each(|id| self.note_degraded(*id));
    }

    /// A patch was written. It is degraded if it should be in a group and is in none, because the
    /// write of the parity failed.
    pub fn note_written(&self, id: BlockId) {
        if self.has_parity() && !self.in_group(id) {
            self.note_failed_copy(id);
        }
    }

    fn drop_groups_without(&self, patches: &BTreeSet<BlockId>) {
        let mut groups = self.parts.groups.borrow_mut();
        let parities: Vec<BlockId> = groups.known.keys().copied().collect();
        for parity in parities {
            let Some(known) = groups.known.get_mut(&parity) else { continue };
            let members = known.group.members.iter().map(|member| BlockId(member.block));
            let (needed, dead): (Vec<_>, Vec<_>) = members.partition(|id| patches.contains(id));
            known.pinned.extend(&dead);
            dead.iter().for_each(|id| self.parts.health.forget(*id));
            if needed.is_empty() {
                self.parts.health.forget(parity);
                groups.remove(parity);
            }
        }
    }

    /// Blocks of a group that share a unit are misplaced: the loss of that unit loses both.
    fn note_misplaced(&self, group: &ParityGroup) {
        if planted::bug(Bug::GroupOnOneUnit) {
            return;
        }
        let mut taken = BTreeSet::new();
        for block in group.blocks() {
            let id = BlockId(block.block);
            let is_separate = self.superblocks(id).iter().all(|place| taken.insert(place.unit));
            if !is_separate {
                self.note_degraded(id);
            }
        }
    }

    /// Whether the block is in a group.
    pub(crate) fn in_group(&self, id: BlockId) -> bool {
        self.parts.groups.borrow().contains(id)
    }

    /// The group that the block is in.
    pub fn group_of(&self, id: BlockId) -> Option<Rc<ParityGroup>> {
        self.parts.groups.borrow().of(id)
    }

    /// All groups.
    pub fn groups(&self) -> Vec<Rc<ParityGroup>> {
        self.parts.groups.borrow().known.values().map(|known| Rc::clone(&known.group)).collect()
    }

    /// The number of groups: each has a parity block.
    pub fn parity_blocks(&self) -> u64 {
        self.parts.groups.borrow().known.len() as u64
    }

    /// Deleted patches that are kept for the other patches of their groups.
    pub fn pinned_blocks(&self) -> u64 {
        self.parts.groups.borrow().known.values().map(|known| known.pinned.len() as u64).sum()
    }

    /// Whether a deleted block is kept for its group.
    pub fn is_pinned(&self, id: BlockId) -> bool {
        let groups = self.parts.groups.borrow();
        let known = groups.of.get(&id).and_then(|parity| groups.known.get(parity));
        known.is_some_and(|known| known.pinned.contains(&id))
    }

    /// The groups with at most `members` members in use.
    pub fn groups_of_up_to(&self, members: usize) -> Vec<GroupState> {
        let groups = self.parts.groups.borrow();
        let needed = |known: &Known| known.group.members.len() - known.pinned.len();
        groups.known.values().filter(|known| needed(known) <= members).map(Known::state).collect()
    }

    /// A group with pinned members, except the groups `passed_over`.
    pub fn group_with_pinned(&self, passed_over: &BTreeSet<u64>) -> Option<GroupState> {
        let groups = self.parts.groups.borrow();
        let mut with_pinned = groups.known.values().filter(|known| !known.pinned.is_empty());
        with_pinned.find(|known| !passed_over.contains(&known.group.parity)).map(Known::state)
    }

    /// Replaces groups by one group with their members in use. Returns the blocks to delete once
    /// the log has recorded the exchange durably; `None` where one of the old groups does not
    /// exist.
    pub fn exchange_groups(&self, old: &[u64], new: ParityGroup) -> Option<Vec<BlockId>> {
        let mut groups = self.parts.groups.borrow_mut();
        if !old.iter().all(|parity| groups.known.contains_key(&BlockId(*parity))) {
            return None;
        }
        let kept: BTreeSet<BlockId> = new.blocks().map(|block| BlockId(block.block)).collect();
        let (mut pinned, mut released) = (BTreeSet::new(), Vec::new());
        for known in old.iter().filter_map(|parity| groups.remove(BlockId(*parity))) {
            pinned.extend(known.pinned.iter().filter(|id| kept.contains(*id)));
            let blocks = known.group.members.iter().map(|member| BlockId(member.block));
            released.extend(blocks.chain([known.parity()]).filter(|id| !kept.contains(id)));
        }
        groups.unrecorded.removed.extend(old);
        groups.unrecorded.added.push(new.clone());
        groups.insert(new.clone(), pinned);
        drop(groups);
        self.note_misplaced(&new);
        Some(released)
    }

    /// The changes that the log has to record, if any.
    pub fn take_group_change(&self) -> Option<GroupChange> {
        let change = std::mem::take(&mut self.parts.groups.borrow_mut().unrecorded);
        (change != GroupChange::default()).then_some(change)
    }
}
