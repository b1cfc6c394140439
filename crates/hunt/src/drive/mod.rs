//! A drive as a file or a block device presents it: it has a volatile write cache, may lose any
//! unflushed write at a power cut, and an erase either keeps the old contents or makes zeros. It
//! never gives a guarantee that the store must not rely on.

mod flushes;
mod injector;
mod queue_pair;
#[cfg(test)]
mod tests;
mod volatile_cache;

use flushes::Flushes;
use injector::Injector;
use queue_pair::DriveQueuePair;
use softflash_base::checksum::identity;
use softflash_base::random::Rng;
use softflash_base::{Time, UnitSet};
use softflash_device::backend::Claims;
use softflash_device::{Device, DeviceInfo, OpenError, QueuePair, UnitGeometry};
use softflash_nand::faults::PlannedFault;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub use volatile_cache::Image;
use volatile_cache::VolatileCache;

/// State shared by all queue pairs.
struct Shared {
    cache: VolatileCache,
    injector: Injector,
    flushes: Flushes,
    /// Random stream of command durations.
    rng: Rng,
}

/// A drive in memory.
pub struct Drive {
    info: DeviceInfo,
    claims: Claims,
    shared: Arc<Mutex<Shared>>,
}

impl Drive {
    /// A new drive full of zeros. With `discards`, an erase makes zeros.
    pub fn new(units: u16, geometry: UnitGeometry, discards: bool, seed: u64) -> Drive {
        let half = |part| u128::from(identity(&[seed, part]));
        let info = DeviceInfo {
            backend: "drive".to_owned(),
            uuid: half(0) << 64 | half(1),
            units,
            geometry,
            detail: "with a volatile cache".to_owned(),
        };
        let cache = VolatileCache::new(geometry, discards);
        let injector = Injector::default();
        let flushes = Flushes::default();
        let shared = Shared { cache, injector, flushes, rng: Rng::seeded(seed).fork("drive") };
        Drive { info, claims: Claims::default(), shared: Arc::new(Mutex::new(shared)) }
    }

    /// Cuts the power: each page keeps the last flushed version, or any version written after it.
    pub fn power_cut(&self, seed: u64) {
        lock(&self.shared).cache.power_cut(&mut Rng::seeded(seed));
    }

    /// Turns the power on; sets the faults of the session.
    pub fn plan(&self, faults: &[PlannedFault]) {
        lock(&self.shared).injector = Injector::planned(faults);
    }

    /// A share of the flushes of the session fails, and with `stays_failed` all after the first.
    pub fn fail_flushes(&self, share: f64, stays_failed: bool, seed: u64) {
        lock(&self.shared).flushes = Flushes::planned(share, stays_failed, seed);
    }

    /// How many flushes of the session have failed.
    pub fn failed_flushes(&self) -> u64 {
        lock(&self.shared).flushes.failed()
    }

    /// Whether a flush of the session has failed, and none will succeed after it.
    pub fn flushes_stay_failed(&self) -> bool {
        lock(&self.shared).flushes.durable().is_err()
    }

    /// Image of a unit; the power is off.
    pub fn image(&self, unit: u16) -> Image {
        lock(&self.shared).cache.image(unit)
    }

    /// Restores a unit from an image.
    pub fn restore(&self, image: &Image) {
        lock(&self.shared).cache.restore(image);
    }
}

impl Device for Drive {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn open_queue_pair(&self, units: &UnitSet) -> Result<Box<dyn QueuePair>, OpenError> {
        let claim = self.claims.claim(units, self.info.units)?;
        let seed = lock(&self.shared).rng.next_u64();
        Ok(Box::new(DriveQueuePair::new(&self.info, claim, Arc::clone(&self.shared), seed)))
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Duration of a command: short and random, so that commands complete out of order.
fn duration(rng: &mut Rng, usual_ns: u64) -> Time {
    Time(usual_ns / 2 + rng.below(usual_ns))
}
