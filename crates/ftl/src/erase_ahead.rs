//! Erases ahead of need, while no request waits for the unit.
//!
//! The superblock whose header has the greatest generation is never erased ahead of need. A power
//! cut during that erase would destroy the header, and the next mount would find smaller
//! generations and erase counts.

use crate::ftl::Ftl;
use crate::hint::Priority;
use crate::policy::wear::{Candidate, Readiness, choose};
use crate::scheduler::{OpKind, QueueClass};
use crate::unit::{State, Unit};
use softflash_base::Time;
use softflash_base::planted::{self, Bug};

impl Ftl {
    /// The time at which the next superblock of a unit is erased ahead of need: after the unit has
    /// been idle for some time, or, if the unit is never idle, after superblocks have been short
    /// for a longer time.
    pub(crate) fn erase_ahead_due(&self, unit: usize) -> Option<Time> {
        let unit = &self.units[unit];
        let short_since = unit.short_since?;
        if unit.count(State::Erasing) > 0 || !unit.can_erase_ahead() || unit.space().is_worn_out() {
            return None;
        }
        let latest = short_since + self.config.shortage_patience_ns;
        let due = match unit.load {
            0 => latest.min(unit.idle_since + self.config.idle_before_erase_ns),
            _ => latest,
        };
        Some(due.max(unit.erase_ahead_not_before))
    }

    /// Starts the erases that are due.
    pub(crate) fn erase_ahead(&mut self, now: Time) {
        for unit in 0..self.units.len() {
            if self.erase_ahead_due(unit).is_some_and(|due| due <= now) {
                self.erase_one_ahead(now, unit);
            }
        }
    }

    fn erase_one_ahead(&mut self, now: Time, unit: usize) {
        let state = &mut self.units[unit];
        if let Some(chosen) = state.next_to_erase() {
            state.set_state(chosen.index, State::Erasing);
            let class = QueueClass::new(OpKind::Erase, Priority::Background);
            self.start_erase(now, unit, chosen.index, class);
        }
    }
}

impl Unit {
    /// Whether a superblock may be erased ahead of need.
    fn can_erase_ahead(&self) -> bool {
        let newest =
            self.newest_index().is_some_and(|index| self.slot(index).state == State::ErasePending);
        self.count(State::ErasePending) > u32::from(newest)
    }

    /// The superblock to erase ahead of need.
    fn next_to_erase(&self) -> Option<Candidate> {
        let newest = self.newest_index();
        let may_be_erased = |candidate: &Candidate| {
            candidate.readiness == Readiness::ErasePending && Some(candidate.index) != newest
        };
        choose(self.candidates().filter(may_be_erased))
    }

    /// The superblock whose header has the greatest generation.
    fn newest_index(&self) -> Option<u32> {
        let newest = self.newest.map(|(_, index)| index);
        newest.filter(|_| !planted::bug(Bug::NewestHeaderErased))
    }
}
