//! The superblocks of a block over its life: it enters the directory when it is opened, moves when
//! it is rewritten, and releases them when it is deleted.

use crate::damage::Damage;
use crate::directory::{Copies, Place};
use crate::redundancy::Deferral;
use crate::state::State;
use crate::tag::{BlockId, Tag};
use softflash_base::planted::{self, Bug};
use softflash_ftl::Superblock;
use std::rc::Rc;

/// Changes which superblocks a block has.
pub(crate) struct Lifecycle {
    state: State,
    damage: Rc<Damage>,
}

impl Lifecycle {
    pub(crate) fn new(state: &State, damage: &Rc<Damage>) -> Lifecycle {
        Lifecycle { state: state.clone(), damage: Rc::clone(damage) }
    }

    /// Adds a block that is being written to the directory, and notes it as degraded if it lacks a
    /// copy.
    pub(crate) fn enter(&self, tag: Tag, copies: Copies, on_log: bool) {
        let Tag { id, kind, attempt, .. } = tag;
        let lacks = copies.len() < usize::from(self.state.pools.redundancy().copies_of(kind));
        let place = Place { copies, on_log, attempt, is_half: false };
        self.state.directory.insert(id, place);
        self.state.pools.note_change();
        if lacks {
            self.damage.note_degraded(id);
        }
    }

    /// Moves a block that was rewritten under its id to its new superblocks, and releases the old
    /// ones.
    pub(crate) fn move_to(&self, id: BlockId, copies: Copies, attempt: u8) {
        let place = Place { copies, on_log: false, attempt, is_half: false };
        let before = self.state.directory.replace(id, place);
        self.state.pools.release(&before.map(|place| place.copies).unwrap_or_default(), false);
        self.state.health.forget(id);
        self.state.groups.note_moved();
    }

    /// Moves a block back to the superblock of an earlier attempt, and releases those of the last
    /// one. The block was rewritten for a reason, which holds still.
    pub(crate) fn return_to(&self, id: BlockId, earlier: Superblock) {
        // The number of the last attempt stays: the next rewrite must have a higher one.
        let last = self.state.directory.change(id, |place| {
            std::mem::replace(&mut place.copies, [earlier].into_iter().collect())
        });
        self.state.pools.release(&last.unwrap_or_default(), false);
        self.state.groups.note_moved();
        self.damage.note_degraded(id);
    }

    /// Releases the copies of a block that are not among `kept`.
    pub(crate) fn keep_only(&self, id: BlockId, kept: &[Superblock]) {
        if let Some((dropped, on_log)) = self.state.directory.keep_copies(id, kept) {
            self.state.pools.release(&dropped, on_log);
        }
    }

    /// Releases a block's space, unless other blocks of its group need it. Unknown ids are ignored.
    pub(crate) fn delete(&self, id: BlockId) {
        let is_suspect = self.state.health.is_degraded(id);
        self.state.health.forget(id);
        match self.state.groups.defer_erase(id, is_suspect) {
            Deferral::No => self.erase(id),
            Deferral::Pinned => self.state.health.note_pinned(),
            Deferral::GroupIsFree(blocks) => blocks.into_iter().for_each(|id| self.erase(id)),
        }
    }

    fn erase(&self, id: BlockId) {
        let place = self.state.directory.remove(id);
        self.state.health.forget(id);
        if let Some(Place { copies, on_log, .. }) = place {
            if !planted::bug(Bug::FreeCountStale) {
                self.state.pools.note_change();
            }
            self.state.pools.of(on_log).release(&copies);
        }
    }
}
