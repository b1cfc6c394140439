//! The stores' runtime on a tokio thread: clock, timers, descriptors and tasks.

mod descriptors;
#[cfg(test)]
mod tests;
mod timers;

use descriptors::Descriptors;
use futures_util::future::LocalBoxFuture;
use rustix::time::{ClockId, clock_gettime};
use softflash_base::Time;
use softflash_runtime::{Runtime, RuntimeHandle, yield_now};
use std::future::Future;
use std::io;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::OnceLock;
use timers::Timers;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

/// Number of task polls between two checks of sockets and the device while tasks are always ready.
const POLLS_PER_LOOK: u32 = 31;

/// Start time of the first thread: the common origin, so that times of different threads can be
/// compared.
static START: OnceLock<Time> = OnceLock::new();

/// [`Runtime`] on a current-thread tokio runtime. Its timers have the resolution of the kernel's
/// (tokio's timer wheel rounds up to a millisecond, which is too long for flash).
pub struct TokioRuntime {
    tasks: Rc<LocalSet>,
    timers: Rc<Timers>,
    descriptors: Rc<Descriptors>,
    /// Held by the task that continues next of those that have worked for long.
    turn: Rc<Semaphore>,
    /// The monotonic clock at [`Time::ZERO`].
    start: Time,
}

impl TokioRuntime {
    /// Creates a tokio runtime on the calling thread and runs `program` on it, with a handle for
    /// all other tasks of the thread. Returns when `program` does; tasks still running are dropped.
    ///
    /// # Errors
    /// Errors of the operating system when it creates descriptors.
    pub fn run<P: Future>(program: impl FnOnce(RuntimeHandle) -> P) -> io::Result<P::Output> {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .event_interval(POLLS_PER_LOOK)
            .build()?;
        let tasks = Rc::new(LocalSet::new());
        tokio.block_on(tasks.run_until(async {
            let start = *START.get_or_init(monotonic);
            let runtime = TokioRuntime {
                tasks: Rc::clone(&tasks),
                timers: Timers::start(start)?,
                descriptors: Rc::default(),
                turn: Rc::new(Semaphore::new(1)),
                start,
            };
            Ok(program(Rc::new(runtime)).await)
        }))
    }
}

impl Runtime for TokioRuntime {
    fn now(&self) -> Time {
        Time(monotonic().since_ns(self.start))
    }

    fn wall_ms(&self) -> u64 {
        let now = clock_gettime(ClockId::Realtime);
        let ms = now.tv_sec.saturating_mul(1000) + now.tv_nsec / 1_000_000;
        u64::try_from(ms).unwrap_or(0)
    }

    fn sleep_until(&self, at: Time) -> LocalBoxFuture<'static, ()> {
        Box::pin(Timers::sleep(&self.timers, at))
    }

    fn readable(&self, fd: RawFd) -> LocalBoxFuture<'static, ()> {
        Box::pin(Descriptors::readable(Rc::clone(&self.descriptors), fd))
    }

    fn forget(&self, fd: RawFd) {
        self.descriptors.forget(fd);
    }

    fn spawn(&self, task: LocalBoxFuture<'static, ()>) {
        self.tasks.spawn_local(task);
    }

    fn turn(&self) -> LocalBoxFuture<'static, ()> {
        let turn = Rc::clone(&self.turn);
        Box::pin(async move {
            let _next = turn.acquire().await;
            yield_now().await;
        })
    }
}

/// The kernel's monotonic clock.
fn monotonic() -> Time {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, ns) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
    Time(seconds.saturating_mul(1_000_000_000) + ns)
}
