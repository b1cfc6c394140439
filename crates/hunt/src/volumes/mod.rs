//! Scenarios of volumes: clients with volumes, snapshots and clones of their own on one mapped
//! domain, and power cuts at any moment.

mod burst;
mod client;
mod contest;
mod damage;
mod hand_overs;
mod lifting;
mod limits;
mod paces;
mod reading;
mod reference;
mod repaired;
mod reshaping;
mod session;
mod sets;
mod steps;

use crate::fault_state::FaultState;
use crate::medium::{Image, Medium};
use crate::planned_faults::first_death;
use crate::scenario::Scenario;
use crate::session_failure::SessionFailure;
use crate::trial::Record;
use crate::volume_shape::VolumeShape;
use reference::Reference;
use repaired::Repairs;
use session::Session;
use sets::SetTable;
use softflash_base::Time;
use softflash_base::checksum::identity;
use softflash_base::random::Rng;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Runs a scenario of volumes; the error describes the failure.
pub fn run(scenario: &Scenario, shape: &VolumeShape) -> Result<Record, String> {
    let mut trial = Trial {
        scenario,
        shape,
        medium: Medium::new(scenario)?,
        // One more for the set that comes and goes.
        references: (0..scenario.clients.count + u16::from(shape.hand_overs > 0.0))
            .map(|client| Rc::new(RefCell::new(Reference::new(client, shape.units))))
            .collect(),
        sets: RefCell::new(SetTable::new(scenario, shape)),
        is_whole: Cell::new(false),
        rng: Rng::seeded(scenario.seed).fork("cuts of volumes"),
        record: Record::default(),
        open: 0,
        fault_state: FaultState::default(),
        faults_rng: Rng::seeded(scenario.seed).fork("faults of volumes"),
        has_dead_die: false,
    };
    match trial.go() {
        Ok(()) => Ok(trial.record),
        Err(SessionFailure::Lost(_) | SessionFailure::WornOut(_)) if scenario.may_lose() => {
            trial.record.loss = true;
            Ok(trial.record)
        }
        Err(SessionFailure::WornOut(_) | SessionFailure::Lost(_) | SessionFailure::Full)
            if trial.medium.is_worn_out() =>
        {
            trial.record.worn_out = true;
            Ok(trial.record)
        }
        // The data of a dead die stay in the map, and its space is gone.
        Err(SessionFailure::Full) if trial.has_dead_die => {
            trial.record.loss = true;
            Ok(trial.record)
        }
        // Bad blocks have taken what collection needs, and the data stay.
        Err(SessionFailure::Full) if trial.medium.has_lost_its_reserve() => {
            trial.record.worn_out = true;
            Ok(trial.record)
        }
        Err(failure) => {
            let cuts = trial.record.crash_points + trial.open;
            Err(format!(
                "after {cuts} cuts, {} of them since the last comparison: {}",
                trial.open,
                failure.what()
            ))
        }
    }
}

/// Cuts occur 2^10 ns to 2^30 ns after power on, log-uniformly.
const EARLIEST_CUT: f64 = 10.0;
const LATEST_CUT: f64 = 30.0;
/// Where data may be lost, clients rest for seconds until a loss would be known.
const LATEST_CUT_WITH_LOSSES: f64 = 35.0;

/// Most cuts during recoveries.
const MOST_NESTED: u32 = 64;

struct Trial<'a> {
    scenario: &'a Scenario,
    shape: &'a VolumeShape,
    medium: Medium,
    references: Vec<Rc<RefCell<Reference>>>,
    sets: RefCell<SetTable>,
    /// Both sets of a pair had everything in the last session.
    is_whole: Cell<bool>,
    rng: Rng,
    record: Record,
    /// Cuts since the last comparison.
    open: u64,
    fault_state: FaultState,
    faults_rng: Rng,
    /// A die has failed.
    has_dead_die: bool,
}

