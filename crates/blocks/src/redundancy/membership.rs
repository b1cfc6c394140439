//! Changes of the parity groups, and their effect on the health of blocks: a patch that
//! should be in a group and is in none is degraded, and so are blocks of a group on one unit.

use super::parity_group::ParityGroup;
use crate::damage::Damage;
use crate::state::State;
use crate::tag::BlockId;
use softflash_base::planted::{self, Bug};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Changes which blocks are in groups.
pub(crate) struct Membership {
    state: State,
    damage: Rc<Damage>,
}

impl Membership {
    pub(crate) fn new(state: &State, damage: &Rc<Damage>) -> Membership {
        Membership { state: state.clone(), damage: Rc::clone(damage) }
    }

    /// Adds a group that is whole and durable.
    pub(crate) fn form(&self, group: ParityGroup) {
        self.state.groups.form(group.clone());
        self.note_misplaced(&group);
    }

    /// Adds a group that the log records, before any block is read.
    pub(crate) fn adopt(&self, group: ParityGroup) {
        self.state.groups.adopt(group.clone());
        for block in group.blocks() {
            let id = BlockId(block.block);
            // The mount noted the block as degraded before its group was known.
            let was_degraded = self.state.health.is_degraded(id);
            self.state.health.forget(id);
            if was_degraded || !self.state.directory.contains(id) {
                self.damage.note_degraded(id);
            }
        }
        self.note_misplaced(&group);
    }

    /// Drops the adopted groups without any of `patches`, which are the patches in use. In the
    /// other groups, members that are not in use are pinned.
    pub(crate) fn settle(&self, patches: &BTreeSet<BlockId>) {
        self.state
            .groups
            .pin_all_but(patches)
            .into_iter()
            .for_each(|id| self.state.health.forget(id));
        let ungrouped = patches.iter().filter(|id| self.lacks_group(**id));
        ungrouped.for_each(|id| self.damage.note_degraded(*id));
    }

    /// A patch was written. It is degraded if it should be in a group and is in none, because the
    /// write of the parity failed.
    pub(crate) fn note_written(&self, id: BlockId) {
        if self.lacks_group(id) {
            self.damage.note_failed_copy(id);
        }
    }

    /// Replaces groups by one group with their members in use. Returns the blocks to delete once
    /// the exchange is durable; `None` where one of the old groups does not exist.
    pub(crate) fn exchange(&self, old: &[u64], new: ParityGroup) -> Option<Vec<BlockId>> {
        let released = self.state.groups.exchange(old, new.clone())?;
        self.note_misplaced(&new);
        Some(released)
    }

    fn lacks_group(&self, patch: BlockId) -> bool {
        self.state.pools.redundancy().is_parity() && !self.state.groups.contains(patch)
    }

    /// Blocks of a group that share a unit are misplaced: the loss of that unit loses both.
    fn note_misplaced(&self, group: &ParityGroup) {
        if planted::bug(Bug::GroupOnOneUnit) {
            return;
        }
        let mut taken = BTreeSet::new();
        for block in group.blocks() {
            let id = BlockId(block.block);
            let copies = self.state.directory.copies(id);
            let is_separate = copies.iter().all(|copy| taken.insert(copy.unit));
            if !is_separate {
                self.damage.note_degraded(id);
            }
        }
    }
}
