//! Draws the faults of a scenario's fault plan from session to session, and keeps those that last.

use crate::fault_plan::FaultPlan;
use crate::medium::{Image, Medium};
use crate::planned_faults::{PlannedFaults, death};
use crate::scenario::Scenario;
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_nand::faults::{FaultPlace, FaultTime, PlannedFault, Strike};

/// The faults that have occurred in a scenario.
#[derive(Default)]
pub struct FaultState {
    dead: Vec<u32>,
    /// The unit of the image, and the image.
    image: Option<(u16, Image)>,
    /// A unit was restored from an old image.
    is_old: bool,
    /// A die has failed, and no recovery is complete since.
    is_weakened: bool,
}

/// Maximum sequence number, per kind of command, of a command with a fault.
const LATEST_COMMAND: u64 = 400;

impl FaultState {
    /// Whether a unit may have lost information that it had earlier.
    pub fn is_forgetful(&self) -> bool {
        self.is_old || !self.dead.is_empty()
    }

    /// Faults that keep dead dies dead.
    pub fn dead(&self) -> PlannedFaults {
        self.dead.iter().map(|die| death(*die, Time::ZERO)).collect()
    }

    /// Whether a fault of the plan has struck the unit, or may have.
    pub fn has_struck(&self, unit: u16, scenario: &Scenario) -> bool {
        let is_old = self.is_old && self.image.as_ref().is_some_and(|(old, _)| *old == unit);
        let does_otherwise =
            scenario.fault_plan.planned_faults > 0 && faulty_unit(scenario) == unit;
        is_old || does_otherwise || self.dead.contains(&u32::from(unit))
    }

    /// Draws the faults of the next session; dead dies stay dead. With redundancy, sessions without
    /// client work have no new faults, because they must restore full redundancy.
    pub fn planned_faults(
        &mut self,
        scenario: &Scenario,
        rng: &mut Rng,
        works: bool,
    ) -> PlannedFaults {
        let mut planned_faults = self.dead();
        let has_copies = scenario.store.is_redundant();
        if has_copies && (!works || !self.dead.is_empty()) {
            return planned_faults;
        }
        let may_die = scenario.volumes.is_none() || !self.is_weakened;
        if rng.chance(scenario.fault_plan.deaths) && may_die {
            self.is_weakened = true;
            let die = rng.below(u64::from(scenario.flash.channels)) as u32;
            planned_faults.push(death(die, Time(1 << (10 + rng.below(22)))));
            self.dead.push(die);
        }
        let unit = u32::from(faulty_unit(scenario));
        for _ in 0..scenario.fault_plan.planned_faults {
            let command = 1 + rng.below(LATEST_COMMAND);
            let (when, what) = match rng.below(6) {
                0 => (FaultTime::Program(command), Strike::Phantom),
                1 => (FaultTime::Program(command), Strike::Misdirect),
                2 => (FaultTime::Read(command), Strike::Misdirect),
                3 => (FaultTime::Read(command), Strike::Stale),
                4 => (FaultTime::Read(command), Strike::Miscorrect),
                _ => (FaultTime::Read(command), Strike::Fail),
            };
            planned_faults.push(PlannedFault { place: FaultPlace::Die(unit), when, what });
        }
        planned_faults
    }

    /// A recovery is complete in which no further die failed.
    pub fn has_recovered(&mut self) {
        self.is_weakened = false;
    }

    /// Whether a unit has returned in an earlier state, so that the store needs a rest until all
    /// redundancy is back.
    pub fn needs_rest(&self, scenario: &Scenario) -> bool {
        scenario.fault_plan.returns > 0.0 && self.is_old
    }

    /// The store has had its rest: the next unit may return.
    pub fn has_rested(&mut self) {
        (self.is_old, self.image) = (false, None);
    }

    /// Takes an image of a unit, or restores one, while the power is off.
    ///
    /// # Errors
    /// Errors of the device, which are not expected.
    pub fn apply_while_off(
        &mut self,
        scenario: &Scenario,
        medium: &Medium,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let FaultPlan { old_images, replacements, .. } = scenario.fault_plan;
        if scenario.fault_plan.returns > 0.0 {
            return self.return_or_image(scenario, medium, rng);
        }
        let is_redundant = scenario.store.is_redundant();
        let once = is_redundant || replacements > 0.0;
        if old_images + replacements == 0.0 || once && self.is_old {
            return Ok(());
        }
        let failed = |error: String| format!("an image: {error}");
        match &self.image {
            // The others keep no record any more of what this unit holds.
            Some((unit, _)) if !is_redundant && is_alone(*unit, scenario, medium) => {}
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

impl FaultState {
    /// Lets the unit of the image return in that state, or takes an image of any unit.
    fn return_or_image(
        &mut self,
        scenario: &Scenario,
        medium: &Medium,
        rng: &mut Rng,
    ) -> Result<(), String> {
        if let Some((_, image)) = &self.image
            && rng.chance(scenario.fault_plan.returns)
        {
            medium.restore(image)?;
            self.is_old = true;
            return Ok(());
        }
        let unit = rng.below(u64::from(scenario.flash.channels)) as u16;
        self.image = Some((unit, medium.image(unit)?));
        Ok(())
    }
}

/// Whether all other units of its shard, or of its domain of volumes, are worn out: everything that
/// is written goes to this one then.
fn is_alone(unit: u16, scenario: &Scenario, medium: &Medium) -> bool {
    let units: Vec<u16> = (0..scenario.flash.channels).collect();
    let together = match scenario.volumes {
        Some(_) => units.len(),
        None => scenario.units_of_a_shard(),
    };
    let worn_out = medium.worn_out_units();
    let takes_none = |other: &u16| *other == unit || worn_out.contains(other);
    let mut groups = units.chunks(together);
    groups.any(|units| units.contains(&unit) && units.iter().all(takes_none))
}

/// The unit of a scenario whose commands have silent faults.
fn faulty_unit(scenario: &Scenario) -> u16 {
    (scenario.seed % u64::from(scenario.flash.channels)) as u16
}
