//! An executor whose time jumps from event to event: the clock of simulations.

use crate::RuntimeHandle;
use crate::clock::Clock;
use crate::descriptors::Descriptors;
use crate::executor::{Deadlock, Executor};
use crate::ready::ReadyQueue;
use softflash_base::Time;
use std::cell::Cell;
use std::future::Future;

struct VirtualClock {
    now: Cell<Time>,
    /// Wall clock at [`Time::ZERO`].
    wall_start_ms: Cell<i64>,
    /// Polls of tasks since the time last changed, and the most that are allowed.
    polls: Cell<u64>,
    most_polls: Cell<u64>,
}

impl VirtualClock {
    fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.now.get().0 / 1_000_000).unwrap_or(i64::MAX)
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Time {
        self.now.get()
    }

    fn wall_ms(&self) -> u64 {
        let wall_ms = self.wall_start_ms.get().saturating_add(self.elapsed_ms());
        u64::try_from(wall_ms).unwrap_or(0)
    }

    fn wait(
        &self,
        next_timer: Option<Time>,
        descriptors: &mut Descriptors,
        _ready: &ReadyQueue,
    ) -> bool {
        if !descriptors.is_empty() {
            self.polls.set(0);
            descriptors.wait(None, None);
            return true;
        }
        match next_timer {
            Some(at) => {
                if at > self.now.get() {
                    self.polls.set(0);
                    self.now.set(at);
                }
                true
            }
            None => false,
        }
    }

    fn glance(&self, _descriptors: &mut Descriptors, polls: u32) {
        self.polls.set(self.polls.get() + u64::from(polls));
        assert!(
            self.polls.get() <= self.most_polls.get(),
            "livelock at {}: tasks wake each other again and again while the time stands still",
            self.now.get()
        );
    }
}

/// Runs tasks in virtual time: when no task is ready, the clock jumps to the next timer. A program
/// takes the same steps at the same times in every run.
///
/// Real I/O (a task that waits for a descriptor) takes no virtual time: the clock stands still
/// until it completes. That is useful for tests on a file; it is not deterministic.
pub struct VirtualExecutor {
    executor: Executor<VirtualClock>,
}

impl VirtualExecutor {
    /// An executor whose wall clock shows `wall_ms` at the start.
    pub fn new(wall_ms: u64) -> VirtualExecutor {
        let clock = VirtualClock {
            now: Cell::new(Time::ZERO),
            wall_start_ms: Cell::new(i64::try_from(wall_ms).unwrap_or(i64::MAX)),
            polls: Cell::default(),
            most_polls: Cell::new(u64::MAX),
        };
        VirtualExecutor { executor: Executor::new(clock, ReadyQueue::new()) }
    }

    /// Limits the polls of all tasks between two changes of the virtual time, within a hundred: the
    /// executor panics where there are more, because tasks wake each other without end.
    pub fn limit_polls_at_once(&self, polls: u64) {
        self.executor.shared.clock.most_polls.set(polls);
    }

    /// The runtime for all tasks of this executor.
    pub fn handle(&self) -> RuntimeHandle {
        self.executor.handle()
    }

    /// Runs `future` and all spawned tasks until it completes; the tasks stay for the next call.
    ///
    /// # Panics
    /// On a [`Deadlock`], and when called by one of its own tasks.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self.try_block_on(future) {
            Ok(output) => output,
            #[expect(clippy::panic, reason = "a deadlock is a bug in the program that runs")]
            Err(deadlock) => panic!("{deadlock}"),
        }
    }

    /// As [`block_on`](Self::block_on), but returns a deadlock as an error.
    pub fn try_block_on<F: Future>(&self, future: F) -> Result<F::Output, Deadlock> {
        self.executor.run(future)
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.executor.shared.clock.now.get()
    }

    /// Sets the wall clock, like an administrator or a time server; virtual time and timers do not
    /// change.
    pub fn set_wall_ms(&self, wall_ms: u64) {
        let clock = &self.executor.shared.clock;
        let wall_ms = i64::try_from(wall_ms).unwrap_or(i64::MAX);
        clock.wall_start_ms.set(wall_ms - clock.elapsed_ms());
    }

    /// Moves the wall clock by `delta_ms`, forward or back.
    pub fn step_wall(&self, delta_ms: i64) {
        let clock = &self.executor.shared.clock;
        clock.wall_start_ms.set(clock.wall_start_ms.get().saturating_add(delta_ms));
    }
}
