//! Units pass from one set to another: a domain drains one while clients use it, and a spare one is
//! erased and joins a set, at once or with the next mount. The table of sets changes in one step.

use super::client::Ended;
use super::reference::Reference;
use super::session::Session;
use crate::session_failure::SessionFailure;
use softflash_base::UnitSet;
use softflash_base::random::Rng;
use softflash_flash::erase_units;
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, VolumeError};
use std::rc::Rc;

/// Share of hand-overs that begin with the deletion of the second set.
const DELETIONS: f64 = 0.15;
/// A drain begins so long after the mount at most, in powers of two of a nanosecond.
const LATEST_DRAIN: f64 = 28.0;
/// Units that are drained one after the other, at most.
const MOST_DRAINS: u64 = 3;

/// Share of sessions in which units leave their domain at once, and not with the next mount.
const LIVE: f64 = 0.7;

/// The hand-overs of a session.
pub struct HandOvers<'a> {
    session: &'a Session<'a>,
    rng: Rng,
    are_some: bool,
    are_live: bool,
}

impl<'a> HandOvers<'a> {
    /// Those of a session, if it has some.
    pub fn drawn(session: &'a Session<'a>) -> HandOvers<'a> {
        let mut rng = Rng::seeded(session.seed).fork("hand-overs");
        let share = session.shape.hand_overs;
        let are_some = share > 0.0 && rng.chance(share);
        let are_live = are_some && rng.chance(LIVE);
        HandOvers { session, rng, are_some, are_live }
    }

    /// Deletes the second set, or erases a spare unit, which joins a set then.
    pub async fn join(&mut self, runtime: &RuntimeHandle) -> Result<(), SessionFailure> {
        if !self.are_some {
            return Ok(());
        }
        let sets = self.session.sets;
        let is_pair = sets.borrow().is_pair();
        if !is_pair && sets.borrow().sets().len() > 1 && self.rng.chance(DELETIONS) {
            sets.borrow_mut().delete_second();
        }
        let Some(unit) = sets.borrow().any_spare(&mut self.rng) else { return Ok(()) };
        let epoch = sets.borrow().epoch();
        let queue = self.session.queue_pair(&UnitSet::from_iter([unit]))?;
        let erased = erase_units(queue, epoch, Rc::clone(runtime)).await;
        erased.map_err(|error| SessionFailure::Lost(error.to_string()))?;
        let before = sets.borrow().sets().len();
        sets.borrow_mut().join(unit, &mut self.rng);
        if sets.borrow().sets().len() > before {
            self.begin_second();
        }
        Ok(())
    }

    /// The second set is a new one: it has another client, whose data are none of those before.
    fn begin_second(&self) {
        let Session { scenario, shape, sets, references, .. } = self.session;
        let set = sets.borrow().sets().last().map(|set| set.domain()).unwrap_or_default();
        if let Some(reference) = references.last() {
            let client = scenario.clients.count + set;
            *reference.borrow_mut() = Reference::new(client, shape.units);
        }
    }

    /// Drains units of the domains, which leave them then.
    pub async fn leave(
        &mut self,
        runtime: &RuntimeHandle,
        domains: &[Domain],
    ) -> Result<(), Ended> {
        if !self.are_some {
            return Ok(());
        }
        for _ in 0..self.rng.below(MOST_DRAINS + 1) {
            let after = (LATEST_DRAIN * self.rng.unit_f64()).exp2() as u64;
            runtime.sleep_until(runtime.now() + after).await;
            let number = self.rng.below(domains.len() as u64) as usize;
            let units: Vec<u16> =
                self.session.sets.borrow().sets()[number].units().iter().collect();
            let unit = units[self.rng.below(units.len() as u64) as usize];
            match domains[number].drain(&UnitSet::from_iter([unit])).await {
                Ok(()) => self.session.sets.borrow_mut().leave(unit),
                // The unit stays.
                Err(
                    VolumeError::UnitsNeeded { .. }
                    | VolumeError::OutOfSpace { .. }
                    | VolumeError::WornOut,
                ) => continue,
                Err(error) => return Err(Ended::Failed(error)),
            }
            if self.are_live {
                let table = self.session.sets.borrow().slots(number);
                let left = domains[number].leave(&UnitSet::from_iter([unit]), &table).await;
                left.map_err(Ended::Failed)?;
                self.join_live(unit, runtime, domains).await?;
            }
        }
        Ok(())
    }

    /// A unit that has left joins a domain that is mounted.
    async fn join_live(
        &mut self,
        unit: u16,
        runtime: &RuntimeHandle,
        domains: &[Domain],
    ) -> Result<(), Ended> {
        let (session, units) = (self.session, UnitSet::from_iter([unit]));
        let queue = || session.queue_pair(&units).map_err(|error| Ended::Wrong(error.what()));
        let epoch = session.sets.borrow().epoch();
        if erase_units(queue()?, epoch, Rc::clone(runtime)).await.is_err() {
            // It stays spare.
            return Ok(());
        }
        let number = self.rng.below(domains.len() as u64) as usize;
        session.sets.borrow_mut().join_live(unit, number, &mut self.rng);
        let table = session.sets.borrow().slots(number);
        domains[number].join(queue()?, &table).await.map_err(Ended::Failed)
    }
}
