//! Which blocks make up for each other: groups of patches with their parity.
//!
//! A patch that is given up while others of its group are needed stays where it is, *pinned*, until the group goes on without
//! it: the others could not be made out otherwise.

use super::BlockLayer;
use super::tag::BlockId;
use crate::format::log::event::{GroupChange, Member, ParityGroup};
use hashbrown::HashMap;
use softflash_base::planted::{self, Bug};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// All groups of a shard.
#[derive(Default)]
pub(super) struct Groups {
    /// By the ids of their parity blocks.
    known: BTreeMap<BlockId, Known>,
    /// The group of each block.
    of: HashMap<BlockId, BlockId>,
    /// What the log has not been told of.
    untold: GroupChange,
    /// Rises with every change of what makes up for what.
    version: u64,
}

struct Known {
    group: Rc<ParityGroup>,
    /// Members that are given up.
    pinned: BTreeSet<BlockId>,
    /// What was given up may not be as it was written.
    is_suspect: bool,
}

/// A group as it is.
pub struct GroupState {
    /// The group.
    pub group: Rc<ParityGroup>,
    /// Its members that are given up.
    pub pinned: BTreeSet<BlockId>,
    /// Some of what was given up may not be as it was written.
    pub is_suspect: bool,
}

impl GroupState {
    /// The members that are needed.
    pub fn needed(&self) -> impl Iterator<Item = Member> {
        let is_needed = |member: &&Member| !self.pinned.contains(&BlockId(member.block));
        self.group.members.iter().filter(is_needed).copied()
    }

    /// The other blocks: members that are given up, and the parity.
    pub fn rest(&self) -> impl Iterator<Item = Member> {
        let is_needed = |block: &Member| self.needed().any(|member| member.block == block.block);
        self.group.blocks().filter(move |block| !is_needed(block))
    }
}

/// What became of a block that is given up.
pub(super) enum GivenUp {
    /// It is in no group.
    Alone,
    /// It is pinned.
    Pinned,
    /// All members of its group are given up: these blocks are free.
    WithGroup(Vec<BlockId>),
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
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn note_change(&mut self) {
        self.version += 1;
    }

    fn insert(&mut self, group: ParityGroup, pinned: BTreeSet<BlockId>) {
        let parity = BlockId(group.parity);
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

    pub(super) fn of(&self, id: BlockId) -> Option<Rc<ParityGroup>> {
        let known = self.known.get(self.of.get(&id)?)?;
        Some(Rc::clone(&known.group))
    }

    pub(super) fn contains(&self, id: BlockId) -> bool {
        self.of.contains_key(&id)
    }

    pub(super) fn give_up(&mut self, id: BlockId, is_suspect: bool) -> GivenUp {
        let Some(&parity) = self.of.get(&id) else { return GivenUp::Alone };
        let Some(known) = self.known.get_mut(&parity) else { return GivenUp::Alone };
        if id != parity {
            known.pinned.insert(id);
            known.is_suspect |= is_suspect;
        }
        if known.pinned.len() < known.group.members.len() {
            return GivenUp::Pinned;
        }
        let known = self.remove(parity);
        let blocks = known.iter().flat_map(|known| known.group.blocks());
        GivenUp::WithGroup(blocks.map(|block| BlockId(block.block)).collect())
    }
}

impl BlockLayer {
    /// A group is whole and durable. The log is told with the next change of a tree.
    pub fn form_group(&self, group: ParityGroup) {
        let mut groups = self.inner.groups.borrow_mut();
        groups.untold.added.push(group.clone());
        groups.insert(group.clone(), BTreeSet::new());
        drop(groups);
        self.note_cramped(&group);
    }

    /// Takes over the groups that the log tells of, before anything is read.
    pub fn adopt_groups(&self, told: impl IntoIterator<Item = ParityGroup>) {
        for group in told {
            let blocks: Vec<BlockId> = group.blocks().map(|block| BlockId(block.block)).collect();
            self.inner.groups.borrow_mut().insert(group.clone(), BTreeSet::new());
            for id in blocks {
                // What the mount found was noted before anybody knew that it is in a group.
                let was_degraded = self.is_degraded(id);
                self.inner.condition.forget(id);
                if was_degraded || !self.contains(id) {
                    self.note_degraded(id);
                }
            }
            self.note_cramped(&group);
        }
    }

    /// These are the patches that are needed. Of the groups taken over only those count that have one of them: what else these
    /// have is pinned.
    pub fn settle_groups(&self, patches: &BTreeSet<BlockId>) {
        self.drop_groups_without(patches);
        let alone = patches.iter().filter(|id| self.has_parity() && !self.in_group(**id));
        alone.for_each(|id| self.note_degraded(*id));
    }

