//! Notes damage. The health of a block records which refresh it needs: that depends on whether it
//! is in a parity group, and on the units that are left.

use crate::directory::Directory;
use crate::health::Health;
use crate::pools::Pools;
use crate::redundancy::Groups;
use crate::tag::BlockId;
use softflash_ftl::FtlError;
use std::rc::Rc;

/// Notes the damage of blocks and units.
pub(crate) struct Damage {
    pools: Rc<Pools>,
    directory: Rc<Directory>,
    groups: Rc<Groups>,
    health: Rc<Health>,
}

impl Damage {
    pub(crate) fn new(
        pools: &Rc<Pools>,
        directory: &Rc<Directory>,
        groups: &Rc<Groups>,
        health: &Rc<Health>,
    ) -> Damage {
        Damage {
            pools: Rc::clone(pools),
            directory: Rc::clone(directory),
            groups: Rc::clone(groups),
            health: Rc::clone(health),
        }
    }

    /// The block needs a refresh while it can be read.
    pub(crate) fn note_hard_to_read(&self, id: BlockId) {
        if self.directory.contains(id) {
            self.health.note_needs_refresh(id);
        }
    }

    /// A copy of the block is missing or damaged.
    pub(crate) fn note_damaged(&self, id: BlockId) {
        if self.groups.contains(id) {
            self.health.note_reconstructible(id);
        } else if self.directory.contains(id) {
            self.health.note_degraded(id, self.pools.are_redundant());
        }
    }

    /// A block that is being written has lost a copy.
    pub(crate) fn note_failed_write(&self, id: BlockId) {
        if self.directory.contains(id) {
            self.health.note_failed_copy(id);
        }
    }

    /// Records the outcome of a command to a unit. All blocks of a lost unit are degraded.
    pub(crate) fn note_command(&self, unit: u16, on_log: bool, error: Option<&FtlError>) {
        if self.pools.of(on_log).note_outcome(unit, error) {
            self.pools.note_change();
            self.distrust(unit, on_log);
        }
    }

    /// Marks all blocks of the unit as degraded.
    pub(crate) fn distrust(&self, unit: u16, on_log: bool) {
        let curable = self.pools.are_redundant();
        for id in self.directory.ids_on(unit, on_log) {
            match self.groups.contains(id) {
                true => self.health.note_reconstructible(id),
                false => self.health.note_degraded(id, curable),
            }
        }
    }

    /// Requests a refresh of all degraded blocks, if a refresh can make them whole.
    pub(crate) fn retry(&self) {
        if self.pools.are_redundant() {
            self.health.try_again(|id| self.groups.contains(id));
        }
    }

    /// The damage of a block's copies, for reports.
    pub(crate) fn describe(&self, id: BlockId) -> Option<String> {
        if !self.health.is_degraded(id) || !self.pools.are_redundant() {
            return None;
        }
        let in_group = self.groups.contains(id);
        Some(match &self.directory.copies(id)[..] {
            [] if in_group => {
                "it is missing and can be reconstructed from its parity group".to_owned()
            }
            [only] if in_group => {
                format!("it is damaged in {only} and can be reconstructed from its parity group")
            }
            [only] if self.pools.redundancy().is_parity() => {
                format!("it has no redundancy: the loss of {only} loses it")
            }
            [] => "it is missing".to_owned(),
            [only] => format!("one of its copies is missing; the other is in {only}"),
            [one, other, ..] => format!("a copy in {one} or {other} is damaged"),
        })
    }
}
