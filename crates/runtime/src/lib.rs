//! What stores run on: a clock, timers and a single-threaded executor, virtual or real.
//!
//! A store is handed a [`Runtime`] and asks it for the time, for sleep and to spawn. Under
//! [`VirtualExecutor`] time jumps from event to event and the whole stack is a deterministic
//! simulator; under [`RealExecutor`], or the server's own runtime, the same code serves.
//!
//! Beside the executors stand the few tools that tasks of one thread need to wait for each other:
//! [`Notify`], [`Event`], [`ByteSemaphore`] and [`yield_now`].

use futures_util::future::LocalBoxFuture;
use softflash_base::Time;
use std::os::fd::RawFd;
use std::rc::Rc;

#[cfg(not(feature = "loom"))]
mod alarm;
mod clock;
mod descriptors;
mod event;
mod executor;
mod notify;
mod ready;
#[cfg(not(feature = "loom"))]
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
#[cfg(not(feature = "loom"))]
pub use real::RealExecutor;
pub use semaphore::{BytePermit, ByteSemaphore};
pub use virtual_time::VirtualExecutor;
pub use yielding::{YieldNow, yield_now};

/// One thread's clock, timers and executor.
pub trait Runtime {
    /// Time since the runtime's start; never runs back.
    fn now(&self) -> Time;

    /// Wall-clock time in milliseconds since the Unix epoch; may step either way.
    fn wall_ms(&self) -> u64;

    /// Completes at `at` or as soon as possible after it.
    fn sleep_until(&self, at: Time) -> LocalBoxFuture<'static, ()>;

    /// Completes when `fd` is readable.
    fn readable(&self, fd: RawFd) -> LocalBoxFuture<'static, ()>;

    /// Runs a task on this thread until it completes or the runtime ends.
    fn spawn(&self, task: LocalBoxFuture<'static, ()>);
}

/// A runtime as everything on its thread holds it.
pub type RuntimeHandle = Rc<dyn Runtime>;