impl Trial<'_> {
    fn go(&mut self) -> Result<(), SessionFailure> {
        let (mut done, mut nested) = (0, 0);
        while done < self.scenario.cuts {
            let latest = if self.scenario.may_lose() { LATEST_CUT_WITH_LOSSES } else { LATEST_CUT };
            let exponent = EARLIEST_CUT + (latest - EARLIEST_CUT) * self.rng.unit_f64();
            let compared = self.session(Some(Time(exponent.exp2() as u64)), false)?;
            if compared || nested == MOST_NESTED {
                done += 1;
            } else {
                nested += 1;
            }
            self.open += 1;
            self.lose_set(compared)?;
        }
        // The first recovers from the last cut; the second must find the same.
        self.session(None, false)?;
        let old_unit = self.old_unit().map_err(SessionFailure::Wrong)?;
        // A volume whose data are lost reads nothing.
        self.session(None, self.shape.contest && !self.scenario.may_lose())?;
        let Some(old_unit) = old_unit else { return Ok(()) };
        let Trial { scenario, shape, medium, references, .. } = self;
        let repairs = Repairs { scenario, shape, medium, references, old_unit };
        repairs.check(&mut self.rng.fork("repairs")).map_err(SessionFailure::Wrong)
    }

    /// The flash of a set of a pair is lost, if the other one has everything: with windows, what
    /// was written since the last turn is in one set only.
    fn lose_set(&mut self, compared: bool) -> Result<(), SessionFailure> {
        let Some(pair) = &self.shape.pair else { return Ok(()) };
        // Units of a drive cannot be overwritten.
        let may_lose = compared && self.is_whole.get() && self.medium.flash().is_some();
        if !may_lose || !self.faults_rng.chance(pair.losses) {
            return Ok(());
        }
        if pair.window_us > 0 {
            self.session(None, false)?;
        }
        if !self.is_whole.replace(false) {
            return Ok(());
        }
        let lost = self.faults_rng.below(2) as usize;
        let units: Vec<u16> = self.sets.borrow().sets()[lost].units().iter().collect();
        for unit in units {
            let blanked = self.medium.overwrite(unit, |page| page.fill(0));
            blanked.map_err(SessionFailure::Wrong)?;
        }
        Ok(())
    }

    /// A unit before the last session, if the scenario has repairs, and may bring it back.
    fn old_unit(&mut self) -> Result<Option<Image>, String> {
        if self.scenario.repairs == 0 {
            return Ok(None);
        }
        let units = u64::from(self.scenario.flash.channels);
        self.medium.image(self.faults_rng.below(units) as u16).map(Some)
    }

    /// Runs from power on to power off; returns whether everything was compared.
    fn session(&mut self, cut: Option<Time>, contest: bool) -> Result<bool, SessionFailure> {
        let works = cut.is_some();
        let dead_before = self.fault_state.dead().len();
        let planned_faults =
            self.fault_state.planned_faults(self.scenario, &mut self.faults_rng, works);
        let dies_anew = self.fault_state.dead().len() > dead_before;
        let first_death = first_death(&planned_faults);
        let session = Session {
            planned_faults,
            scenario: self.scenario,
            shape: self.shape,
            medium: &self.medium,
            references: &self.references,
            sets: &self.sets,
            is_whole: &self.is_whole,
            cut,
            contest,
            seed: self.rng.next_u64(),
        };
        let ended = session.run();
        self.has_dead_die |= first_death.is_some_and(|at| at <= ended.at);
        self.record.simulated_ns += ended.at.0;
        self.record.full += u64::from(ended.full);
        let found = self.references.iter().map(|reference| reference.borrow().hash());
        let session = [self.record.trace, ended.at.0, self.sets.borrow().epoch().into()];
        let parts: Vec<u64> = session.into_iter().chain(found).collect();
        self.record.trace = identity(&parts);
        if ended.compared && !dies_anew {
            self.fault_state.has_recovered();
        }
        if ended.compared {
            self.record.crash_points += self.open;
            self.record.comparisons += 1;
            self.record.deepest = self.record.deepest.max(self.open);
            self.open = 0;
        }
        match ended.failure {
            Some(failure) => return Err(failure),
            // A recovery has made the effects of the damage before its own.
            None if ended.compared => self.damage().map_err(SessionFailure::Wrong)?,
            None => {}
        }
        Ok(ended.compared)
    }

    /// Damages the flash whose power is off, as the fault plan says.
    fn damage(&mut self) -> Result<(), String> {
        let rng = &mut self.faults_rng;
        if self.fault_state.needs_rest(self.scenario) {
            // The recovery that has completed was the rest.
            self.fault_state.has_rested();
        }
        self.fault_state.apply_while_off(self.scenario, &self.medium, rng)?;
        if rng.chance(self.scenario.fault_plan.changed_pages) {
            damage::damage(&self.medium, self.scenario.flash.channels, rng)?;
        }
        Ok(())
    }
}
