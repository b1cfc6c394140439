//! Erasing ahead of need, when nobody waits for the unit.
//!
//! The superblock whose header has the greatest generation is never erased ahead of need. A power cut in that erase would take
//! the header: generations and erase counts would run back to those of the next newest one.

use crate::ftl::Ftl;
use crate::hint::Priority;
use crate::policy::wear::{Candidate, Readiness, choose};
use crate::scheduler::{Class, Lane};
use crate::unit::{State, Unit};
use softflash_base::Time;
use softflash_base::planted::{self, Bug};

impl Ftl {
    /// When the next superblock of a unit is to be erased ahead of need: after the unit has been idle for
    /// a while, or, on one that never is, when superblocks have been short for long.
    pub(crate) fn preparation_due(&self, unit: usize) -> Option<Time> {
        let unit = &self.units[unit];
        let short_since = unit.short_since?;
        if unit.count(State::Preparing) > 0 || !unit.can_prepare() || unit.space().is_worn_out() {
            return None;
        }
        let patient = short_since + self.config.shortage_patience_ns;
        let due = match unit.load {
            0 => patient.min(unit.idle_since + self.config.idle_before_erase_ns),
            _ => patient,
        };
        Some(due.max(unit.prepare_not_before))
    }

    /// Begins the erases that are due.
    pub(crate) fn prepare_ahead(&mut self, now: Time) {
        for unit in 0..self.units.len() {
            if self.preparation_due(unit).is_some_and(|due| due <= now) {
                self.prepare_one(now, unit);
            }
        }
    }

    fn prepare_one(&mut self, now: Time, unit: usize) {
        let state = &mut self.units[unit];
        if let Some(chosen) = state.to_prepare() {
            state.set_state(chosen.index, State::Preparing);
            let lane = Lane::new(Class::Erase, Priority::Background);
            self.start_erase(now, unit, chosen.index, lane);
        }
    }
}

impl Unit {
    /// Whether a superblock may be erased ahead of need.
    fn can_prepare(&self) -> bool {
        let kept = self.kept().is_some_and(|index| self.slot(index).state == State::Reclaimable);
        self.count(State::Reclaimable) > u32::from(kept)
    }

    /// The superblock to erase ahead of need.
    fn to_prepare(&self) -> Option<Candidate> {
        let kept = self.kept();
        let suits = |candidate: &Candidate| {
            candidate.readiness == Readiness::Reclaimable && Some(candidate.index) != kept
        };
        choose(self.candidates().filter(suits))
    }

    /// The superblock whose header has the greatest generation.
    fn kept(&self) -> Option<u32> {
        let newest = self.newest.map(|(_, index)| index);
        newest.filter(|_| !planted::bug(Bug::NewestHeaderErased))
    }
}
