//! Superblocks are allocated, sealed and released.

use super::Ftl;
use crate::erase;
use crate::policy::wear::Readiness;
use crate::scheduler::{OpKind, QueueClass};
use crate::slots::State;
use crate::stream::Stream;
use crate::superblock::{FtlError, OwnerTag, Superblock};
use crate::unit::Opening;
use softflash_base::{Time, UnitId};
use softflash_device::Hint;

impl Ftl {
    /// Allocates the least worn free superblock of a unit, an erased one among equals. `tag` and
    /// the stream of the hint are stored in its opening header, and all its data have the lifetime
    /// of the hint. Never blocks: an erase that is
    /// still due is executed before the programs of the superblock.
    ///
    /// # Errors
    /// [`NoSpace`](FtlError::NoSpace) if no superblock is free or the unit is worn out,
    /// [`NotOurs`](FtlError::NotOurs).
    pub fn allocate(
        &mut self,
        now: Time,
        unit: UnitId,
        tag: OwnerTag,
        hint: Hint,
    ) -> Result<Superblock, FtlError> {
        let place = self.units.place(unit)?;
        let (state, commands) = (&mut self.units[place], &mut self.commands);
        if state.space().is_worn_out() {
            return Err(FtlError::NoSpace { unit });
        }
        let Some(chosen) = state.choose(self.wear) else {
            return Err(FtlError::NoSpace { unit });
        };
        let index = chosen.index;
        let class = QueueClass::new(OpKind::Program, hint.priority);
        match chosen.readiness {
            Readiness::Erased => {}
            Readiness::Erasing => commands.promote(state, index, class),
            Readiness::ErasePending => erase::start(state, commands, now, index, class),
        }
        state.set_state(index, State::Open);
        state.slot_mut(index).set_lifetime(hint.lifetime);
        state.add_opening(Opening { index, stream: Stream::of(hint), tag });
        state.note_supply(now);
        self.dispatch(now);
        Ok(self.units[place].superblock(index))
    }

    /// Ends the appends to a superblock; those under way continue. Returns false if the handle is
    /// stale.
    pub fn seal(&mut self, superblock: &Superblock) -> bool {
        let Ok(unit) = self.units.locate(superblock) else { return false };
        let unit = &mut self.units[unit];
        if unit.slot(superblock.index).state() == State::Open {
            unit.set_state(superblock.index, State::Live);
        }
        true
    }

    /// Releases a superblock. It is erased after all its commands have ended. Appends that have not
    /// reached the device fail. Returns false and does nothing if the handle is stale.
    ///
    /// Until the superblock is used again, a mount can still find it: the owner must record that it
    /// was released.
    pub fn release(&mut self, now: Time, superblock: &Superblock) -> bool {
        let Ok(unit) = self.units.locate(superblock) else { return false };
        let index = superblock.index;
        self.units[unit].set_state(index, State::Releasing);
        if !self.units[unit].slot(index).is_ready() {
            self.fail_waiters(now, unit, index, &FtlError::Stale { superblock: *superblock });
        }
        self.units[unit].settle(now, index);
        self.dispatch(now);
        true
    }
}
