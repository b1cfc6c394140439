//! The superblocks to use, to erase and to rewrite next.
//!
//! The superblock whose header has the greatest generation is never erased ahead of need. A power
//! cut during that erase would destroy the header, and the next mount would find smaller
//! generations and erase counts.

use super::Unit;
use crate::policy::wear::{Candidate, Readiness};
use crate::slots::{Slot, State};
use crate::superblock::Superblock;
use smallvec::SmallVec;
use softflash_base::Time;
use softflash_base::planted::{self, Bug};
use softflash_policy::WearPolicy;
use softflash_policy::victim::NOT_CLOSED;
use softflash_policy::wear::{self, FreeView, WearView};

impl Unit {
    /// The free superblock to use next. The one whose header has the greatest generation is chosen
    /// only if no other is free: after a power cut between its erase and its next header, a mount
    /// would find smaller generations.
    pub fn choose(&mut self, policy: WearPolicy) -> Option<Candidate> {
        let newest = self.newest.map(|(_, index)| index);
        let free = self.slots.free();
        let ready = || [Readiness::Erased, Readiness::Erasing].map(|ready| free.first(ready, None));
        let best = |except| {
            let pending = free.first(Readiness::ErasePending, except);
            of_policy(policy, ready().into_iter().chain([pending]).flatten())
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
        let erasing = self.slots.in_state(State::Erasing) + self.idle_under_erase > 0;
        // What a worn-out unit holds is to be erased, too, before another owner gets it.
        let takes_data = !self.leaves && !self.space().is_worn_out();
        let is_of_use = takes_data || self.erase_ahead.wants_all();
        (!erasing && self.can_erase_ahead() && is_of_use).then_some(due)
    }

    /// Whether a superblock may be erased ahead of need.
    fn can_erase_ahead(&self) -> bool {
        let newest = self
            .newest_index()
            .is_some_and(|index| self.slot(index).state() == State::ErasePending);
        let kept = u32::from(newest && !self.is_newest_last());
        self.slots.in_state(State::ErasePending) > kept
    }

    /// Whether the superblock whose header has the greatest generation is to be erased ahead of
    /// need: all are, and it is the last one. It is so only where no other could be erased.
    fn is_newest_last(&self) -> bool {
        let coming =
            [State::ErasePending, State::Releasing].map(|state| self.slots.in_state(state));
        self.erase_ahead.wants_all() && coming == [1, 0]
    }

    /// The superblock to erase ahead of need.
    pub fn next_to_erase(&mut self) -> Option<Candidate> {
        let newest = self.newest_index().filter(|_| !self.is_newest_last());
        self.slots.free().first(Readiness::ErasePending, newest)
    }

    /// The superblock whose header has the greatest generation.
    fn newest_index(&self) -> Option<u32> {
        let newest = self.newest.map(|(_, index)| index);
        newest.filter(|_| !planted::bug(Bug::NewestHeaderErased))
    }

    /// Erases of the most worn block.
    pub fn most_erases(&self) -> u32 {
        self.blocks.highest_erase_count()
    }

    /// The superblock that its owner should rewrite: the policy's choice of those that hold data
    /// and can be moved.
    pub fn worth_moving(
        &self,
        policy: WearPolicy,
        can_move: impl Fn(u32) -> bool,
    ) -> Option<Superblock> {
        let column = |(index, slot): (u32, &Slot)| match slot.state() {
            State::Live if can_move(index) => (0, slot.wear().0),
            _ => (NOT_CLOSED, slot.wear().0),
        };
        let (valid, mut erases): (Vec<u16>, Vec<u32>) = self.slots.numbered().map(column).unzip();
        // A superblock of spare blocks may be the most worn one.
        erases.push(self.most_erases());
        let index = wear::level(policy, &WearView { valid: &valid, erases: &erases })?;
        Some(self.superblock(index))
    }
}

/// The policy's choice of candidates that stand for all of their readiness, the soonest first.
fn of_policy(policy: WearPolicy, candidates: impl Iterator<Item = Candidate>) -> Option<Candidate> {
    let candidates: SmallVec<[Candidate; 3]> = candidates.collect();
    let erases: SmallVec<[u32; 3]> = candidates.iter().map(|candidate| candidate.wear).collect();
    let numbers = [0, 1, 2];
    let free = (numbers.get(..candidates.len())?, &[][..]);
    let chosen = wear::choose_free(policy, &FreeView { free, erases: &erases })?;
    candidates.get(chosen).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(index: u32, wear: u32, readiness: Readiness) -> Candidate {
        Candidate { index, wear, wear_unknown: false, readiness }
    }

    #[test]
    fn the_least_worn_is_chosen_and_readiness_breaks_ties() {
        let choose = |candidates: &[Candidate]| {
            of_policy(WearPolicy::level_by(64), candidates.iter().copied())
        };
        let worn = candidate(0, 9, Readiness::Erased);
        let fresh = candidate(1, 8, Readiness::ErasePending);
        let ready = candidate(2, 8, Readiness::Erased);
        assert_eq!(choose(&[worn, fresh]), Some(fresh));
        assert_eq!(choose(&[ready, fresh]), Some(ready));
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn without_levelling_the_one_that_is_ready_is_chosen() {
        let ready = candidate(0, 9, Readiness::Erased);
        let fresh = candidate(1, 8, Readiness::ErasePending);
        assert_eq!(of_policy(WearPolicy::FIFO, [ready, fresh].into_iter()), Some(ready));
    }
}
