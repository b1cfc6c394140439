//! A FIFO semaphore of bytes for tasks of one thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

struct Waiter {
    bytes: u64,
    granted: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

struct State {
    capacity: u64,
    free: Cell<u64>,
    line: RefCell<VecDeque<Rc<Waiter>>>,
}

impl State {
    /// Grants requests from the head of the queue as long as there are enough bytes.
    fn grant(&self) {
        loop {
            let mut line = self.line.borrow_mut();
            let Some(head) = line.front() else { return };
            if head.bytes > self.free.get() {
                return;
            }
            self.free.set(self.free.get() - head.bytes);
            head.granted.set(true);
            let waker = head.waker.take();
            line.pop_front();
            drop(line);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    fn give_back(&self, bytes: u64) {
        let free = self.free.get() + bytes;
        assert!(free <= self.capacity, "more bytes returned than were taken");
        self.free.set(free);
        self.grant();
    }
}

/// A budget of bytes in FIFO order: a large request at the head of the queue is not overtaken by
/// small ones, so no task starves. A clone is the same budget.
#[derive(Clone)]
pub struct ByteSemaphore {
    state: Rc<State>,
}

impl ByteSemaphore {
    /// A budget of `capacity` bytes, all free.
    pub fn new(capacity: u64) -> ByteSemaphore {
        let state = State { capacity, free: Cell::new(capacity), line: RefCell::default() };
        ByteSemaphore { state: Rc::new(state) }
    }

    /// Bytes free now.
    pub fn available(&self) -> u64 {
        self.state.free.get()
    }

    /// Capacity in bytes.
    pub fn capacity(&self) -> u64 {
        self.state.capacity
    }

    /// Takes `bytes` if they are free and no task waits. A request beyond the capacity counts as
    /// the capacity.
    pub fn try_acquire(&self, bytes: u64) -> Option<BytePermit> {
        let bytes = bytes.min(self.state.capacity);
        if bytes > self.state.free.get() || !self.state.line.borrow().is_empty() {
            return None;
        }
        self.state.free.set(self.state.free.get() - bytes);
        Some(BytePermit { state: Rc::clone(&self.state), bytes })
    }

    /// Waits in FIFO order for `bytes`. A request beyond the capacity counts as the capacity, so
    /// that it is granted when nothing else is held. Cancel safe.
    pub fn acquire(&self, bytes: u64) -> Acquire {
        let bytes = bytes.min(self.state.capacity);
        Acquire { state: Rc::clone(&self.state), bytes, waiter: None }
    }
}

/// The future of [`ByteSemaphore::acquire`].
pub struct Acquire {
    state: Rc<State>,
    bytes: u64,
    waiter: Option<Rc<Waiter>>,
}

impl Future for Acquire {
    type Output = BytePermit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<BytePermit> {
        if let Some(waiter) = &self.waiter {
            if !waiter.granted.get() {
                *waiter.waker.borrow_mut() = Some(context.waker().clone());
                return Poll::Pending;
            }
            self.waiter = None;
            return Poll::Ready(BytePermit { state: Rc::clone(&self.state), bytes: self.bytes });
        }
        let semaphore = ByteSemaphore { state: Rc::clone(&self.state) };
        if let Some(permit) = semaphore.try_acquire(self.bytes) {
            return Poll::Ready(permit);
        }
        let waiter = Rc::new(Waiter {
            bytes: self.bytes,
            granted: Cell::new(false),
            waker: RefCell::new(Some(context.waker().clone())),
        });
        self.state.line.borrow_mut().push_back(Rc::clone(&waiter));
        self.waiter = Some(waiter);
        Poll::Pending
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else { return };
        if waiter.granted.get() {
            self.state.give_back(waiter.bytes);
        } else {
            self.state.line.borrow_mut().retain(|other| !Rc::ptr_eq(other, &waiter));
            self.state.grant();
        }
    }
}

/// Bytes held from a [`ByteSemaphore`]; released on drop.
pub struct BytePermit {
    state: Rc<State>,
    bytes: u64,
}

impl BytePermit {
    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Releases a part early and keeps at most `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        if bytes < self.bytes {
            let surplus = self.bytes - bytes;
            self.bytes = bytes;
            self.state.give_back(surplus);
        }
    }
}

impl Drop for BytePermit {
    fn drop(&mut self) {
        self.state.give_back(self.bytes);
    }
}
