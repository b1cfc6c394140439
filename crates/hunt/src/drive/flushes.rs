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
    /// How many have failed in this session.
    failed: u64,
}

impl Flushes {
    /// The flushes of a new session.
    pub(super) fn planned(failing: f64, stays_failed: bool, seed: u64) -> Flushes {
        let rng = (failing > 0.0).then(|| Rng::seeded(seed).fork("flushes"));
        Flushes { failing, stays_failed, rng, failed: 0 }
    }

    /// How many have failed in this session.
    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// The result of a flush.
    pub(super) fn flush(&mut self) -> Result<(), DeviceError> {
        let result = self.durable().and_then(|()| {
            let fails = self.rng.as_mut().is_some_and(|rng| rng.chance(self.failing));
            if fails { Err(DeviceError::Io { errno: ERRNO }) } else { Ok(()) }
        });
        self.failed += u64::from(result.is_err());
        result
    }

    /// The result of a write that is to be durable.
    pub(super) fn durable(&self) -> Result<(), DeviceError> {
        match self.failed > 0 && self.stays_failed {
            true => Err(DeviceError::Unsettled { errno: ERRNO }),
            false => Ok(()),
        }
    }
}
