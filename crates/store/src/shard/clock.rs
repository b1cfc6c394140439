//! The store's clock for expiry: follows the wall clock forward, and is monotonic.
//!
//! A key that a client has seen expire must stay expired, even after the wall clock steps back or
//! the store restarts. So the clock keeps its highest value, advances from there by the monotonic
//! clock while the wall clock lags, and the log records the value (see `Log`).

use softflash_base::Time;
use softflash_base::planted::{self, Bug};
use softflash_runtime::RuntimeHandle;
use std::cell::Cell;

/// Milliseconds since the Unix epoch, monotonic.
pub struct ExpiryClock {
    runtime: RuntimeHandle,
    /// The clock had the value `.0` at the monotonic time `.1`.
    anchor: Cell<(u64, Time)>,
    /// The highest value known to be in the log.
    logged_ms: Cell<u64>,
}

impl ExpiryClock {
    /// A clock that starts at the wall clock's time.
    pub fn new(runtime: RuntimeHandle) -> ExpiryClock {
        let anchor = Cell::new((runtime.wall_ms(), runtime.now()));
        ExpiryClock { runtime, anchor, logged_ms: Cell::new(0) }
    }

    /// The time now, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        let (anchor_ms, anchor_at) = self.anchor.get();
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

    /// Raises the clock to at least `ms`, a value that recovery has read from the log.
    pub fn raise(&self, ms: u64) {
        if ms > self.now_ms() && !planted::bug(Bug::ClockRunsBack) {
            self.anchor.set((ms, self.runtime.now()));
        }
        self.note_logged(ms);
    }

    /// A log frame carries `ms`.
    pub fn note_logged(&self, ms: u64) {
        self.logged_ms.set(self.logged_ms.get().max(ms));
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
        let clock = ExpiryClock::new(runtime.clone());
        assert_eq!(clock.now_ms(), 10_000);
        executor.set_wall_ms(50_000);
        assert_eq!(clock.now_ms(), 50_000);
        executor.set_wall_ms(5_000);
        assert_eq!(clock.now_ms(), 50_000);
        executor.block_on(runtime.sleep_until(runtime.now() + 3_000_000));
        assert_eq!(clock.now_ms(), 50_003);
        clock.raise(70_000);
        assert_eq!(clock.now_ms(), 70_000);
        assert!(clock.is_logged(70_000) && !clock.is_logged(70_001));
    }
}
