//! Detects a standstill of virtual time: a device that serves requests in no time never reaches the
//! end of a run with a time limit.

use crate::error::LabError;

/// More requests than a run has under way at once.
const MOST_AT_ONCE: u64 = 1 << 22;

/// The number of requests when time last advanced.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    at: u64,
    before: u64,
}

impl Standstill {
    /// Records the total number of requests at this time.
    ///
    /// # Errors
    /// [`LabError::Parameter`] if time stands still.
    pub(super) fn note(&mut self, now: u64, requests: u64) -> Result<(), LabError> {
        if now > self.at {
            *self = Standstill { at: now, before: requests };
        }
        let at_once = requests - self.before;
        if at_once <= MOST_AT_ONCE {
            return Ok(());
        }
        Err(LabError::Parameter(format!(
            "time stands still at {now} ns: {at_once} requests took no time, as reads of unwritten pages need no flash; \
             use precondition `fill`, or a device whose link or controller takes time"
        )))
    }
}
