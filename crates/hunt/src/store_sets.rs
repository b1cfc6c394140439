//! Units leave the keys of a shard while clients work, and come back, at once or with a later
//! start. The table of sets changes in one step.

use crate::medium::Medium;
use crate::scenario::Scenario;
use crate::session_failure::SessionFailure;
use futures_util::future::{Either, select};
use softflash_base::random::Rng;
use softflash_base::{ShardId, UnitSet};
use softflash_device::QueuePair;
use softflash_flash::erase_units;
use softflash_runtime::RuntimeHandle;
use softflash_store::{Store, StoreError, StoreLayout};
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// Share of the scenarios, of those that lose nothing and whose shards have units to spare.
const SHARE: f64 = 0.3;
/// Share of sessions with hand-overs.
const MOST_SESSIONS: f64 = 0.9;
/// Units that leave one after the other, at most.
const MOST_DRAINS: u64 = 3;
/// A drain begins so long after the comparison at most, in powers of two of a nanosecond.
const LATEST_DRAIN: f64 = 30.0;
/// Share of units that come back in the session in which they left.
const LIVE: f64 = 0.6;
/// Share of spare units that come back with the next start, where all need not.
const RETURNS: f64 = 0.5;
/// The longest time for which a unit is drained while nobody writes.
const PATIENCE: Duration = Duration::from_secs(600);

impl Scenario {
    /// Uses a random stream of its own, so that earlier seeds keep their other properties.
    pub(crate) fn with_store_hand_overs(mut self) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("hand-overs of keys");
        let is_of_keys = self.volumes.is_none() && self.superblocks.is_none();
        let keeps_all = !self.may_lose() && self.fault_plan == Default::default();
        let has_more = self.units_of_a_shard() > least_units(&self);
        if is_of_keys && keeps_all && has_more && self.repairs == 0 && rng.chance(SHARE) {
            self.store.hand_overs = MOST_SESSIONS * rng.unit_f64();
        }
        self
    }
}

/// Units that a shard needs.
fn least_units(scenario: &Scenario) -> usize {
    match (scenario.store.copies, scenario.store.parity) {
        (_, 1..) => 3,
        (2.., _) => 2,
        _ => 1,
    }
}

/// The table of sets: which units each shard has, and those that are spare.
pub struct StoreSets {
    layout: StoreLayout,
    /// Spare units, with the shard that had them.
    spare: Vec<(ShardId, u16)>,
}

impl StoreSets {
    /// The units of a new store.
    pub fn of(scenario: &Scenario) -> StoreSets {
        StoreSets { layout: scenario.layout(), spare: Vec::new() }
    }

    /// The layout by the table.
    pub fn layout(&self) -> StoreLayout {
        self.layout.clone()
    }

    /// Whether no unit is spare.
    pub fn are_full(&self) -> bool {
        self.spare.is_empty()
    }

    fn leave(&mut self, shard: ShardId, unit: u16) {
        let units = &mut self.layout.units[shard.index()];
        *units = units.iter().filter(|other| *other != unit).collect();
        self.layout.epoch += 1;
        self.spare.push((shard, unit));
    }

    fn join(&mut self, shard: ShardId, unit: u16) {
        self.spare.retain(|(_, other)| *other != unit);
        let units = &mut self.layout.units[shard.index()];
        *units = units.iter().chain([unit]).collect();
        self.layout.epoch += 1;
    }
}

/// The hand-overs of a session.
pub struct HandOvers<'a> {
    medium: &'a Medium,
    sets: &'a RefCell<StoreSets>,
    least: usize,
    rng: Rng,
    are_some: bool,
}

