//! Runs one scenario from beginning to end.

use crate::client_model::Pace;
use crate::fault_state::FaultState;
use crate::headers::Headers;
use crate::invariants::SpaceAccounting;
use crate::medium::Medium;
use crate::scenario::Scenario;
use crate::session::{self, ClientGroup, Comparison, Cut, Plan, Session, Task};
use crate::session_failure::SessionFailure;
use crate::store_sets::StoreSets;
use crate::{repaired, superblocks, volumes};
use softflash_base::Time;
use softflash_base::checksum::{hash64, identity};
use softflash_base::random::Rng;
use softflash_nand::faults::SilentFaults;
use std::cell::RefCell;
use std::ops::Range;

/// Cuts occur 2^10 ns to 2^32 ns after power on, log-uniformly: some in the first steps of a
/// recovery, some in its middle, most in the work after it.
const EARLIEST_CUT: f64 = 10.0;
const LATEST_CUT: f64 = 32.0;

/// Range of cuts soon after a request, in powers of two nanoseconds from the request: 16 µs to 17
/// ms.
const PROMPT_CUTS: Range<f64> = 14.0..24.0;

/// Latest cut aimed at a removal of all keys, as a power of two nanoseconds after the start of the
/// removal.
const LATEST_REMOVAL: f64 = 23.0;

/// Wall clock at the start of a scenario.
const WALL_MS: u64 = 1_000_000_000_000;

/// The largest step back of the wall clock, in milliseconds.
const LONGEST_STEP_MS: u64 = 1 << 23;

/// Maximum number of cuts during recoveries in a scenario.
const MOST_NESTED: u32 = 64;

/// Results of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Record {
    /// Cuts after which the recovered data were compared with the reference.
    pub crash_points: u64,
    /// Sessions that compared all contents with the reference.
    pub comparisons: u64,
    /// The most cuts between two comparisons: the depth of nested recoveries.
    pub deepest: u64,
    /// Virtual time.
    pub simulated_ns: u64,
    /// The store reported a loss in a scenario that may lose data; the trial ends there.
    pub loss: bool,
    /// Half of the flash of a unit has gone bad, and the store reported it; the trial ends there.
    pub worn_out: bool,
    /// Sessions in which the store rightly refused writes for lack of space.
    pub full: u64,
    /// Hash of all sessions: equal for equal scenarios.
    pub trace: u64,
}

/// Runs a scenario; the error describes the failure.
pub fn run(scenario: &Scenario) -> Result<Record, String> {
    if let Some(shape) = &scenario.volumes {
        return volumes::run(scenario, shape);
    }
    if let Some(shape) = &scenario.superblocks {
        return superblocks::run(scenario, shape);
    }
    let mut trial = Trial {
        scenario,
        medium: Medium::new(scenario)?,
        sessions: 0,
        clients: ClientGroup::of(scenario),
        wall_ms: WALL_MS,
        rng: Rng::seeded(scenario.seed).fork("cuts"),
        removal_rng: Rng::seeded(scenario.seed).fork("cuts of removals"),
        record: Record::default(),
        open: 0,
        fault_state: FaultState::default(),
        accounting: None,
        headers: Headers::default(),
        silent: 0,
        sets: RefCell::new(StoreSets::of(scenario)),
    };
    match trial.go() {
        Ok(()) => {}
        // With one copy, a reported loss is correct.
        Err(SessionFailure::Lost(_) | SessionFailure::WornOut(_)) if trial.may_have_lost() => {
            trial.record.loss = true;
        }
        // The flash is worn out, or what went bad was the space that the store keeps free; the data
        // were readable to the end.
        Err(SessionFailure::WornOut(_)) if trial.medium.has_lost_its_reserve() => {
            trial.record.worn_out = true;
        }
        // The shard has a single unit left: no other unit can replace its lost data.
        Err(SessionFailure::Lost(_)) if trial.has_single_units() => trial.record.worn_out = true,
        Err(failure) => {
            let (cuts, open) = (trial.record.crash_points + trial.open, trial.open);
            let what = failure.what();
            return Err(format!(
                "after {cuts} cuts, {open} of them since the last comparison: {what}"
            ));
        }
    }
    let injected = device_trace(&trial.medium);
    trial.record.trace = identity(&[trial.record.trace, injected]);
    Ok(trial.record)
}