    /// A patch was written. It is degraded if it should be in a group and is not, as its parity failed.
    pub fn note_written(&self, id: BlockId) {
        if self.has_parity() && !self.in_group(id) {
            self.note_failed_copy(id);
        }
    }

    fn drop_groups_without(&self, patches: &BTreeSet<BlockId>) {
        let mut groups = self.inner.groups.borrow_mut();
        let parities: Vec<BlockId> = groups.known.keys().copied().collect();
        for parity in parities {
            let Some(known) = groups.known.get_mut(&parity) else { continue };
            let members = known.group.members.iter().map(|member| BlockId(member.block));
            let (needed, given_up): (Vec<_>, Vec<_>) = members.partition(|id| patches.contains(id));
            known.pinned.extend(&given_up);
            given_up.iter().for_each(|id| self.inner.condition.forget(*id));
            if needed.is_empty() {
                self.inner.condition.forget(parity);
                groups.remove(parity);
            }
        }
    }

    /// Blocks of a group that are on one unit cannot make up for each other when that is lost.
    fn note_cramped(&self, group: &ParityGroup) {
        if planted::bug(Bug::GroupOnOneUnit) {
            return;
        }
        let mut taken = BTreeSet::new();
        for block in group.blocks() {
            let id = BlockId(block.block);
            let is_apart = self.superblocks(id).iter().all(|place| taken.insert(place.unit));
            if !is_apart {
                self.note_degraded(id);
            }
        }
    }

    /// The group that the block is in.
    pub fn group_of(&self, id: BlockId) -> Option<Rc<ParityGroup>> {
        self.inner.groups.borrow().of(id)
    }

    /// All groups.
    pub fn groups(&self) -> Vec<Rc<ParityGroup>> {
        self.inner.groups.borrow().known.values().map(|known| Rc::clone(&known.group)).collect()
    }

    /// How many groups there are: each has a parity block.
    pub fn parity_blocks(&self) -> u64 {
        self.inner.groups.borrow().known.len() as u64
    }

    /// Patches that are given up and have to be kept for the others of their groups.
    pub fn pinned_blocks(&self) -> u64 {
        self.inner.groups.borrow().known.values().map(|known| known.pinned.len() as u64).sum()
    }

    /// Whether a block is kept only for the others of its group.
    pub fn is_pinned(&self, id: BlockId) -> bool {
        let groups = self.inner.groups.borrow();
        let known = groups.of.get(&id).and_then(|parity| groups.known.get(parity));
        known.is_some_and(|known| known.pinned.contains(&id))
    }

    /// The groups that need so many of their members at most.
    pub fn groups_of_up_to(&self, members: usize) -> Vec<GroupState> {
        let groups = self.inner.groups.borrow();
        let needed = |known: &Known| known.group.members.len() - known.pinned.len();
        groups.known.values().filter(|known| needed(known) <= members).map(Known::state).collect()
    }

    /// One of the groups that have members which are given up, but for these.
    pub fn burdened_group(&self, passed_over: &BTreeSet<u64>) -> Option<GroupState> {
        let groups = self.inner.groups.borrow();
        let mut burdened = groups.known.values().filter(|known| !known.pinned.is_empty());
        burdened.find(|known| !passed_over.contains(&known.group.parity)).map(Known::state)
    }

    /// A group takes the place of others, whose members it has but for some that are given up. Returns what can be deleted
    /// once the log says so durably; `None` where one of the others is gone.
    pub fn exchange_groups(&self, old: &[u64], new: ParityGroup) -> Option<Vec<BlockId>> {
        let mut groups = self.inner.groups.borrow_mut();
        if !old.iter().all(|parity| groups.known.contains_key(&BlockId(*parity))) {
            return None;
        }
        let kept: BTreeSet<BlockId> = new.blocks().map(|block| BlockId(block.block)).collect();
        let (mut pinned, mut shed) = (BTreeSet::new(), Vec::new());
        for known in old.iter().filter_map(|parity| groups.remove(BlockId(*parity))) {
            pinned.extend(known.pinned.iter().filter(|id| kept.contains(*id)));
            let blocks = known.group.members.iter().map(|member| BlockId(member.block));
            shed.extend(blocks.chain([known.parity()]).filter(|id| !kept.contains(id)));
        }
        groups.untold.removed.extend(old);
        groups.untold.added.push(new.clone());
        groups.insert(new.clone(), pinned);
        drop(groups);
        self.note_cramped(&new);
        Some(shed)
    }

    /// What the log has to be told of the groups, if anything.
    pub fn take_group_change(&self) -> Option<GroupChange> {
        let change = std::mem::take(&mut self.inner.groups.borrow_mut().untold);
        (change != GroupChange::default()).then_some(change)
    }
}
