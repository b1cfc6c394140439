//! Detection of time that does not pass: a device that serves requests in no time never reaches the
//! end of a run that lasts so long.

use crate::error::LabError;

/// More requests than any run has under way.
const MOST_AT_ONCE: u64 = 1 << 22;

/// How many requests there were when time last passed.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    at: u64,
    before: u64,
}

impl Standstill {
    /// So many requests in all, at this time.
    ///
    /// # Errors
    /// [`LabError::Parameter`] where time stands still.
    pub(super) fn note(&mut self, now: u64, requests: u64) -> Result<(), LabError> {
        if now > self.at {
            *self = Standstill { at: now, before: requests };
        }
        let at_once = requests - self.before;
        if at_once <= MOST_AT_ONCE {
            return Ok(());
        }
        Err(LabError::Parameter(format!(
            "time stands still at {now} ns: {at_once} requests took none of it, as reads of what was never written need no flash; \
             take precondition `fill`, or a device whose link or controller takes time"
        )))
    }
}
