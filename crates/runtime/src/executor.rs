//! The executor: one thread, one FIFO queue of tasks; the clock is a parameter.

use crate::clock::Clock;
use crate::descriptors::Descriptors;
use crate::ready::{ReadyQueue, TaskId, TaskWaker};
use crate::tasks::Tasks;
use crate::timers::{TimerKey, Timers};
use crate::{Runtime, RuntimeHandle};
use futures_util::future::LocalBoxFuture;
use softflash_base::Time;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::os::fd::RawFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Number of polls between two checks of the descriptors while tasks are always ready.
const POLLS_PER_GLANCE: u32 = 64;

/// Every task waits, and no timer or descriptor can wake one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlock {
    /// When it was detected.
    pub at: Time,
    /// Number of spawned tasks that wait.
    pub tasks: usize,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "deadlock at {}: the awaited future and {} spawned tasks wait, no task is ready and \
             no timer or descriptor can wake one; look for a lost wake or for tasks that \
             wait for each other",
            self.at, self.tasks
        )
    }
}

impl std::error::Error for Deadlock {}

/// State shared by the executor and its handles.
pub(crate) struct Shared<C> {
    pub clock: C,
    ready: Arc<ReadyQueue>,
    tasks: RefCell<Tasks>,
    timers: RefCell<Timers>,
    descriptors: RefCell<Descriptors>,
    running: Cell<bool>,
}

/// An executor of one thread; its tasks are dropped with it.
pub(crate) struct Executor<C: Clock + 'static> {
    pub shared: Rc<Shared<C>>,
}

impl<C: Clock + 'static> Executor<C> {
    pub fn new(clock: C, ready: ReadyQueue) -> Executor<C> {
        let shared = Shared {
            clock,
            ready: Arc::new(ready),
            tasks: RefCell::default(),
            timers: RefCell::default(),
            descriptors: RefCell::default(),
            running: Cell::new(false),
        };
        Executor { shared: Rc::new(shared) }
    }

    pub fn handle(&self) -> RuntimeHandle {
        Rc::new(Handle { shared: Rc::clone(&self.shared) })
    }

    /// Runs `root` and all tasks until `root` completes. The tasks stay for the next call.
    pub fn run<F: Future>(&self, root: F) -> Result<F::Output, Deadlock> {
        let shared = &*self.shared;
        let _running = Running::enter(&shared.running);
        let mut root = pin!(root);
        let root_flag = TaskWaker::new(TaskId::ROOT, Arc::clone(&shared.ready));
        let root_waker = Waker::from(Arc::clone(&root_flag));
        root_flag.wake_by_ref();
        let mut polls = 0_u32;
        loop {
            // Only tasks that are ready now: tasks that they wake run after the timers that are due
            // by then.
            for _ in 0..shared.ready.len() {
                let Some(id) = shared.ready.pop() else { break };
                if id != TaskId::ROOT {
                    shared.poll_task(id);
                } else {
                    root_flag.left_queue();
                    if let Poll::Ready(output) =
                        root.as_mut().poll(&mut Context::from_waker(&root_waker))
                    {
                        shared.forget_root();
                        return Ok(output);
                    }
                }
                polls += 1;
            }
            shared.fire_timers();
            if shared.ready.len() == 0 {
                shared.wait()?;
                shared.fire_timers();
                polls = 0;
            } else if polls >= POLLS_PER_GLANCE {
                shared.clock.glance(&mut shared.descriptors.borrow_mut(), polls);
                polls = 0;
            }
        }
    }
}

impl<C: Clock + 'static> Drop for Executor<C> {
    fn drop(&mut self) {
        // Tasks may hold handles, which hold the tasks: break the cycle here. A task's destructor
        // may borrow any part, so nothing is borrowed meanwhile.
        let tasks = self.shared.tasks.borrow_mut().close();
        drop(tasks);
        let timers = self.shared.timers.borrow_mut().close();
        drop(timers);
        let descriptors = self.shared.descriptors.borrow_mut().close();
        drop(descriptors);
        self.shared.ready.clear();
    }
}

