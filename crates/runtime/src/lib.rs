//! The runtime of stores: a clock, timers and a single-threaded executor, virtual or real.
//!
//! A store gets a [`Runtime`] for time, sleep and spawning tasks. Under [`VirtualExecutor`], time
//! jumps from event to event and the whole stack is a deterministic simulator. Under
//! [`RealExecutor`], or the server's own runtime, the same code serves real clients.
//!
//! The crate also has synchronization for tasks of one thread: [`Notify`], [`Event`],
//! [`ByteSemaphore`] and [`yield_now`].

use futures_util::future::LocalBoxFuture;
use softflash_base::Time;
use std::os::fd::RawFd;
use std::rc::Rc;

mod alarm;
mod clock;
mod descriptors;
mod event;
mod executor;
mod notify;
mod ready;
mod real;
mod semaphore;
mod sync;
mod tasks;
mod timers;
mod virtual_time;
mod waiters;
mod yielding;

pub use event::Event;
pub use executor::Deadlock;
pub use notify::Notify;
pub use real::RealExecutor;
pub use semaphore::{BytePermit, ByteSemaphore};
pub use virtual_time::VirtualExecutor;
pub use yielding::{YieldNow, yield_now};

/// One thread's clock, timers and executor.
pub trait Runtime {
    /// Time since the runtime's start; never decreases.
    fn now(&self) -> Time;

    /// Wall-clock time in milliseconds since the Unix epoch; may step either way.
    fn wall_ms(&self) -> u64;

    /// Completes at `at` or as soon as possible after it.
    fn sleep_until(&self, at: Time) -> LocalBoxFuture<'static, ()>;

    /// Completes when `fd` is readable.
    fn readable(&self, fd: RawFd) -> LocalBoxFuture<'static, ()>;

    /// No task waits for `fd` any more, which will be closed: its number may mean another file
    /// then.
    fn forget(&self, fd: RawFd) {
        let _ = fd;
    }

    /// Runs a task on this thread until it completes or the runtime ends.
    fn spawn(&self, task: LocalBoxFuture<'static, ()>);

    /// Lets the other ready tasks run before the caller, which has worked for long, continues. A
    /// runtime with clients lets one such task continue at a time, in the order of their calls, so
    /// that a task that works for a short time never waits for more than one of them.
    fn turn(&self) -> LocalBoxFuture<'static, ()> {
        Box::pin(yield_now())
    }
}

/// A shared handle to the runtime of a thread.
pub type RuntimeHandle = Rc<dyn Runtime>;