impl<'a> HandOvers<'a> {
    /// Those of the session with this number, if it has some.
    pub fn drawn(
        scenario: &Scenario,
        medium: &'a Medium,
        sets: &'a RefCell<StoreSets>,
        number: u64,
    ) -> HandOvers<'a> {
        let mut rng = Rng::seeded(scenario.seed).fork(format!("hand-overs of session {number}"));
        let share = scenario.store.hand_overs;
        let are_some = share > 0.0 && rng.chance(share);
        HandOvers { medium, sets, least: least_units(scenario), rng, are_some }
    }

    /// Spare units come back before the store is opened: some of them, or all.
    pub async fn come_back(
        &mut self,
        all: bool,
        runtime: &RuntimeHandle,
    ) -> Result<(), SessionFailure> {
        let spare = self.sets.borrow().spare.clone();
        for (shard, unit) in spare {
            if all || self.rng.chance(RETURNS) {
                self.erase(unit, runtime).await?;
                self.sets.borrow_mut().join(shard, unit);
            }
        }
        Ok(())
    }

    /// Units leave shards beside the work of clients.
    pub async fn leave(
        &mut self,
        stores: &[Store],
        runtime: &RuntimeHandle,
    ) -> Result<(), SessionFailure> {
        if !self.are_some {
            return Ok(());
        }
        for _ in 0..self.rng.below(MOST_DRAINS + 1) {
            let after = (LATEST_DRAIN * self.rng.unit_f64()).exp2() as u64;
            runtime.sleep_until(runtime.now() + after).await;
            let store = &stores[self.rng.below(stores.len() as u64) as usize];
            let Some(unit) = self.any_unit(store) else { continue };
            let units = UnitSet::from_iter([unit]);
            if !drained(store.drain_units(&units).await)? {
                continue;
            }
            let shard = store.local_id();
            self.sets.borrow_mut().leave(shard, unit);
            store.leave_units(&units).await?;
            if self.rng.chance(LIVE) {
                self.erase(unit, runtime).await?;
                self.sets.borrow_mut().join(shard, unit);
                let epoch = self.sets.borrow().layout.epoch;
                store.join_units(self.queue_pair(&units)?, epoch).await?;
            }
        }
        Ok(())
    }

    /// A unit can be drained while nobody writes, and takes data again.
    pub async fn end(
        &mut self,
        stores: &[Store],
        runtime: &RuntimeHandle,
    ) -> Result<(), SessionFailure> {
        if !self.are_some {
            return Ok(());
        }
        let store = &stores[self.rng.below(stores.len() as u64) as usize];
        let Some(unit) = self.any_unit(store) else { return Ok(()) };
        let units = UnitSet::from_iter([unit]);
        let has_room = self.has_room(store, unit);
        let late = runtime.sleep_until(runtime.now() + PATIENCE);
        let drain = pin!(store.drain_units(&units));
        match select(drain, late).await {
            Either::Left((Err(error @ StoreError::NotDrained { .. }), _)) if has_room => {
                Err(SessionFailure::Wrong(error.to_string()))
            }
            Either::Left((outcome, _)) => {
                if drained(outcome)? {
                    store.keep_units(&units);
                }
                Ok(())
            }
            Either::Right(_) => Err(SessionFailure::Wrong(format!(
                "unit {unit} is not drained in {PATIENCE:?}: {} bytes are left",
                store.bytes_on(&units)
            ))),
        }
    }

    /// Whether a store without redundancy has ample room for the blocks of a unit on its others.
    fn has_room(&self, store: &Store, unit: u16) -> bool {
        let blocks = store.blocks();
        let space = blocks.flash().space(unit);
        let others = blocks.free_blocks().saturating_sub(space.allocatable());
        self.least == 1 && others >= space.open + space.live + 2 * store.reserve_blocks()
    }

    /// A unit that the shard of a store can be without.
    fn any_unit(&mut self, store: &Store) -> Option<u16> {
        let units = self.sets.borrow().layout.units_of(store.local_id());
        let place = self.rng.below(units.len() as u64) as usize;
        units.get(place).filter(|_| units.len() > self.least)
    }

    fn queue_pair(&self, units: &UnitSet) -> Result<Box<dyn QueuePair>, SessionFailure> {
        let opened = self.medium.device().open_queue_pair(units);
        opened.map_err(|error| SessionFailure::Wrong(error.to_string()))
    }

    async fn erase(&self, unit: u16, runtime: &RuntimeHandle) -> Result<(), SessionFailure> {
        let epoch = self.sets.borrow().layout.epoch;
        let queue = self.queue_pair(&UnitSet::from_iter([unit]))?;
        let erased = erase_units(queue, epoch, Rc::clone(runtime)).await;
        erased.map_err(|error| SessionFailure::Lost(error.to_string()))
    }
}

/// Whether a unit is empty; its data may have no room elsewhere.
fn drained(outcome: Result<(), StoreError>) -> Result<bool, SessionFailure> {
    match outcome {
        Ok(()) => Ok(true),
        Err(
            StoreError::NotDrained { .. } | StoreError::OutOfSpace | StoreError::WornOut { .. },
        ) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
