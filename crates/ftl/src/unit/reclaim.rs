//! Released superblocks become free again, or go out of service if blocks are missing.

use super::Unit;
use crate::slots::State;
use crate::superblock::FtlError;
use softflash_base::Time;
use softflash_base::planted::{self, Bug};

impl Unit {
    /// Reclaims a released superblock once none of its commands is under way.
    pub fn settle(&mut self, now: Time, index: u32) {
        let slot = self.slot(index);
        if slot.state() == State::Releasing && slot.under_way() == 0 {
            self.reclaim(now, index);
        }
    }

    /// Releases a superblock whose erase ahead of need failed, once its commands have ended.
    pub fn abandon_erase_ahead(&mut self, now: Time, index: u32) {
        self.erase_ahead.pause(now);
        self.set_state(index, State::Releasing);
    }

    /// The end of the erase of all free superblocks: none is left, or the path to the flash fails.
    pub fn all_erased(&self) -> Option<Result<(), FtlError>> {
        if let Some(failure) = self.erase_ahead.failure() {
            return Some(Err(failure.clone()));
        }
        let coming = [State::ErasePending, State::Erasing, State::Releasing];
        let coming: u32 = coming.map(|state| self.slots.in_state(state)).iter().sum();
        (coming + self.idle_under_erase == 0).then_some(Ok(()))
    }

    /// Frees a superblock, with its bad blocks replaced, or takes it out of service if blocks are
    /// missing.
    fn reclaim(&mut self, now: Time, index: u32) {
        if !planted::bug(Bug::OpeningKept) {
            self.openings.retain(|opening| opening.index != index);
        }
        self.slot_mut(index).forget_failure();
        self.blocks.vacate_lost(index);
        if self.blocks.complete(index) {
            self.refresh_wear(index);
            self.set_state(index, State::ErasePending);
        } else {
            tracing::warn!(
                unit = self.id.0,
                index,
                "superblock out of service: too few good blocks"
            );
            self.blocks.dissolve(index);
            self.set_state(index, State::OutOfService);
            self.return_to_service();
        }
        self.note_supply(now);
    }

    /// Puts superblocks back into service if there are now enough spares.
    fn return_to_service(&mut self) {
        for index in 0..self.layout.blocks_per_plane {
            if self.slot(index).state() == State::OutOfService && self.blocks.complete(index) {
                self.refresh_wear(index);
                self.set_state(index, State::ErasePending);
            }
        }
    }
}
