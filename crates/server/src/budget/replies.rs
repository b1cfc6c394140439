//! The budget of replies: limits the memory of a thread's unsent replies.
//!
//! The length of a reply is not known before it is made, so each execution is charged the size of
//! the largest recent reply; this estimate rises immediately and decays slowly. Then the actual
//! size is charged until the reply has been sent. One execution is always allowed. Small replies
//! are not charged: they have a limit for each connection, and do not wait for the large ones.

use softflash_protocol::ReplyPermit;
use softflash_store::memory::SpareMemory;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The initial estimate: the largest value.
const FIRST_ESTIMATE_BYTES: u64 = softflash_store::value::DEFAULT_VALUE_BYTES as u64;

/// The estimate decays by one part in this many with each smaller reply.
const DECAY: u64 = 32;

/// Batches with at most this many bytes of replies count as small.
const LITTLE_BYTES: u64 = 1 << 20;

/// Changes of the unsent bytes by less than this are not reported to the other threads.
const REPORTED_BYTES: u64 = 1 << 20;

struct State {
    capacity: u64,
    /// Where the memory of unsent replies comes from, and how many bytes of them it knows of.
    /// Estimates are not reported: the first is that of the largest value.
    spare: SpareMemory,
    reported: Cell<u64>,
    unsent: Cell<u64>,
    estimate: Cell<u64>,
    charged: Cell<u64>,
    queue: RefCell<VecDeque<Rc<Waiter>>>,
}

struct Waiter {
    /// The charge when the execution began.
    granted: Cell<Option<u64>>,
    waker: RefCell<Waker>,
}

impl State {
    /// Charges one more execution, if there is room for it.
    fn charge(&self) -> Option<u64> {
        let (charged, estimate) = (self.charged.get(), self.estimate.get());
        if charged > 0 && charged + estimate > self.capacity {
            return None;
        }
        self.charged.set(charged + estimate);
        Some(estimate)
    }

    /// Wakes waiting executions while there is room.
    fn grant(&self) {
        while !self.queue.borrow().is_empty() {
            let Some(charged) = self.charge() else { return };
            let next = self.queue.borrow_mut().pop_front();
            if let Some(waiter) = next {
                waiter.granted.set(Some(charged));
                waiter.waker.borrow().wake_by_ref();
            }
        }
    }

    fn change(&self, from: u64, to: u64) {
        self.charged.set(self.charged.get() - from + to);
        if to < from {
            self.grant();
        }
    }

    fn change_unsent(&self, from: u64, to: u64) {
        let unsent = self.unsent.get() - from + to;
        self.unsent.set(unsent);
        let reported = self.reported.get();
        if unsent.abs_diff(reported) >= REPORTED_BYTES || unsent == 0 && reported > 0 {
            self.spare.change_unsent(reported, unsent);
            self.reported.set(unsent);
        }
    }
}

/// The reply budget of one thread. A clone is the same budget.
#[derive(Clone)]
pub struct ReplyBudget {
    state: Rc<State>,
}

impl ReplyBudget {
    /// A budget of `capacity` bytes, which are taken from `spare`.
    pub fn new(capacity: u64, spare: SpareMemory) -> ReplyBudget {
        let state = State {
            capacity,
            spare,
            reported: Cell::new(0),
            unsent: Cell::new(0),
            estimate: Cell::new(FIRST_ESTIMATE_BYTES),
            charged: Cell::new(0),
            queue: RefCell::default(),
        };
        ReplyBudget { state: Rc::new(state) }
    }

    /// Bytes charged now.
    #[cfg(test)]
    pub fn charged_bytes(&self) -> u64 {
        self.state.charged.get()
    }

    /// The number of connections that wait for the replies of others to be sent.
    pub fn waiting(&self) -> usize {
        self.state.queue.borrow().len()
    }

    /// A permit that is never charged: for a few short replies.
    pub fn begin_little(&self) -> Permit {
        Permit { state: Rc::clone(&self.state), is_charged: false, bytes: 0, unsent: 0 }
    }

    /// A permit to make a reply, if there is room for it and nobody waits.
    pub fn try_begin(&self) -> Option<Permit> {
        let nobody_waits = self.state.queue.borrow().is_empty();
        let bytes = nobody_waits.then(|| self.state.charge())??;
        Some(Permit::charged(&self.state, bytes))
    }

    /// Waits in FIFO order for a permit to make a reply. Cancel safe.
    pub fn begin(&self) -> Begin {
        Begin { state: Rc::clone(&self.state), waiter: None }
    }
}

/// The future of [`ReplyBudget::begin`].
pub struct Begin {
    state: Rc<State>,
    waiter: Option<Rc<Waiter>>,
}

impl Future for Begin {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        let this = &mut *self;
        if let Some(waiter) = &this.waiter {
            let Some(bytes) = waiter.granted.get() else {
                waiter.waker.borrow_mut().clone_from(context.waker());
                return Poll::Pending;
            };
            this.waiter = None;
            return Poll::Ready(Permit::charged(&this.state, bytes));
        }
        let budget = ReplyBudget { state: Rc::clone(&this.state) };
        if let Some(permit) = budget.try_begin() {
            return Poll::Ready(permit);
        }
        let waker = RefCell::new(context.waker().clone());
        let waiter = Rc::new(Waiter { granted: Cell::new(None), waker });
        this.state.queue.borrow_mut().push_back(Rc::clone(&waiter));
        this.waiter = Some(waiter);
        Poll::Pending
    }
}

impl Drop for Begin {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else { return };
        match waiter.granted.get() {
            Some(charged) => self.state.change(charged, 0),
            None => self.state.queue.borrow_mut().retain(|other| !Rc::ptr_eq(other, &waiter)),
        }
    }
}

/// An estimate of the largest of these replies. If all of them are small, a multiple of the mean;
/// otherwise nearly the total.
fn largest(bytes: u64, commands: u64) -> u64 {
    match bytes <= LITTLE_BYTES {
        true => bytes.min(bytes / commands * 4 + 64),
        false => bytes,
    }
}

/// The charge of a connection's replies until they have been sent.
pub struct Permit {
    state: Rc<State>,
    /// Whether it counts towards the budget.
    is_charged: bool,
    bytes: u64,
    /// The part of it that is made.
    unsent: u64,
}

impl Permit {
    fn charged(state: &Rc<State>, bytes: u64) -> Permit {
        Permit { state: Rc::clone(state), is_charged: true, bytes, unsent: 0 }
    }
}

impl ReplyPermit for Permit {
    fn try_extend(&mut self) -> bool {
        if !self.state.queue.borrow().is_empty() {
            return false;
        }
        match self.state.charge() {
            Some(charged) => {
                self.bytes += charged;
                true
            }
            None => false,
        }
    }

    fn expect(&self, bytes: u64) {
        self.state.estimate.set(bytes.min(FIRST_ESTIMATE_BYTES).max(self.state.estimate.get()));
    }

    fn settle(&mut self, bytes: u64, commands: u64) {
        if commands > 0 {
            let estimate = self.state.estimate.get();
            let falling = estimate - estimate / DECAY;
            self.state.estimate.set(largest(bytes, commands).max(falling));
        }
        self.recharge(bytes);
    }

    fn recharge(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if self.is_charged {
            self.state.change(before, bytes);
        }
        let unsent = std::mem::replace(&mut self.unsent, bytes);
        self.state.change_unsent(unsent, bytes);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.recharge(0);
    }
}
