//! Instructions and cycles of this thread, counted by the processor where the system allows it:
//! many virtual machines do not.

use perf_event::events::Hardware;
use perf_event::{Builder, Counter};

/// Counters that run.
pub struct Counters {
    instructions: Option<Counter>,
    cycles: Option<Counter>,
}

impl Counters {
    /// Starts to count, in user mode only.
    pub fn start() -> Counters {
        let started = |kind| {
            let mut counter = Builder::new().kind(kind).build().ok()?;
            counter.enable().ok()?;
            Some(counter)
        };
        Counters {
            instructions: started(Hardware::INSTRUCTIONS),
            cycles: started(Hardware::CPU_CYCLES),
        }
    }

    /// Instructions and cycles since the start; `None` for what cannot be counted.
    pub fn stop(self) -> (Option<u64>, Option<u64>) {
        let count = |counter: Option<Counter>| counter?.read().ok();
        (count(self.instructions), count(self.cycles))
    }
}