/// Hash of the device's faults that are not visible to clients.
fn device_trace(medium: &Medium) -> u64 {
    let Some(device) = medium.flash() else { return 0 };
    hash64(format!("{:?} {:?}", device.injected_faults(), device.last_power_cut()).as_bytes())
}

struct Trial<'a> {
    scenario: &'a Scenario,
    medium: Medium,
    sessions: u64,
    clients: ClientGroup,
    /// Wall clock at the start of the next session.
    wall_ms: u64,
    rng: Rng,
    /// Random stream of the cuts during a removal of all keys.
    removal_rng: Rng,
    record: Record,
    /// Cuts since the last comparison.
    open: u64,
    fault_state: FaultState,
    /// The flash's space accounting at the last comparison.
    accounting: Option<SpaceAccounting>,
    headers: Headers,
    /// Number of silent program faults up to then.
    silent: u64,
    /// The units of each shard.
    sets: RefCell<StoreSets>,
}

impl Trial<'_> {
    fn go(&mut self) -> Result<(), SessionFailure> {
        let (mut done, mut nested) = (0, 0);
        while done < self.scenario.cuts {
            let cut = self.cut();
            let session = self.session(Task::Work, Some(cut))?;
            if session.compared.is_some() || nested == MOST_NESTED {
                done += 1;
            } else {
                nested += 1;
            }
            self.open += 1;
            let epoch = self.sets.borrow().layout().epoch;
            self.headers.look(self.scenario, (&self.medium, epoch))?;
            self.outage()?;
        }
        // The first recovers from the last cut; the others follow clean ends and must find
        // identical contents.
        self.session(Task::Prove, None)?;
        self.session(Task::Close, None)?;
        let Session { lacks_room, .. } = self.session(Task::Close, None)?;
        // With one copy, the loss by a dead unit was reported; where a unit may be lost, the data
        // must be complete without it.
        let is_redundant = self.scenario.store.is_redundant();
        let dead = if is_redundant { self.fault_state.dead() } else { Default::default() };
        let layout = self.sets.borrow().layout();
        match session::check_offline(
            self.scenario,
            (&self.medium, &layout),
            &dead,
            self.wall_ms,
            lacks_room,
        ) {
            None => {
                let rng = &mut self.rng.fork("repairs");
                let (scenario, medium, wall_ms) = (self.scenario, &self.medium, self.wall_ms);
                let repaired = repaired::check(scenario, medium, &self.clients, wall_ms, rng);
                repaired.map_err(SessionFailure::Wrong)
            }
            Some(what) if self.may_have_lost() => Err(SessionFailure::Lost(what)),
            Some(what) => Err(SessionFailure::Wrong(what)),
        }
    }

    /// Whether a fault of this scenario may have lost acknowledged data.
    fn may_have_lost(&self) -> bool {
        let Scenario { faults, fault_plan, .. } = self.scenario;
        let by_itself = faults.silent != SilentFaults::default() || faults.bit_errors.is_on();
        self.scenario.may_lose()
            && (by_itself || fault_plan.planned_faults > 0 || self.fault_state.is_forgetful())
    }

    /// Whether a redundant shard has a single unit left that is not worn out, and a fault of the
    /// plan has struck it.
    fn has_single_units(&self) -> bool {
        let worn_out = self.medium.worn_out_units();
        let units: Vec<u16> = (0..self.scenario.flash.channels).collect();
        let is_struck = |unit: &u16| self.fault_state.has_struck(*unit, self.scenario);
        let relies_on_it = |units: &[u16]| {
            let left: Vec<u16> =
                units.iter().filter(|unit| !worn_out.contains(unit)).copied().collect();
            match &left[..] {
                [] => units.iter().any(is_struck),
                [last] => is_struck(last),
                _ => false,
            }
        };
        self.scenario.store.is_redundant()
            && units.chunks(self.scenario.units_of_a_shard()).any(relies_on_it)
    }

    /// Draws when the next session is cut. Where clients pause, half of the cuts come soon after a
    /// request.
    fn cut(&mut self) -> Cut {
        let Pace { pauses, prompt_cuts, .. } = self.scenario.pace;
        let prompt = prompt_cuts && self.rng.chance(0.75);
        let range = if prompt { PROMPT_CUTS } else { EARLIEST_CUT..LATEST_CUT };
        let exponent = range.start + (range.end - range.start) * self.rng.unit_f64();
        let then = Time(exponent.exp2() as u64);
        let slow = prompt || pauses > 0.0 && self.rng.chance(0.5);
        let most =
            u64::from(self.scenario.clients.requests) * u64::from(self.scenario.clients.count);
        let requests = slow.then(|| self.rng.below(most + 1));
        let seed = self.rng.next_u64();
        let removes = self.scenario.resp.as_ref().is_some_and(|resp| resp.clears_beside);
        if !removes || !self.removal_rng.chance(0.3) {
            return Cut { requests, removals: None, then, seed };
        }
        // During or soon after a removal of all keys.
        let exponent = EARLIEST_CUT + (LATEST_REMOVAL - EARLIEST_CUT) * self.removal_rng.unit_f64();
        let then = Time(exponent.exp2() as u64);
        Cut { requests: None, removals: Some(1 + self.removal_rng.below(3)), then, seed }
    }

    /// A power outage. The wall clock may be set back.
    fn outage(&mut self) -> Result<(), SessionFailure> {
        let pace = &self.scenario.pace;
        let longest = (pace.longest_outage_ms.max(1) as f64).log2();
        self.wall_ms += (longest * self.rng.unit_f64()).exp2() as u64;
        if pace.steps_back && self.rng.chance(0.3) {
            self.wall_ms -= self.rng.below(LONGEST_STEP_MS);
        }
        let injected = self.fault_state.apply_while_off(self.scenario, &self.medium, &mut self.rng);
        injected.map_err(SessionFailure::Wrong)?;
        if self.fault_state.needs_rest(self.scenario) {
            self.session(Task::Close, None)?;
            self.fault_state.has_rested();
        }
        Ok(())
    }

    fn session(&mut self, task: Task, cut: Option<Cut>) -> Result<Session, SessionFailure> {
        let session = session::run(&Plan {
            scenario: self.scenario,
            medium: &self.medium,
            number: self.sessions,
            clients: &self.clients,
            task,
            cut,
            wall_ms: self.wall_ms,
            planned_faults: self.fault_state.planned_faults(
                self.scenario,
                &mut self.rng,
                cut.is_some(),
            ),
            silent_before: self.silent,
            sets: &self.sets,
        });
        self.sessions += 1;
        self.record.full += u64::from(session.full);
        self.wall_ms += session.ended_at.0.div_ceil(1_000_000);
        self.record.simulated_ns += session.ended_at.0;
        self.record.trace = identity(&[
            self.record.trace,
            session.ended_at.0,
            u64::from(session.compared.is_some()),
            self.clients.trace(),
        ]);
        if let Some(Comparison { accounting, silent }) = &session.compared {
            if let (Some(before), Some(accounting)) = (&self.accounting, accounting)
                && !self.fault_state.is_forgetful()
            {
                accounting.follow(before, self.scenario).map_err(SessionFailure::Wrong)?;
            }
            self.accounting = accounting.clone();
            self.silent = *silent;
            self.record.crash_points += self.open;
            self.record.comparisons += 1;
            self.record.deepest = self.record.deepest.max(self.open);
            self.open = 0;
        }
        match session.failure {
            None => Ok(session),
            Some(failure) => Err(failure),
        }
    }
}
