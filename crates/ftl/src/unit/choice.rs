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
    /// The superblocks that can be allocated.
    fn candidates(&self) -> impl Iterator<Item = Candidate> {
        self.slots.numbered().filter_map(|(index, slot)| {
            let (readiness, pending_erases) = match slot.state() {
                State::Erased => (Readiness::Erased, 0),
                State::Erasing if slot.has_failed() => return None,
                State::Erasing => (Readiness::Erasing, u32::from(!slot.is_erased())),
                State::ErasePending => (Readiness::ErasePending, 1),
                _ => return None,
            };
            let (wear, wear_unknown) = slot.wear();
            Some(Candidate { index, wear: wear + pending_erases, wear_unknown, readiness })
        })
    }

    /// The free superblock to use next. The one whose header has the greatest generation is chosen
    /// only if no other is free: after a power cut between its erase and its next header, a mount
    /// would find smaller generations.
    pub fn choose(&self) -> Option<Candidate> {
        let newest = self.newest.map(|(_, index)| index);
        let is_newest = |candidate: &Candidate| {
            candidate.readiness == Readiness::ErasePending && Some(candidate.index) == newest
        };
        wear::choose(self.candidates().filter(|candidate| !is_newest(candidate)))
            .or_else(|| wear::choose(self.candidates()))
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
    pub fn next_to_erase(&self) -> Option<Candidate> {
        let newest = self.newest_index();
        let may_be_erased = |candidate: &Candidate| {
            candidate.readiness == Readiness::ErasePending && Some(candidate.index) != newest
        };
        wear::choose(self.candidates().filter(may_be_erased))
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
