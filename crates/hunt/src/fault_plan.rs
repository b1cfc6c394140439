//! What a device does beside its rates of faults: dies that end in the middle of a run, units that come back as they
//! were, commands that silently do something else. Where there is one copy acknowledged data are lost then: what is left to
//! promise is that this is said. Where there are two, or parity, fault_plan strike one unit of a scenario, and nothing is lost.

use crate::medium::{Image, Medium};
use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_device::ModelDevice;
use softflash_nand::faults::{FaultPlace, FaultSchedule, FaultTime, PlannedFault, Strike};
use softflash_runtime::{RuntimeHandle, yield_now};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultPlan {
    /// A die dies in a session: the chance of it, a session.
    pub deaths: f64,
    /// A unit comes back as it was some sessions ago: the chance of it, a session.
    pub old_images: f64,
    /// One whole unit is replaced: it reads as random bytes, as zeros, or as it was some sessions ago. The chance of it, a
    /// session; once in a scenario.
    #[serde(skip_serializing_if = "is_never")]
    pub replacements: f64,
    /// Commands of one unit that do something else than they say, a session.
    #[serde(skip_serializing_if = "is_zero")]
    pub strikes: u32,
}

fn is_never(chance: &f64) -> bool {
    *chance == 0.0
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The state of a device's fault_plan.
#[derive(Default)]
pub struct FaultState {
    dead: Vec<u32>,
    /// Of this unit.
    image: Option<(u16, Image)>,
    /// A unit is older than it should be.
    is_old: bool,
}

/// What strikes the flash in a session.
pub type Strikes = Vec<PlannedFault>;

/// The latest command of its kind in a session that is struck.
const LATEST_COMMAND: u64 = 400;

impl FaultState {
    /// Whether units tell less of themselves than they did.
    pub fn is_forgetful(&self) -> bool {
        self.is_old || !self.dead.is_empty()
    }

    /// The deaths of those that are dead.
    pub fn dead(&self) -> Strikes {
        self.dead.iter().map(|die| death(*die, Time::ZERO)).collect()
    }

    /// Whether a disaster has struck the unit, or may have.
    pub fn has_struck(&self, unit: u16, scenario: &Scenario) -> bool {
        let is_old = self.is_old && self.image.as_ref().is_some_and(|(old, _)| *old == unit);
        let does_otherwise = scenario.fault_plan.strikes > 0 && struck_unit(scenario) == unit;
        is_old || does_otherwise || self.dead.contains(&u32::from(unit))
    }

    /// Draws what strikes in the next session; the dead stay dead. Nothing new strikes where clients do not work, if there
    /// are copies, which must come to be whole then.
    pub fn strikes(&mut self, scenario: &Scenario, rng: &mut Rng, works: bool) -> Strikes {
        let mut strikes = self.dead();
        let has_copies = scenario.store.is_redundant();
        if has_copies && (!works || !self.dead.is_empty()) {
            return strikes;
        }
        if rng.chance(scenario.fault_plan.deaths) {
            let die = rng.below(u64::from(scenario.flash.channels)) as u32;
            strikes.push(death(die, Time(1 << (10 + rng.below(22)))));
            self.dead.push(die);
        }
        let unit = u32::from(struck_unit(scenario));
        for _ in 0..scenario.fault_plan.strikes {
            let command = 1 + rng.below(LATEST_COMMAND);
            let (when, what) = match rng.below(6) {
                0 => (FaultTime::Program(command), Strike::Phantom),
                1 => (FaultTime::Program(command), Strike::Misdirect),
                2 => (FaultTime::Read(command), Strike::Misdirect),
                3 => (FaultTime::Read(command), Strike::Stale),
                4 => (FaultTime::Read(command), Strike::Miscorrect),
                _ => (FaultTime::Read(command), Strike::Fail),
            };
            strikes.push(PlannedFault { place: FaultPlace::Die(unit), when, what });
        }
        strikes
    }

    /// While the power is away: takes images of units, and brings them back.
    ///
    /// # Errors
    /// The device's, of which there should be none.
    pub fn strike(
        &mut self,
        scenario: &Scenario,
        medium: &Medium,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let FaultPlan { old_images, replacements, .. } = scenario.fault_plan;
        let once = scenario.store.is_redundant() || replacements > 0.0;
        if old_images + replacements == 0.0 || once && self.is_old {
            return Ok(());
        }
        let failed = |error: String| format!("an image: {error}");
        match &self.image {
            Some((unit, image)) if rng.chance(replacements) => {
                let replaced = match rng.below(3) {
                    0 => medium.restore(image),
                    1 => medium.overwrite(*unit, |_| {}),
                    _ => medium.overwrite(*unit, |page| rng.fill(page)),
                };
                replaced.map_err(failed)?;
                self.is_old = true;
            }
            Some((_, image)) if rng.chance(old_images) => {
                medium.restore(image).map_err(failed)?;
                self.is_old = true;
            }
            Some(_) => {}
            None => {
                let unit = rng.below(u64::from(scenario.flash.channels)) as u16;
                self.image = Some((unit, medium.image(unit).map_err(failed)?));
            }
        }
        Ok(())
    }
}

/// The unit of a scenario whose commands do something else than they say.
fn struck_unit(scenario: &Scenario) -> u16 {
    (scenario.seed % u64::from(scenario.flash.channels)) as u16
}

/// The dies that are dead from the beginning.
pub fn dead_dies(strikes: &Strikes) -> BTreeSet<u16> {
    let of = |fault: &PlannedFault| match fault {
        PlannedFault { place: FaultPlace::Die(die), what: Strike::Death, .. } => Some(*die as u16),
        _ => None,
    };
    strikes.iter().filter_map(of).collect()
}

fn death(die: u32, at: Time) -> PlannedFault {
    PlannedFault { place: FaultPlace::Die(die), when: FaultTime::AtNs(at.0), what: Strike::Death }
}

/// Plans strikes as soon as the device is in use.
pub fn plan(strikes: &Strikes, device: &Arc<ModelDevice>, runtime: &RuntimeHandle) {
    if strikes.is_empty() {
        return;
    }
    let schedule = FaultSchedule { faults: strikes.clone() };
    let device = Arc::clone(device);
    runtime.spawn(Box::pin(async move {
        // All queue pairs are opened before anybody waits.
        yield_now().await;
        let planned = device.schedule_faults(&schedule);
        assert!(planned.is_ok(), "dies of the scenario exist: {planned:?}");
    }));
}
