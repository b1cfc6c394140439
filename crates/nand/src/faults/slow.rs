//! Operations that take much longer than they should, without an error.

use super::check::{self, Checked};
use serde::{Deserialize, Serialize};

/// The largest slowdown factor.
pub const SLOW_FACTOR_MAX: f64 = 1000.0;

/// The longest duration of a slowed step, one hour, unless the step takes longer without the fault.
pub(crate) const SLOWED_STEP_NS_MAX: u64 = 3_600_000_000_000;

/// The rate of slow operations. Such gray failures, ten to a thousand times slower and without an
/// error, are part of TigerBeetle's fault model; no rate is taken from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlowOperations {
    /// The probability that a sense, all retries of a page, a program or an erase is slow, 0 to 1;
    /// 0 by default.
    pub rate: f64,
    /// The factor on its duration, 1 to [`SLOW_FACTOR_MAX`]; 100 by default.
    pub factor: f64,
}

impl Default for SlowOperations {
    fn default() -> SlowOperations {
        SlowOperations { rate: 0.0, factor: 100.0 }
    }
}

impl SlowOperations {
    /// The mean of the factors on the durations of all operations.
    pub fn mean_factor(&self) -> f64 {
        1.0 + self.rate * (self.factor - 1.0)
    }

    pub(super) fn validate(&self) -> Checked {
        check::rate("rate", self.rate)?;
        let possible = (1.0..=SLOW_FACTOR_MAX).contains(&self.factor);
        check::holds("factor", self.factor, possible, "1 to 1000")
    }
}
