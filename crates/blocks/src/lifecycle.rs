//! The superblocks of a block over its life: it enters the directory when it is opened, moves when
//! it is rewritten, and releases them when it is deleted.

use crate::damage::Damage;
use crate::directory::{Copies, Directory, Place};
use crate::health::Health;
use crate::pools::Pools;
use crate::redundancy::{Deferral, Groups};
use crate::tag::{BlockId, Tag};
use softflash_base::planted::{self, Bug};
use softflash_ftl::Superblock;
use std::rc::Rc;

/// Changes which superblocks a block has.
pub(crate) struct Lifecycle {
    pools: Rc<Pools>,
    directory: Rc<Directory>,
    groups: Rc<Groups>,
    health: Rc<Health>,
    damage: Rc<Damage>,
}

impl Lifecycle {
    pub(crate) fn new(
        pools: &Rc<Pools>,
        directory: &Rc<Directory>,
        groups: &Rc<Groups>,
        health: &Rc<Health>,
        damage: &Rc<Damage>,
    ) -> Lifecycle {
        Lifecycle {
            pools: Rc::clone(pools),
            directory: Rc::clone(directory),
            groups: Rc::clone(groups),
            health: Rc::clone(health),
            damage: Rc::clone(damage),
        }
    }

    /// Adds a block that is being written to the directory, and notes it as degraded if it lacks a
    /// copy.
    pub(crate) fn enter(&self, tag: Tag, copies: Copies, on_log: bool) {
        let Tag { id, kind, attempt, .. } = tag;
        let lacks = copies.len() < usize::from(self.pools.redundancy().copies_of(kind));
        let place = Place { copies, on_log, attempt, is_half: false };
        self.directory.insert(id, place);
        self.pools.note_change();
        if lacks {
            self.damage.note_damaged(id);
        }
    }

    /// Moves a block that was rewritten under its id to its new superblocks, and releases the old
    /// ones.
    pub(crate) fn move_to(&self, id: BlockId, copies: Copies, attempt: u8) {
        let place = Place { copies, on_log: false, attempt, is_half: false };
        let before = self.directory.replace(id, place);
        self.pools.release(&before.map(|place| place.copies).unwrap_or_default(), false);
        self.health.forget(id);
        self.groups.note_moved();
    }

    /// Moves a block back to the superblock of an earlier attempt, and releases those of the last
    /// one. The block was rewritten for a reason, which holds still.
    pub(crate) fn return_to(&self, id: BlockId, earlier: Superblock) {
        // The number of the last attempt stays: the next rewrite must have a higher one.
        let last = self.directory.change(id, |place| {
            std::mem::replace(&mut place.copies, [earlier].into_iter().collect())
        });
        self.pools.release(&last.unwrap_or_default(), false);
        self.groups.note_moved();
        self.damage.note_damaged(id);
    }

    /// Releases the copies of a block that are not among `kept`.
    pub(crate) fn keep_only(&self, id: BlockId, kept: &[Superblock]) {
        if let Some((dropped, on_log)) = self.directory.keep_copies(id, kept) {
            self.pools.release(&dropped, on_log);
        }
    }

    /// Releases a block's space, unless other blocks of its group need it. Unknown ids are ignored.
    pub(crate) fn delete(&self, id: BlockId) {
        let is_suspect = self.health.is_degraded(id);
        self.health.forget(id);
        match self.groups.defer_erase(id, is_suspect) {
            Deferral::No => self.erase(id),
            Deferral::Pinned => self.health.note_pinned(),
            Deferral::GroupIsFree(blocks) => blocks.into_iter().for_each(|id| self.erase(id)),
        }
    }

    fn erase(&self, id: BlockId) {
        let place = self.directory.remove(id);
        self.health.forget(id);
        if let Some(Place { copies, on_log, .. }) = place {
            if !planted::bug(Bug::FreeCountStale) {
                self.pools.note_change();
            }
            self.pools.of(on_log).release(&copies);
        }
    }
}