impl<C: Clock> Shared<C> {
    fn poll_task(&self, id: TaskId) {
        let Some(mut task) = self.tasks.borrow_mut().take(id) else { return };
        let completed = task.poll();
        let mut tasks = self.tasks.borrow_mut();
        let leftover = if completed {
            tasks.remove(id);
            Some(task)
        } else {
            tasks.put_back(id, task)
        };
        drop(tasks);
        drop(leftover);
    }

    fn fire_timers(&self) {
        let mut timers = self.timers.borrow_mut();
        if timers.next().is_none() {
            return;
        }
        let now = self.clock.now();
        while let Some(waker) = timers.pop_due(now) {
            waker.wake();
        }
    }

    fn wait(&self) -> Result<(), Deadlock> {
        let next_timer = self.timers.borrow().next();
        let mut descriptors = self.descriptors.borrow_mut();
        if self.clock.wait(next_timer, &mut descriptors, &self.ready) {
            return Ok(());
        }
        Err(Deadlock { at: self.clock.now(), tasks: self.tasks.borrow().len() })
    }

    /// Wakes of a root that has completed must not reach the next root.
    fn forget_root(&self) {
        for _ in 0..self.ready.len() {
            if let Some(id) = self.ready.pop()
                && id != TaskId::ROOT
            {
                self.ready.push(id);
            }
        }
    }
}

/// Marks the executor as running, also when a task panics.
struct Running<'a>(&'a Cell<bool>);

impl<'a> Running<'a> {
    fn enter(running: &'a Cell<bool>) -> Running<'a> {
        assert!(!running.replace(true), "block_on was called by a task of the same executor");
        Running(running)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// The runtime of the executor's tasks.
struct Handle<C> {
    shared: Rc<Shared<C>>,
}

impl<C: Clock + 'static> Runtime for Handle<C> {
    fn now(&self) -> Time {
        self.shared.clock.now()
    }

    fn wall_ms(&self) -> u64 {
        self.shared.clock.wall_ms()
    }

    fn sleep_until(&self, at: Time) -> LocalBoxFuture<'static, ()> {
        Box::pin(Sleep { shared: Rc::clone(&self.shared), at, timer: None })
    }

    fn readable(&self, fd: RawFd) -> LocalBoxFuture<'static, ()> {
        Box::pin(Readable { shared: Rc::clone(&self.shared), fd, place: None })
    }

    fn spawn(&self, task: LocalBoxFuture<'static, ()>) {
        let refused = self.shared.tasks.borrow_mut().spawn(task, &self.shared.ready);
        drop(refused);
    }
}

/// Waits until a time; dropping it cancels its timer.
struct Sleep<C: Clock> {
    shared: Rc<Shared<C>>,
    at: Time,
    timer: Option<TimerKey>,
}

impl<C: Clock> Future for Sleep<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.shared.clock.now() >= self.at {
            return Poll::Ready(());
        }
        let waker = context.waker();
        match self.timer {
            Some(key) => self.shared.timers.borrow_mut().change_waker(key, waker),
            None => {
                let key = self.shared.timers.borrow_mut().set(self.at, waker.clone());
                self.timer = Some(key);
            }
        }
        Poll::Pending
    }
}

impl<C: Clock> Drop for Sleep<C> {
    fn drop(&mut self) {
        if let Some(key) = self.timer {
            self.shared.timers.borrow_mut().cancel(key);
        }
    }
}

/// Waits for a descriptor; dropping it ends the wait.
struct Readable<C: Clock> {
    shared: Rc<Shared<C>>,
    fd: RawFd,
    place: Option<usize>,
}

impl<C: Clock> Future for Readable<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker();
        if self.fd < 0 {
            // Not a descriptor; the caller's read returns the error.
            return Poll::Ready(());
        }
        match self.place {
            Some(place) => {
                if self.shared.descriptors.borrow_mut().check(place, waker) {
                    return Poll::Ready(());
                }
            }
            None => {
                let place = self.shared.descriptors.borrow_mut().add(self.fd, waker.clone());
                self.place = Some(place);
            }
        }
        Poll::Pending
    }
}

impl<C: Clock> Drop for Readable<C> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.shared.descriptors.borrow_mut().remove(place);
        }
    }
}
