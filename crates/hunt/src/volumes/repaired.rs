//! Repairs of volumes: one unit is damaged while the power is off, the domain is repaired as `check
//! --repair` does it, and each read returns the data, or an error that the check had announced.

use super::damage;
use super::reading::UNIT;
use super::reference::{Name, Reference};
use super::session::{WALL_MS, images, settings, states};
use super::sets::SetTable;
use crate::medium::{Image, Medium};
use crate::scenario::Scenario;
use crate::session_failure::SessionFailure;
use crate::virtual_time;
use crate::volume_shape::VolumeShape;
use softflash_base::random::Rng;
use softflash_device::QueuePair;
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, DomainConfig, Examined, ExaminedImage, Progress, VolumeError};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Share of damages that bring a unit back in its state before the last session.
const OLD_UNITS: f64 = 0.25;

/// A domain that is stopped, all of whose changes are proven.
pub(super) struct Repairs<'a> {
    pub scenario: &'a Scenario,
    pub shape: &'a VolumeShape,
    pub medium: &'a Medium,
    pub references: &'a [Rc<RefCell<Reference>>],
    /// A unit as it was before the last session.
    pub old_unit: Image,
}

/// Mapping units that cannot be read.
type Lost = BTreeSet<(Name, u32)>;

impl Repairs<'_> {
    /// Damages the domain in one way after the other, and repairs it each time.
    pub fn check(&self, rng: &mut Rng) -> Result<(), String> {
        let units = self.scenario.flash.channels;
        for number in 0..self.scenario.repairs {
            let before = (0..units).map(|unit| self.medium.image(unit));
            let before = before.collect::<Result<Vec<Image>, String>>()?;
            // An older image of the only unit is a consistent, older domain.
            let is_old = units > 1 && rng.chance(OLD_UNITS);
            match is_old {
                true => self.medium.restore(&self.old_unit)?,
                false => damage::damage(self.medium, units, rng)?,
            }
            let kind = if is_old { "an old unit" } else { "changed pages" };
            self.repaired().map_err(|what| format!("repair {number}, of {kind}: {what}"))?;
            before.iter().try_for_each(|image| self.medium.restore(image))?;
        }
        Ok(())
    }

    /// Examines the domain, repairs it if there is anything to repair, and compares it.
    fn repaired(&self) -> Result<(), String> {
        let found = match self.examine()? {
            Ok(found) => found,
            // Nothing is served, which reports the loss of everything.
            Err(VolumeError::Damaged { .. }) => return Ok(()),
            Err(error) => return Err(format!("a check fails: {error}")),
        };
        let lost = lost_of(&found);
        if found.needs_repair() {
            let repaired = self.on_domain(async |queue, config, runtime| {
                Domain::repair(queue, config, runtime).await
            })?;
            if let Some(error) = repaired.error {
                return Err(format!("a repair fails: {error}"));
            }
            let again = self.examine()?.map_err(|error| format!("a second check: {error}"))?;
            if again.needs_repair() {
                return Err(format!("a repair leaves damage: {:?}", again.recovery));
            }
            if lost_of(&again) != lost {
                return Err(format!("after a repair {:?} are lost, not {lost:?}", lost_of(&again)));
            }
        }
        self.compare(&lost)
    }

    fn examine(&self) -> Result<Result<Examined, VolumeError>, String> {
        self.on_domain(async |queue, config, runtime| {
            Domain::examine(queue, config, runtime, &Progress::default()).await
        })
    }

    /// Compares everything with the references. What was announced as lost, and nothing else,
    /// cannot be read.
    fn compare(&self, announced: &Lost) -> Result<(), String> {
        let compared = self.on_domain(async |queue, config, runtime| {
            let mounted = Domain::mount(queue, config, runtime).await;
            let (domain, _) = mounted.map_err(|error| format!("after a repair: {error}"))?;
            let mut lost = Lost::new();
            for reference in self.references {
                let reference = reference.borrow().clone();
                let lost_of_client = compare(&domain, reference).await;
                lost.extend(lost_of_client.map_err(|failure| failure.what())?);
            }
            domain.check_map()?;
            domain.stop();
            Ok(lost)
        })?;
        match compared {
            Ok(lost) if lost == *announced => Ok(()),
            Ok(lost) => Err(format!("{lost:?} cannot be read, but {announced:?} were announced")),
            Err(what) => Err(what),
        }
    }

    /// Works with the flash; the power is cut at the end.
    fn on_domain<R>(
        &self,
        work: impl AsyncFnOnce(Box<dyn QueuePair>, DomainConfig, RuntimeHandle) -> R,
    ) -> Result<R, String> {
        let executor = virtual_time::executor(WALL_MS);
        let runtime = executor.handle();
        let device = self.medium.device();
        let sets = SetTable::new(self.scenario, self.shape);
        let config = sets.config(&sets.sets()[0], self.scenario, self.shape);
        let done = executor.block_on(async {
            let queue = device.open_queue_pair(&device.info().all_units());
            let queue = queue.map_err(|error| error.to_string())?;
            Ok(work(queue, config, runtime).await)
        });
        let at = executor.now();
        drop(executor);
        self.medium.power_cut(at, self.scenario.seed)?;
        done
    }
}

/// What an examination says that cannot be read.
fn lost_of(examined: &Examined) -> Lost {
    let of_image = |image: &ExaminedImage| {
        let name = Name { volume: image.volume.clone(), snapshot: image.snapshot.clone() };
        let units = image.lost.iter().flat_map(|range| range.start / UNIT..range.end / UNIT);
        units.map(|lba| (name.clone(), lba as u32)).collect::<Lost>()
    };
    examined.images.iter().flat_map(of_image).collect()
}

/// Compares the images of a client; returns the mapping units that cannot be read.
async fn compare(domain: &Domain, mut reference: Reference) -> Result<Lost, SessionFailure> {
    let found = images(domain, &reference)?;
    let settings = settings(domain, &reference);
    reference.reconcile(&found, &settings).map_err(SessionFailure::Wrong)?;
    let mut lost = Lost::new();
    for (name, units) in found {
        for (lba, state) in (0..).zip(states(domain, &name, units, true).await?) {
            match state {
                Some(state) => {
                    reference.found(&name, lba, state).map_err(SessionFailure::Wrong)?;
                }
                None => drop(lost.insert((name.clone(), lba))),
            }
        }
    }
    Ok(lost)
}
