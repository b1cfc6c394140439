//! Notes damage. The health of a block records which refresh it needs: that depends on whether it
//! is in a parity group, and on the units that are left.

use crate::state::State;
use crate::tag::BlockId;
use softflash_ftl::{FtlError, Origin};

/// Notes the damage of blocks and units.
pub(crate) struct Damage {
    state: State,
}

impl Damage {
    pub(crate) fn new(state: &State) -> Damage {
        Damage { state: state.clone() }
    }

    /// The block needs a refresh, for this reason, while it can be read: from its copies, or from
    /// its parity group.
    pub(crate) fn note_needs_refresh(&self, id: BlockId, why: Origin) {
        if self.state.directory.contains(id) || self.state.groups.contains(id) {
            self.state.health.note_needs_refresh(id, why);
        }
    }

    /// The block has to leave its unit. One of a parity group is written elsewhere under its id.
    pub(crate) fn note_moving(&self, id: BlockId) {
        match self.state.groups.contains(id) {
            true => self.state.health.note_moving(id),
            false => self.note_needs_refresh(id, Origin::Levelling),
        }
    }

    /// A copy of the block is missing or damaged.
    pub(crate) fn note_degraded(&self, id: BlockId) {
        if self.state.groups.contains(id) {
            self.state.health.note_reconstructible(id);
        } else if self.state.directory.contains(id) {
            self.state.health.note_degraded(id, self.state.pools.are_redundant());
        }
    }

    /// A block that is being written has lost a copy.
    pub(crate) fn note_failed_copy(&self, id: BlockId) {
        if self.state.directory.contains(id) {
            self.state.health.note_failed_copy(id);
        }
    }

    /// Records the outcome of a command to a unit. All blocks of a lost unit are degraded.
    pub(crate) fn note_command(&self, unit: u16, on_log: bool, error: Option<&FtlError>) {
        if self.state.pools.of(on_log).note_outcome(unit, error) {
            self.state.pools.note_change();
            self.distrust(unit, on_log);
        }
    }

    /// Marks all blocks of the unit as degraded.
    pub(crate) fn distrust(&self, unit: u16, on_log: bool) {
        for id in self.state.directory.ids_on(unit, on_log) {
            self.note_degraded(id);
        }
    }

    /// Requests a refresh of all degraded blocks, if a refresh can make them whole.
    pub(crate) fn retry(&self) {
        if self.state.pools.are_redundant() {
            self.state.health.try_again(|id| self.state.groups.contains(id));
        }
    }

    /// The damage of a block's copies, for reports.
    pub(crate) fn describe(&self, id: BlockId) -> Option<String> {
        if !self.state.health.is_degraded(id) || !self.state.pools.are_redundant() {
            return None;
        }
        let in_group = self.state.groups.contains(id);
        Some(match &self.state.directory.copies(id)[..] {
            [] if in_group => {
                "it is missing and can be reconstructed from its parity group".to_owned()
            }
            [only] if in_group => {
                format!("it is damaged in {only} and can be reconstructed from its parity group")
            }
            [only] if self.state.pools.redundancy().is_parity() => {
                format!("it has no redundancy: the loss of {only} loses it")
            }
            [] => "it is missing".to_owned(),
            [only] => format!("one of its copies is missing; the other is in {only}"),
            [one, other, ..] => format!("a copy in {one} or {other} is damaged"),
        })
    }
}
