//! A drive as a file is to the store: it keeps what was written in a volatile cache, loses any of that at a cut, and an
//! erase leaves what was there, or zeros. What the store must not rely on, it does not do.

mod queue_pair;
mod strikes;
#[cfg(test)]
mod tests;
mod volatile_cache;

use queue_pair::DriveQueuePair;
use softflash_base::Time;
use softflash_base::checksum::identity;
use softflash_base::random::Rng;
use softflash_device::backend::Claims;
use softflash_device::{Device, DeviceInfo, OpenError, QueuePair, UnitGeometry};
use softflash_nand::faults::PlannedFault;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use strikes::Struck;
pub use volatile_cache::Image;
use volatile_cache::VolatileCache;

/// What all queue pairs share.
struct Shared {
    cache: VolatileCache,
    struck: Struck,
    /// Of how long commands take.
    rng: Rng,
}

/// A drive in memory.
pub struct Drive {
    info: DeviceInfo,
    claims: Claims,
    shared: Arc<Mutex<Shared>>,
}

impl Drive {
    /// A new drive of zeros. Where it `discards`, an erase makes zeros again.
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
        let struck = Struck::default();
        let shared = Shared { cache, struck, rng: Rng::seeded(seed).fork("drive") };
        Drive { info, claims: Claims::default(), shared: Arc::new(Mutex::new(shared)) }
    }

    /// The power goes: of each page any version may be left that was written since it was last flushed, or the one that
    /// was.
    pub fn power_cut(&self, seed: u64) {
        lock(&self.shared).cache.power_cut(&mut Rng::seeded(seed));
    }

    /// The power is on; this strikes from then on.
    pub fn plan(&self, faults: &[PlannedFault]) {
        lock(&self.shared).struck = Struck::planned(faults);
    }

    /// What a unit holds while the power is away.
    pub fn image(&self, unit: u16) -> Image {
        lock(&self.shared).cache.image(unit)
    }

    /// Brings a unit back to what it was.
    pub fn restore(&self, image: &Image) {
        lock(&self.shared).cache.restore(image);
    }
}

impl Device for Drive {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn open_queue_pair(&self, units: Range<u16>) -> Result<Box<dyn QueuePair>, OpenError> {
        let claim = self.claims.claim(units, self.info.units)?;
        let seed = lock(&self.shared).rng.next_u64();
        Ok(Box::new(DriveQueuePair::new(&self.info, claim, Arc::clone(&self.shared), seed)))
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a command takes: short, and never the same, so that commands overtake each other.
fn duration(rng: &mut Rng, usual_ns: u64) -> Time {
    Time(usual_ns / 2 + rng.below(usual_ns))
}
