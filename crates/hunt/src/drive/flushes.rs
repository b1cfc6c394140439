//! Flushes of a drive that fail.

use softflash_base::random::Rng;
use softflash_device::DeviceError;

/// The operating system's error for a failed flush: `EIO`.
const ERRNO: i32 = 5;

/// Which flushes of a session fail. A failed one makes nothing durable.
#[derive(Default)]
pub(super) struct Flushes {
    /// Share of flushes that fail.
    failing: f64,
    /// All of them fail after the first.
    stays_failed: bool,
    rng: Option<Rng>,
    has_failed: bool,
}

impl Flushes {
    /// The flushes of a new session.
    pub(super) fn planned(failing: f64, stays_failed: bool, seed: u64) -> Flushes {
        let rng = (failing > 0.0).then(|| Rng::seeded(seed).fork("flushes"));
        Flushes { failing, stays_failed, rng, has_failed: false }
    }

    /// Whether one has failed in this session.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// The result of a flush.
    pub(super) fn flush(&mut self) -> Result<(), DeviceError> {
        self.durable()?;
        let fails = self.rng.as_mut().is_some_and(|rng| rng.chance(self.failing));
        self.has_failed |= fails;
        if fails { Err(DeviceError::Io { errno: ERRNO }) } else { Ok(()) }
    }

    /// The result of a write that is to be durable.
    pub(super) fn durable(&self) -> Result<(), DeviceError> {
        match self.has_failed && self.stays_failed {
            true => Err(DeviceError::Unsettled { errno: ERRNO }),
            false => Ok(()),
        }
    }
}
