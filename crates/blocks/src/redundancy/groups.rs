//! Parity groups: patches that share a parity block.
//!
//! A patch that is deleted while other patches of its group are in use stays on the flash,
//! *pinned*, until the group is rewritten without it: the other patches could not be reconstructed
//! otherwise.

use super::parity_group::{GroupChange, Member, ParityGroup};
use crate::tag::BlockId;
use hashbrown::HashMap;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// All groups of a shard.
#[derive(Default)]
pub(crate) struct Groups(RefCell<Table>);

/// The groups, and the group of each block.
#[derive(Default)]
struct Table {
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

impl Table {
    fn of(&self, id: BlockId) -> Option<&Known> {
        self.known.get(self.of.get(&id)?)
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
}

impl Groups {
    /// A number that rises with every change of a group or of a member's place.
    pub(crate) fn version(&self) -> u64 {
        self.0.borrow().version
    }

    /// A member was moved to another place.
    pub(crate) fn note_moved(&self) {
        self.0.borrow_mut().version += 1;
    }

    pub(crate) fn contains(&self, id: BlockId) -> bool {
        self.0.borrow().of.contains_key(&id)
    }

    /// The group that the block is in.
    pub(crate) fn of(&self, id: BlockId) -> Option<Rc<ParityGroup>> {
        self.0.borrow().of(id).map(|known| Rc::clone(&known.group))
    }

    /// All groups.
    pub(crate) fn all(&self) -> Vec<Rc<ParityGroup>> {
        self.0.borrow().known.values().map(|known| Rc::clone(&known.group)).collect()
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.borrow().known.len() as u64
    }

    /// The number of pinned blocks.
    pub(crate) fn count_pinned(&self) -> u64 {
        self.0.borrow().known.values().map(|known| known.pinned.len() as u64).sum()
    }

    pub(crate) fn is_pinned(&self, id: BlockId) -> bool {
        self.0.borrow().of(id).is_some_and(|known| known.pinned.contains(&id))
    }

    /// The groups with at most `members` members in use.
    pub(crate) fn of_up_to(&self, members: usize) -> Vec<GroupState> {
        let table = self.0.borrow();
        let needed = |known: &Known| known.group.members.len() - known.pinned.len();
        table.known.values().filter(|known| needed(known) <= members).map(Known::state).collect()
    }

    /// A group with pinned members, except the groups `passed_over`.
    pub(crate) fn any_with_pinned(&self, passed_over: &BTreeSet<u64>) -> Option<GroupState> {
        let table = self.0.borrow();
        let mut with_pinned = table.known.values().filter(|known| !known.pinned.is_empty());
        with_pinned.find(|known| !passed_over.contains(&known.group.parity)).map(Known::state)
    }

    /// Adds a group that the log has to record.
    pub(crate) fn form(&self, group: ParityGroup) {
        let mut table = self.0.borrow_mut();
        table.unrecorded.added.push(group.clone());
        table.insert(group, BTreeSet::new());
    }

    /// Adds a group that the log records.
    pub(crate) fn adopt(&self, group: ParityGroup) {
        self.0.borrow_mut().insert(group, BTreeSet::new());
    }

    /// Replaces groups by one group with their members in use. Returns the other blocks of the old
    /// groups; `None` where one of the old groups does not exist.
    pub(crate) fn exchange(&self, old: &[u64], new: ParityGroup) -> Option<Vec<BlockId>> {
        let mut table = self.0.borrow_mut();
        if !old.iter().all(|parity| table.known.contains_key(&BlockId(*parity))) {
            return None;
        }
        let kept: BTreeSet<BlockId> = new.blocks().map(|block| BlockId(block.block)).collect();
        let (mut pinned, mut released) = (BTreeSet::new(), Vec::new());
        for known in old.iter().filter_map(|parity| table.remove(BlockId(*parity))) {
            pinned.extend(known.pinned.iter().filter(|id| kept.contains(*id)));
            let blocks = known.group.members.iter().map(|member| BlockId(member.block));
            released.extend(blocks.chain([known.parity()]).filter(|id| !kept.contains(id)));
        }
        table.unrecorded.removed.extend(old);
        table.unrecorded.added.push(new.clone());
        table.insert(new, pinned);
        Some(released)
    }

    /// Pins the members that are not among `patches`, and drops the groups without any of them.
    /// Returns the blocks that are no longer needed for themselves: those members, and the parity
    /// of the dropped groups.
    pub(crate) fn pin_all_but(&self, patches: &BTreeSet<BlockId>) -> Vec<BlockId> {
        let mut table = self.0.borrow_mut();
        let mut unneeded = Vec::new();
        let parities: Vec<BlockId> = table.known.keys().copied().collect();
        for parity in parities {
            let Some(known) = table.known.get_mut(&parity) else { continue };
            let members = known.group.members.iter().map(|member| BlockId(member.block));
            let (needed, dead): (Vec<_>, Vec<_>) = members.partition(|id| patches.contains(id));
            known.pinned.extend(&dead);
            unneeded.extend(dead);
            if needed.is_empty() {
                unneeded.push(parity);
                table.remove(parity);
            }
        }
        unneeded
    }

    /// Decides about the erase of a deleted block.
    pub(crate) fn defer_erase(&self, id: BlockId, is_suspect: bool) -> Deferral {
        let mut table = self.0.borrow_mut();
        let Some(&parity) = table.of.get(&id) else { return Deferral::No };
        let Some(known) = table.known.get_mut(&parity) else { return Deferral::No };
        if id != parity {
            known.pinned.insert(id);
            known.is_suspect |= is_suspect;
        }
        if known.pinned.len() < known.group.members.len() {
            return Deferral::Pinned;
        }
        let known = table.remove(parity);
        let blocks = known.iter().flat_map(|known| known.group.blocks());
        Deferral::GroupIsFree(blocks.map(|block| BlockId(block.block)).collect())
    }

    /// The changes that the log has to record, if any.
    pub(crate) fn take_change(&self) -> Option<GroupChange> {
        let change = std::mem::take(&mut self.0.borrow_mut().unrecorded);
        (change != GroupChange::default()).then_some(change)
    }
}
