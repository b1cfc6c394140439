//! All sleeps of a thread on one kernel timer.

#![expect(unsafe_code, reason = "tokio requires that the descriptor stays open")]

use super::monotonic;
use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use softflash_base::Time;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Time and sequence number of a sleep.
type Key = (Time, u64);

/// The pending sleeps, and the kernel timer, set to the earliest.
pub(super) struct Timers {
    kernel: AsyncFd<OwnedFd>,
    waiting: RefCell<BTreeMap<Key, Waker>>,
    count: Cell<u64>,
    /// The time to which the kernel timer is set.
    armed: Cell<Option<Time>>,
    start: Time,
}

impl Timers {
    /// Creates the timer and the task that serves it, on the current thread's `LocalSet`.
    pub fn start(start: Time) -> io::Result<Rc<Timers>> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let kernel = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let timers = Rc::new(Timers {
            // SAFETY: the `AsyncFd` owns the descriptor and nothing closes or replaces it.
            kernel: unsafe { AsyncFd::register_with_interest(kernel, Interest::READABLE) }?,
            waiting: RefCell::default(),
            count: Cell::new(0),
            armed: Cell::new(None),
            start,
        });
        let serving = Rc::clone(&timers);
        tokio::task::spawn_local(async move { serving.serve().await });
        Ok(timers)
    }

    /// Sleeps until `at`, in time since the runtime's start.
    pub fn sleep(timers: &Rc<Timers>, at: Time) -> Sleep {
        Sleep { timers: Rc::clone(timers), at, key: None }
    }

    fn now(&self) -> Time {
        Time(monotonic().since_ns(self.start))
    }

    /// Wakes the sleepers that are due whenever the kernel timer fires.
    async fn serve(&self) {
        loop {
            let Ok(mut guard) = self.kernel.readable().await else { return };
            match read(&self.kernel, &mut [0u8; 8]) {
                Ok(_) => self.armed.set(None),
                Err(Errno::AGAIN) => {}
                Err(error) => tracing::error!(%error, "the timer cannot be read"),
            }
            guard.clear_ready();
            drop(guard);
            let now = self.now();
            while let Some(waker) = self.pop_due(now) {
                waker.wake();
            }
            self.arm();
        }
    }

    fn pop_due(&self, now: Time) -> Option<Waker> {
        let mut waiting = self.waiting.borrow_mut();
        let first = waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Sets the kernel timer to the earliest sleep, unless it fires by then anyway.
    fn arm(&self) {
        let first = self.waiting.borrow().first_key_value().map(|((at, _), _)| *at);
        let Some(first) = first else { return };
        if self.armed.get().is_some_and(|armed| armed <= first) {
            return;
        }
        let at = (self.start + first.0).0;
        let timer = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: (at / 1_000_000_000).min(i64::MAX as u64).cast_signed(),
                tv_nsec: (at % 1_000_000_000).cast_signed(),
            },
        };
        match timerfd_settime(&self.kernel, TimerfdTimerFlags::ABSTIME, &timer) {
            Ok(_) => self.armed.set(Some(first)),
            Err(error) => tracing::error!(%error, "the timer cannot be set"),
        }
    }
}

/// The future of a sleep; dropping it cancels the sleep.
pub(super) struct Sleep {
    timers: Rc<Timers>,
    at: Time,
    key: Option<Key>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.timers.now() >= self.at {
            return Poll::Ready(());
        }
        let key = match self.key {
            Some(key) => key,
            None => {
                self.timers.count.set(self.timers.count.get() + 1);
                (self.at, self.timers.count.get())
            }
        };
        self.key = Some(key);
        self.timers.waiting.borrow_mut().insert(key, context.waker().clone());
        self.timers.arm();
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.timers.waiting.borrow_mut().remove(&key);
        }
    }
}
