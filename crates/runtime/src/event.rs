//! An event flag for tasks of one thread.

use crate::waiters::{WaitId, WaitList};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

#[derive(Default)]
struct State {
    set: Cell<bool>,
    waiters: RefCell<WaitList>,
}

/// A flag: while it is set, waits complete immediately, until it is reset. A clone is the same
/// event.
#[derive(Clone, Default)]
pub struct Event {
    state: Rc<State>,
}

impl Event {
    /// An event that is not set.
    pub fn new() -> Event {
        Event::default()
    }

    /// Sets the flag and wakes all waiting tasks.
    pub fn set(&self) {
        self.state.set.set(true);
        loop {
            let waker = self.state.waiters.borrow_mut().pop();
            match waker {
                Some(waker) => waker.wake(),
                None => break,
            }
        }
    }

    /// Resets the flag. Tasks that were woken and have not run yet wait again.
    pub fn reset(&self) {
        self.state.set.set(false);
    }

    /// Whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.state.set.get()
    }

    /// Waits until the flag is set.
    pub fn wait(&self) -> EventWait {
        EventWait { state: Rc::clone(&self.state), wait_id: None }
    }
}

/// The future of [`Event::wait`].
pub struct EventWait {
    state: Rc<State>,
    wait_id: Option<WaitId>,
}

impl Future for EventWait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.state.set.get() {
            return Poll::Ready(());
        }
        this.state.waiters.borrow_mut().wait(&mut this.wait_id, context.waker());
        Poll::Pending
    }
}

impl Drop for EventWait {
    fn drop(&mut self) {
        if let Some(wait_id) = self.wait_id {
            self.state.waiters.borrow_mut().leave(wait_id);
        }
    }
}
