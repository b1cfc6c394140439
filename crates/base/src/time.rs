//! A point in time on a monotonic clock, virtual or real.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// Nanoseconds since the clock's start. Layers below the runtime get the time as an argument and
/// never read a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    /// The clock's start.
    pub const ZERO: Time = Time(0);
    /// Later than any event.
    pub const MAX: Time = Time(u64::MAX);

    /// Nanoseconds from `earlier` to `self`, 0 where `earlier` is the later one.
    pub fn since_ns(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Duration since the clock's start.
    pub fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl Add<u64> for Time {
    type Output = Time;
    /// `ns` nanoseconds later.
    fn add(self, ns: u64) -> Time {
        Time(self.0.saturating_add(ns))
    }
}

impl AddAssign<u64> for Time {
    fn add_assign(&mut self, ns: u64) {
        *self = *self + ns;
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        self + u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.since_ns(earlier))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_duration())
    }
}
