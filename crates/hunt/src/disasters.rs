//! What a device does beside its rates of faults: dies that end in the middle of a run, units that come back as they
//! were. Acknowledged data are lost then, as there is one copy: what is left to promise is that this is said.

use crate::world::World;
use serde::{Deserialize, Serialize};
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_device::{ModelDevice, UnitsImage};
use softflash_nand::faults::{FaultPlace, FaultSchedule, FaultTime, PlannedFault, Strike};
use softflash_runtime::{RuntimeHandle, yield_now};
use std::sync::Arc;

/// How often.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disasters {
    /// A die dies in a session: the chance of it, a session.
    pub deaths: f64,
    /// A unit comes back as it was some sessions ago: the chance of it, a session.
    pub old_images: f64,
}

/// The state of a device's disasters.
#[derive(Default)]
pub struct Fate {
    dead: Vec<u32>,
    image: Option<UnitsImage>,
    /// A unit is older than it should be.
    is_old: bool,
}

/// Which dies die in a session, and when.
pub type Deaths = Vec<(u32, Time)>;

impl Fate {
    /// Whether units tell less of themselves than they did.
    pub fn is_forgetful(&self) -> bool {
        self.is_old || !self.dead.is_empty()
    }

    /// Draws the deaths of the next session; the dead stay dead.
    pub fn deaths(&mut self, world: &World, rng: &mut Rng) -> Deaths {
        let mut deaths: Deaths = self.dead.iter().map(|die| (*die, Time::ZERO)).collect();
        if rng.chance(world.disasters.deaths) {
            let die = rng.below(u64::from(world.flash.channels)) as u32;
            deaths.push((die, Time(1 << (10 + rng.below(22)))));
            self.dead.push(die);
        }
        deaths
    }

    /// While the power is away: takes images of units, and brings them back.
    ///
    /// # Errors
    /// The device's, of which there should be none.
    pub fn strike(
        &mut self,
        world: &World,
        device: &ModelDevice,
        rng: &mut Rng,
    ) -> Result<(), String> {
        if world.disasters.old_images == 0.0 {
            return Ok(());
        }
        match &self.image {
            Some(image) if rng.chance(world.disasters.old_images) => {
                device.restore(image).map_err(|error| format!("an image: {error}"))?;
                self.is_old = true;
            }
            Some(_) => {}
            None => {
                let unit = rng.below(u64::from(world.flash.channels)) as u16;
                let image = device.image(unit..unit + 1);
                self.image = Some(image.map_err(|error| format!("an image: {error}"))?);
            }
        }
        Ok(())
    }
}

/// Plans deaths as soon as the device is in use.
pub fn plan(deaths: &Deaths, device: &Arc<ModelDevice>, runtime: &RuntimeHandle) {
    if deaths.is_empty() {
        return;
    }
    let death = |&(die, at): &(u32, Time)| PlannedFault {
        place: FaultPlace::Die(die),
        when: FaultTime::AtNs(at.0),
        what: Strike::Death,
    };
    let schedule = FaultSchedule { faults: deaths.iter().map(death).collect() };
    let device = Arc::clone(device);
    runtime.spawn(Box::pin(async move {
        // All queue pairs are opened before anybody waits.
        yield_now().await;
        let planned = device.schedule_faults(&schedule);
        assert!(planned.is_ok(), "dies of the world exist: {planned:?}");
    }));
}
