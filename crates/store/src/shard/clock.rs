//! The store's clock for expiry: follows the wall clock forward, and is monotonic.
//!
//! A key that a client has seen expire must stay expired, even after the wall clock steps back or
//! the store restarts. So the clock keeps its highest value, advances from there by the monotonic
//! clock while the wall clock lags, and the log records the value (see `Log`).

use crate::options::ClockSource;
use softflash_base::Time;
use softflash_base::planted::{self, Bug};
use softflash_runtime::RuntimeHandle;
use std::cell::Cell;

/// Milliseconds since the Unix epoch, monotonic.
pub struct ExpiryClock {
    runtime: RuntimeHandle,
    source: ClockSource,
    /// The clock had the value `.0` at the monotonic time `.1`.
    anchor: Cell<(u64, Time)>,
    /// The highest value known to be in the log.
    logged_ms: Cell<u64>,
}

impl ExpiryClock {
    /// A clock before the log has been read.
    pub fn new(runtime: RuntimeHandle, source: ClockSource) -> ExpiryClock {
        let start_ms = match source {
            ClockSource::Wall => runtime.wall_ms(),
            ClockSource::Recorded => 0,
            ClockSource::Fixed(ms) => ms,
        };
        let anchor = Cell::new((start_ms, runtime.now()));
        ExpiryClock { runtime, source, anchor, logged_ms: Cell::new(0) }
    }

    /// The time now, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        let (anchor_ms, anchor_at) = self.anchor.get();
        if self.source != ClockSource::Wall {
            return anchor_ms;
        }
        let now = self.runtime.now();
        let steady_ms = anchor_ms + now.since_ns(anchor_at) / 1_000_000;
        let wall_ms = self.runtime.wall_ms();
        if wall_ms > steady_ms {
            self.anchor.set((wall_ms, now));
            wall_ms
        } else {
            steady_ms
        }
    }

    /// How far the clock is ahead of the wall clock.
    pub fn lead_ms(&self) -> u64 {
        self.now_ms().saturating_sub(self.runtime.wall_ms())
    }

    /// Raises the clock to at least `ms`, a value that recovery has read from the log.
    pub fn raise(&self, ms: u64) {
        let is_fixed = matches!(self.source, ClockSource::Fixed(_));
        if !is_fixed && ms > self.now_ms() && !planted::bug(Bug::ClockRunsBack) {
            self.anchor.set((ms, self.runtime.now()));
        }
        self.note_logged(ms);
    }

    /// A log frame carries `ms`.
    pub fn note_logged(&self, ms: u64) {
        self.logged_ms.set(self.logged_ms.get().max(ms));
    }

    /// The highest value known to be in the log; 0 for none.
    pub fn logged_ms(&self) -> u64 {
        self.logged_ms.get()
    }

    /// Whether the clock after a restart is at least `ms`.
    pub fn is_logged(&self, ms: u64) -> bool {
        ms <= self.logged_ms.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_runtime::VirtualExecutor;

    #[test]
    fn the_clock_advances_when_the_wall_clock_steps_back() {
        let executor = VirtualExecutor::new(10_000);
        let runtime = executor.handle();
        let clock = ExpiryClock::new(runtime.clone(), ClockSource::Wall);
        assert_eq!(clock.now_ms(), 10_000);
        executor.set_wall_ms(50_000);
        assert_eq!((clock.now_ms(), clock.lead_ms()), (50_000, 0));
        executor.set_wall_ms(5_000);
        assert_eq!((clock.now_ms(), clock.lead_ms()), (50_000, 45_000));
        executor.block_on(runtime.sleep_until(runtime.now() + 3_000_000));
        assert_eq!((clock.now_ms(), clock.lead_ms()), (50_003, 45_000));
        clock.raise(70_000);
        assert_eq!(clock.now_ms(), 70_000);
        assert!(clock.is_logged(70_000) && !clock.is_logged(70_001));
    }

    #[test]
    fn the_recorded_clock_is_that_of_the_log_and_stands_still() {
        let executor = VirtualExecutor::new(1_000_000);
        let runtime = executor.handle();
        let clock = ExpiryClock::new(runtime.clone(), ClockSource::Recorded);
        assert_eq!(clock.now_ms(), 0);
        clock.raise(500);
        clock.raise(400);
        executor.block_on(runtime.sleep_until(runtime.now() + 3_000_000_000));
        assert_eq!((clock.now_ms(), clock.logged_ms()), (500, 500));
        clock.raise(2_000_000);
        assert_eq!((clock.now_ms(), clock.lead_ms()), (2_000_000, 997_000));
        let fixed = ExpiryClock::new(runtime, ClockSource::Fixed(7));
        fixed.raise(500);
        assert_eq!((fixed.now_ms(), fixed.logged_ms()), (7, 500));
    }
}
