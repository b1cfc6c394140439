//! Notifications between tasks of one thread.

use crate::waiters::{WaitId, WaitList};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

#[derive(Default)]
struct State {
    waiters: RefCell<WaitList>,
    /// A notification without a waiting task.
    stored: Cell<bool>,
}

/// Lets tasks wait for a notification. A notification without a waiting task is kept (only one) for
/// the next wait, so that "check, then wait" misses none. A clone is the same object.
#[derive(Clone, Default)]
pub struct Notify {
    state: Rc<State>,
}

impl Notify {
    /// Without a kept notification.
    pub fn new() -> Notify {
        Notify::default()
    }

    /// Wakes the task that has waited longest, or keeps the notification for the next wait.
    pub fn notify_one(&self) {
        let waker = self.state.waiters.borrow_mut().pop();
        match waker {
            Some(waker) => waker.wake(),
            None => self.state.stored.set(true),
        }
    }

    /// Wakes all waiting tasks in FIFO order. Keeps nothing.
    pub fn notify_all(&self) {
        let waiting = self.state.waiters.borrow().len();
        for _ in 0..waiting {
            let waker = self.state.waiters.borrow_mut().pop();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Waits for a notification. Cancel safe: the notification of a dropped wait goes to the next.
    pub fn notified(&self) -> Notified {
        Notified { state: Rc::clone(&self.state), wait_id: None, done: false }
    }
}

/// The future of [`Notify::notified`].
pub struct Notified {
    state: Rc<State>,
    wait_id: Option<WaitId>,
    done: bool,
}

impl Future for Notified {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut waiters = this.state.waiters.borrow_mut();
        let rung = match this.wait_id {
            Some(wait_id) => !waiters.contains(wait_id),
            None => this.state.stored.take(),
        };
        if this.done || rung {
            this.done = true;
            return Poll::Ready(());
        }
        waiters.wait(&mut this.wait_id, context.waker());
        Poll::Pending
    }
}

impl Drop for Notified {
    fn drop(&mut self) {
        let Some(wait_id) = self.wait_id else { return };
        let left = self.state.waiters.borrow_mut().leave(wait_id);
        if !left && !self.done {
            Notify { state: Rc::clone(&self.state) }.notify_one();
        }
    }
}
