//! An executor on the machine's clock that waits in the kernel.

use crate::RuntimeHandle;
use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::descriptors::Descriptors;
use crate::executor::Executor;
use crate::ready::ReadyQueue;
use softflash_base::Time;
use std::future::Future;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

struct RealClock {
    start: Instant,
}

impl RealClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that the runtime provides")]
    fn start() -> RealClock {
        RealClock { start: Instant::now() }
    }
}

impl Clock for RealClock {
    fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock that the runtime provides")]
    fn wall_ms(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
    }

    fn wait(
        &self,
        next_timer: Option<Time>,
        descriptors: &mut Descriptors,
        ready: &ReadyQueue,
    ) -> bool {
        if ready.park() {
            let timeout = next_timer.map(|at| at - self.now());
            descriptors.wait(ready.alarm().map(Alarm::descriptor), timeout);
            ready.unpark();
        }
        // Another thread may wake a task at any time, so there is no deadlock to detect.
        true
    }

    fn glance(&self, descriptors: &mut Descriptors, _polls: u32) {
        if !descriptors.is_empty() {
            descriptors.wait(None, Some(Duration::ZERO));
        }
    }
}

/// Runs tasks in real time on the calling thread. It uses `poll(2)` to wait for descriptors, the
/// next timer, and wakes from other threads.
pub struct RealExecutor {
    executor: Executor<RealClock>,
}

impl RealExecutor {
    /// An executor whose clock starts now.
    ///
    /// # Errors
    /// The kernel cannot create the descriptor for wakes from other threads.
    pub fn new() -> io::Result<RealExecutor> {
        let ready = ReadyQueue::with_alarm(Alarm::new()?);
        Ok(RealExecutor { executor: Executor::new(RealClock::start(), ready) })
    }

    /// The runtime for all tasks of this executor.
    pub fn handle(&self) -> RuntimeHandle {
        self.executor.handle()
    }

    /// Runs `future` and all spawned tasks until it completes; the tasks stay for the next call. A
    /// future that is never woken is waited for without a limit.
    ///
    /// # Panics
    /// When called by one of its own tasks.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self.executor.run(future) {
            Ok(output) => output,
            Err(deadlock) => unreachable!("another thread may always wake a task: {deadlock}"),
        }
    }
}
