//! Erasing ahead of need, when nobody waits for the unit.

use crate::ftl::Ftl;
use crate::hint::Priority;
use crate::policy::wear::{Candidate, Readiness};
use crate::scheduler::{Class, Lane};
use crate::unit::State;
use softflash_base::Time;

impl Ftl {
    /// When the next superblock of a unit is to be erased ahead of need: after the unit has been idle for
    /// a while, or, on one that never is, when superblocks have been short for long.
    pub(crate) fn preparation_due(&self, unit: usize) -> Option<Time> {
        let unit = &self.units[unit];
        let short_since = unit.short_since?;
        if unit.count(State::Preparing) > 0
            || unit.count(State::Reclaimable) == 0
            || unit.space().is_worn_out()
        {
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
        let reclaimable = |candidate: &Candidate| candidate.readiness == Readiness::Reclaimable;
        if let Some(chosen) = state.choose(reclaimable) {
            state.set_state(chosen.index, State::Preparing);
            let lane = Lane::new(Class::Erase, Priority::Background);
            self.start_erase(now, unit, chosen.index, lane);
        }
    }
}
