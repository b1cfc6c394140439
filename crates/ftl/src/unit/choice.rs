//! The superblocks to use, to erase and to rewrite next.
//!
//! The superblock whose header has the greatest generation is never erased ahead of need. A power
//! cut during that erase would destroy the header, and the next mount would find smaller
//! generations and erase counts.

use super::Unit;
use crate::policy::wear::{self, Candidate, Readiness};
use crate::slots::State;
use crate::superblock::Superblock;
use softflash_base::Time;
use softflash_base::planted::{self, Bug};

impl Unit {
    /// The free superblock to use next. The one whose header has the greatest generation is chosen
    /// only if no other is free: after a power cut between its erase and its next header, a mount
    /// would find smaller generations.
    pub fn choose(&mut self) -> Option<Candidate> {
        let newest = self.newest.map(|(_, index)| index);
        let free = self.slots.free();
        let ready = || [Readiness::Erased, Readiness::Erasing].map(|ready| free.first(ready, None));
        let best = |except| {
            let pending = free.first(Readiness::ErasePending, except);
            wear::choose(ready().into_iter().chain([pending]).flatten())
        };
        best(newest).or_else(|| best(None))
    }

    /// Records whether erased superblocks are short.
    pub fn note_supply(&mut self, now: Time) {
        self.erase_ahead.note_supply(now, self.slots.in_state(State::Erased));
    }

    /// The time at which the next superblock is erased ahead of need: after the unit has been idle
    /// for some time, or, if the unit is never idle, after superblocks have been short for a longer
    /// time.
    pub fn erase_ahead_due(&self) -> Option<Time> {
        let due = self.erase_ahead.due((self.load == 0).then_some(self.idle_since))?;
        let erasing = self.slots.in_state(State::Erasing) > 0;
        (!erasing && self.can_erase_ahead() && !self.space().is_worn_out()).then_some(due)
    }

    /// Whether a superblock may be erased ahead of need.
    fn can_erase_ahead(&self) -> bool {
        let newest = self
            .newest_index()
            .is_some_and(|index| self.slot(index).state() == State::ErasePending);
        self.slots.in_state(State::ErasePending) > u32::from(newest)
    }

    /// The superblock to erase ahead of need.
    pub fn next_to_erase(&mut self) -> Option<Candidate> {
        let newest = self.newest_index();
        self.slots.free().first(Readiness::ErasePending, newest)
    }

    /// The superblock whose header has the greatest generation.
    fn newest_index(&self) -> Option<u32> {
        let newest = self.newest.map(|(_, index)| index);
        newest.filter(|_| !planted::bug(Bug::NewestHeaderErased))
    }

    /// The superblock that its owner should rewrite, if its erase count is more than `spread` below
    /// that of the most worn block.
    pub fn worth_moving(&self, spread: u32) -> Option<Superblock> {
        let live = self
            .slots
            .numbered()
            .filter(|(_, slot)| slot.state() == State::Live)
            .map(|(index, slot)| (index, slot.wear().0));
        let index = wear::lagging(live, self.blocks.highest_erase_count(), spread)?;
        Some(self.superblock(index))
    }
}
